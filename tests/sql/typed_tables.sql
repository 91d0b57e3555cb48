-- names: guest seat fee badge
-- Tables of a composite type.
create type badge as (guest int, seat text, fee numeric(5,2));
create table t1 of badge;
create table t2 of badge (guest with options primary key, seat with options not null default 'x', constraint fair check (fee > 0));
create table t3 of badge (guest primary key, foreign key (guest) references t2);
create table t9 of badge (nothing with options not null);
create table t9 of badge (guest with options not null, guest with options default 1);
create table t9 of nothing;
create table t9 of t1;
create table t9 of badge (guest generated always as identity);
create table t9 of badge (fee generated always as (guest) stored);
create table if not exists t1 of nothing;
create table if not exists t1 of badge;
create temp table t4 of badge;
create table t5 of badge (primary key (guest)) partition by range (guest);
create table t51 partition of t5 for values from (1) to (10);
\d t1
\d+ t2
\d t3
\d t5
select relname, reloftype::regtype from pg_class where reloftype <> 0 order by 1;
select table_name, user_defined_type_schema, user_defined_type_name, is_typed from information_schema.tables where table_name in ('t1', 't51') order by 1;
-- Columns are the type's.
alter table t1 add column late int;
alter table t1 drop column guest;
alter table t1 alter column guest type bigint;
alter table t1 rename column guest to host;
alter table t1 inherit t2;
create table heir () inherits (t1);
alter table t1 rename to t1x;
alter table t1x rename to t1;
alter table t1 alter seat set default 'y', add constraint c1 check (guest > 0), alter guest set not null;
insert into t1 values (1, 'a', 2.5), (2, default, 7);
insert into t1 values (0, 'a', 2.5);
insert into t2 (guest, fee) values (1, 1);
insert into t3 values (2, 'a', 1);
select * from t1 order by guest;
-- They change with it.
alter type badge add attribute late int;
alter type badge drop attribute guest;
alter type badge rename attribute guest to host;
alter type badge alter attribute guest type bigint;
alter type badge add attribute late int cascade;
\d heir
\d t1
alter type badge rename attribute seat to chair cascade;
alter type badge drop attribute fee cascade;
alter type badge alter attribute late type bigint cascade;
\d t2
select * from t1 order by guest;
insert into t1 values (3, 'c', 4);
select * from t1 order by guest;
alter table t5 attach partition t1 for values from (10) to (20);
drop table t5, t4;
alter type badge alter attribute guest type bigint cascade;
select * from t1 order by guest;
-- NOT OF and OF.
alter table t1 not of;
alter table t1 not of;
\d t1
alter table t1 of badge;
alter table t1 of badge;
alter table heir of badge;
create table q1 (guest bigint);
create table q2 (guest int, chair text, late bigint);
create table q3 (guest bigint, chair text, late bigint, more int);
create table q4 (guest bigint, late bigint, chair text);
create table q5 (guest bigint, chair text collate "C", late bigint);
create table q6 (guest bigint, chair text, gone int, late bigint);
alter table q6 drop column gone;
alter table q1 of badge;
alter table q2 of badge;
alter table q3 of badge;
alter table q4 of badge;
alter table q5 of badge;
alter table q6 of badge;
alter table q1 of nothing;
alter table q1 of t1;
\d q6
drop table q1, q2, q3, q4, q5;
-- They go with it.
drop type badge;
drop type badge cascade;
select count(*) from pg_class where relname in ('t1', 't2', 't3', 'heir', 'q6');
create type badge as (guest int);
create view plain as select 1 as guest;
alter table plain of badge;
alter view plain not of;
drop view plain;
-- Who may.
create role usher;
create table plain (guest int);
alter table plain owner to usher;
create table other (guest int);
revoke usage on type badge from public;
create schema hall authorization usher;
set role usher;
create table hall.t of badge;
alter table plain of badge;
alter table plain not of;
alter table other of badge;
alter table other not of;
reset role;
alter table plain of badge;
alter type badge owner to usher;
grant create on schema public to usher;
alter table other of badge;
set role usher;
alter type badge add attribute late int cascade;
alter type badge rename attribute guest to host cascade;
reset role;
drop type badge cascade;
drop schema hall;
revoke create on schema public from usher;
drop role usher;
