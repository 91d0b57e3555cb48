-- names: two_phase
-- Two-phase commit: what is prepared, by whom it is resolved, what it locks.
create table two_phase_t (k int primary key, v text unique);
insert into two_phase_t values (1, 'a'), (2, 'b');
-- Outside a block there is nothing to prepare.
prepare transaction 'two_phase_0';
begin;
update two_phase_t set v = 'c' where k = 1;
insert into two_phase_t values (3, 'd');
prepare transaction 'two_phase_1';
select k, v from two_phase_t order by k;
select gid, owner = current_user as own, database = current_database() as here, prepared <= now() as past
from pg_prepared_xacts where gid like 'two_phase%' order by gid;
-- Its rows, values and the name are taken.
select * from two_phase_t where k = 1 for update nowait;
select k from two_phase_t where k = 1 for share skip locked;
set lock_timeout = '50ms';
\set VERBOSITY terse
insert into two_phase_t values (3, 'x');
insert into two_phase_t values (4, 'd');
alter table two_phase_t add column w int;
\set VERBOSITY default
reset lock_timeout;
begin;
insert into two_phase_t values (5, 'e');
prepare transaction 'two_phase_1';
select k from two_phase_t where k = 5;
-- In a block it is not resolved.
begin;
commit prepared 'two_phase_1';
rollback;
begin;
rollback prepared 'two_phase_1';
rollback;
commit prepared 'two_phase_none';
rollback prepared 'two_phase_none';
commit prepared 'two_phase_1';
select k, v from two_phase_t order by k;
commit prepared 'two_phase_1';
-- Rolled back.
begin;
delete from two_phase_t;
savepoint a;
insert into two_phase_t values (9, 'z');
rollback to a;
prepare transaction 'two_phase_1';
select count(*) from two_phase_t;
rollback prepared 'two_phase_1';
select count(*) from two_phase_t;
-- A failed block is rolled back.
begin;
select 1 / 0;
prepare transaction 'two_phase_2';
select count(*) from pg_prepared_xacts where gid = 'two_phase_2';
-- Deferred constraints are checked before.
create table two_phase_child (k int references two_phase_t deferrable initially deferred);
begin;
insert into two_phase_child values (77);
prepare transaction 'two_phase_3';
select count(*) from two_phase_child;
begin;
insert into two_phase_child values (1);
prepare transaction 'two_phase_3';
set lock_timeout = '50ms';
\set VERBOSITY terse
delete from two_phase_t where k = 1;
\set VERBOSITY default
reset lock_timeout;
commit prepared 'two_phase_3';
delete from two_phase_t where k = 1;
-- Tables, and their rows.
begin;
create table two_phase_new (k serial primary key, v int);
insert into two_phase_new (v) values (1), (2);
create index on two_phase_new (v);
drop table two_phase_child;
prepare transaction 'two_phase_4';
select * from two_phase_new;
commit prepared 'two_phase_4';
select * from two_phase_new where v = 2;
select * from two_phase_child;
insert into two_phase_new (v) values (3) returning k;
-- What ends with the session cannot be prepared.
create temp table two_phase_temp (k int);
begin;
select * from two_phase_temp;
prepare transaction 'two_phase_5';
begin;
create temp table two_phase_temp2 (k int);
prepare transaction 'two_phase_5';
begin;
declare two_phase_c cursor with hold for select 1;
prepare transaction 'two_phase_5';
begin isolation level repeatable read;
select length(pg_export_snapshot()) > 0;
prepare transaction 'two_phase_5';
begin;
prepare transaction 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx';
select gid from pg_prepared_xacts where gid like 'two_phase%' or gid like 'xx%';
-- Locks: of a session and of its transaction.
select pg_advisory_lock(77, 1);
begin;
select pg_advisory_xact_lock(77, 1);
prepare transaction 'two_phase_6';
select pg_advisory_unlock(77, 1);
begin;
select pg_advisory_xact_lock(77, 1);
prepare transaction 'two_phase_6';
select pg_try_advisory_lock(77, 1);
-- Its id goes on until then.
begin;
select txid_status(txid_current()) as status;
insert into two_phase_new (v) values (txid_current() % 2) returning v < 2 as ok;
prepare transaction 'two_phase_7';
-- Only who has prepared it, and superusers, may.
create role two_phase_ann;
grant all on two_phase_new to two_phase_ann;
set role two_phase_ann;
commit prepared 'two_phase_6';
rollback prepared 'two_phase_7';
begin;
select count(*) from two_phase_new;
prepare transaction 'two_phase_8';
reset role;
select gid, owner from pg_prepared_xacts where gid = 'two_phase_8';
set role two_phase_ann;
commit prepared 'two_phase_8';
reset role;
rollback prepared 'two_phase_6';
commit prepared 'two_phase_7';
select pg_try_advisory_lock(77, 1);
select pg_advisory_unlock(77, 1);
do $$ begin execute 'prepare transaction ''two_phase_9'''; end $$;
do $$ begin prepare transaction 'two_phase_9'; end $$;
-- A database in which something is prepared stays.
create database two_phase_db;
\c two_phase_db
begin;
create table t (k int);
prepare transaction 'two_phase_9';
\c postgres
drop database two_phase_db;
commit prepared 'two_phase_9';
\c two_phase_db
commit prepared 'two_phase_9';
\c postgres
drop database two_phase_db;
-- Read only transactions too.
begin read only;
select count(*) from two_phase_t;
prepare transaction 'two_phase_9';
rollback prepared 'two_phase_9';
drop table two_phase_t, two_phase_new;
drop owned by two_phase_ann;
drop role two_phase_ann;
