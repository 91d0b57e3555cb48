-- names: twop
-- Two-phase commit: what is prepared, by whom it is resolved, what it locks.
create table twop_t (k int primary key, v text unique);
insert into twop_t values (1, 'a'), (2, 'b');
-- Outside a block there is nothing to prepare.
prepare transaction 'twop_0';
begin;
update twop_t set v = 'c' where k = 1;
insert into twop_t values (3, 'd');
prepare transaction 'twop_1';
select k, v from twop_t order by k;
select gid, owner = current_user as own, database = current_database() as here, prepared <= now() as past
from pg_prepared_xacts where gid like 'twop%' order by gid;
-- Its rows, values and the name are taken.
select * from twop_t where k = 1 for update nowait;
select k from twop_t where k = 1 for share skip locked;
set lock_timeout = '50ms';
\set VERBOSITY terse
insert into twop_t values (3, 'x');
insert into twop_t values (4, 'd');
alter table twop_t add column w int;
\set VERBOSITY default
reset lock_timeout;
begin;
insert into twop_t values (5, 'e');
prepare transaction 'twop_1';
select k from twop_t where k = 5;
-- In a block it is not resolved.
begin;
commit prepared 'twop_1';
rollback;
begin;
rollback prepared 'twop_1';
rollback;
commit prepared 'twop_none';
rollback prepared 'twop_none';
commit prepared 'twop_1';
select k, v from twop_t order by k;
commit prepared 'twop_1';
-- Rolled back.
begin;
delete from twop_t;
savepoint a;
insert into twop_t values (9, 'z');
rollback to a;
prepare transaction 'twop_1';
select count(*) from twop_t;
rollback prepared 'twop_1';
select count(*) from twop_t;
-- A failed block is rolled back.
begin;
select 1 / 0;
prepare transaction 'twop_2';
select count(*) from pg_prepared_xacts where gid = 'twop_2';
-- Deferred constraints are checked before.
create table twop_child (k int references twop_t deferrable initially deferred);
begin;
insert into twop_child values (77);
prepare transaction 'twop_3';
select count(*) from twop_child;
begin;
insert into twop_child values (1);
prepare transaction 'twop_3';
set lock_timeout = '50ms';
\set VERBOSITY terse
delete from twop_t where k = 1;
\set VERBOSITY default
reset lock_timeout;
commit prepared 'twop_3';
delete from twop_t where k = 1;
-- Tables, and their rows.
begin;
create table twop_new (k serial primary key, v int);
insert into twop_new (v) values (1), (2);
create index on twop_new (v);
drop table twop_child;
prepare transaction 'twop_4';
select * from twop_new;
commit prepared 'twop_4';
select * from twop_new where v = 2;
select * from twop_child;
insert into twop_new (v) values (3) returning k;
-- What ends with the session cannot be prepared.
create temp table twop_temp (k int);
begin;
select * from twop_temp;
prepare transaction 'twop_5';
begin;
create temp table twop_temp2 (k int);
prepare transaction 'twop_5';
begin;
declare twop_c cursor with hold for select 1;
prepare transaction 'twop_5';
begin isolation level repeatable read;
select length(pg_export_snapshot()) > 0;
prepare transaction 'twop_5';
begin;
prepare transaction 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx';
select gid from pg_prepared_xacts where gid like 'twop%' or gid like 'xx%';
-- Locks: of a session and of its transaction.
select pg_advisory_lock(77, 1);
begin;
select pg_advisory_xact_lock(77, 1);
prepare transaction 'twop_6';
select pg_advisory_unlock(77, 1);
begin;
select pg_advisory_xact_lock(77, 1);
prepare transaction 'twop_6';
select pg_try_advisory_lock(77, 1);
-- Its id goes on until then.
begin;
select txid_status(txid_current()) as status;
insert into twop_new (v) values (txid_current() % 2) returning v < 2 as ok;
prepare transaction 'twop_7';
-- Only who has prepared it, and superusers, may.
create role twop_ann;
grant all on twop_new to twop_ann;
set role twop_ann;
commit prepared 'twop_6';
rollback prepared 'twop_7';
begin;
select count(*) from twop_new;
prepare transaction 'twop_8';
reset role;
select gid, owner from pg_prepared_xacts where gid = 'twop_8';
set role twop_ann;
commit prepared 'twop_8';
reset role;
rollback prepared 'twop_6';
commit prepared 'twop_7';
select pg_try_advisory_lock(77, 1);
select pg_advisory_unlock(77, 1);
do $$ begin execute 'prepare transaction ''twop_9'''; end $$;
do $$ begin prepare transaction 'twop_9'; end $$;
-- A database in which something is prepared stays.
create database twop_db;
\c twop_db
begin;
create table twop_t (k int);
prepare transaction 'twop_9';
\c postgres
drop database twop_db;
commit prepared 'twop_9';
\c twop_db
commit prepared 'twop_9';
\c postgres
drop database twop_db;
-- Read only transactions too.
begin read only;
select count(*) from twop_t;
prepare transaction 'twop_9';
rollback prepared 'twop_9';
drop table twop_t, twop_new;
drop owned by twop_ann;
drop role twop_ann;
