-- names: akin refused sure quick
-- Unlogged tables: which may refer to which, what is shown of them, and how they become others.

create unlogged table quick (a int primary key, b serial);
create table sure (a int primary key);
create table sure_too (a int references sure);
create table refused (a int references quick);
create unlogged table quick_too (a int references sure);
select relname, relpersistence from pg_class where relname ~ '^(quick|sure)' order by 1;
\d quick
alter table quick set logged;
select relname, relpersistence from pg_class where relname ~ '^quick' order by 1;
alter table quick set unlogged;
alter table quick set unlogged;
alter table sure set unlogged;
alter table sure_too add foreign key (a) references quick;
alter table quick add foreign key (a) references sure;
create view over as select 1 as one;
alter table over set unlogged;
create temp table passing (a int);
\set VERBOSITY default
alter table passing set unlogged;
alter table passing set logged;
\set VERBOSITY verbose
create unlogged sequence numbers;
select relpersistence from pg_class where relname = 'numbers';
create unlogged table made as select 1 as a;
select relpersistence from pg_class where relname = 'made';
create table akin_it (like quick including all);
select relpersistence from pg_class where relname = 'akin_it';
begin;
alter table made set logged;
rollback;
select relpersistence from pg_class where relname = 'made';
create role unlogged_user;
set role unlogged_user;
alter table made set logged;
reset role;
drop role unlogged_user;
insert into made values (2);
select * from made order by 1;
drop view over;
drop table quick, sure, sure_too, quick_too, made, akin_it;
drop sequence numbers;
