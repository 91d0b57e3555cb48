-- names: rolled app only
create role alicia login password 'secret' connection limit 5 valid until '2030-01-01';
create user bob createdb createrole;
create group staff;
create role staff;
create role pg_foo;
create role x1 superuser nosuperuser;
grant staff to alicia, bob;
grant staff to alicia;
grant staff to alicia with admin option;
grant alicia to staff;
grant nobody to alicia;
grant staff to nobody;
revoke staff from bob;
revoke staff from bob;
alter role alicia set search_path to app, public;
alter role alicia set work_mem = '8MB';
alter role alicia reset work_mem;
alter role alicia set nonsense = 1;
alter role bob nologin noinherit;
alter role bob rename to robert;
alter role nobody login;
comment on role staff is 'people';
\du alicia
\du robert
\du staff
\du+ staff
\drds
select rolname, rolpassword like 'SCRAM-SHA-256$4096:%', rolvaliduntil from pg_authid where rolname in ('alicia','robert') order by 1;
create table rolled (a int, b text);
insert into rolled values (1, 'x');
create schema app;
create sequence sq;
create view v as select a from rolled;
set role alicia;
select current_user, session_user;
select * from rolled;
insert into rolled values (2, 'y');
update rolled set a = 2;
delete from rolled;
truncate rolled;
drop table rolled;
create index on rolled (a);
create table public.mine (a int);
create table app.mine (a int);
create schema mine;
create role eve;
create database roles_d1;
select nextval('sq');
select * from v;
select * from pg_authid;
select count(*) > 3 from pg_roles;
grant select on rolled to staff;
comment on table rolled is 'x';
reset role;
grant select, insert on rolled to staff;
grant update (a) on rolled to alicia;
grant usage on sequence sq to alicia;
grant usage, create on schema app to staff with grant option;
grant select on v to public;
grant all on rolled to robert with grant option;
grant bogus on rolled to alicia;
grant usage on rolled to alicia;
grant select on nosuch to alicia;
grant connect on database postgres to alicia;
\dp rolled
\dp v
\dp sq
\dn+ app
set role alicia;
select * from rolled;
insert into rolled values (2, 'y');
update rolled set b = 'z';
delete from rolled;
select nextval('sq');
select setval('sq', 5);
select * from v;
create table app.mine (a int);
\dt app.*
select has_table_privilege('rolled', 'select'), has_table_privilege('rolled','delete'), has_table_privilege('robert','rolled','delete with grant option'), has_schema_privilege('app','create'), has_sequence_privilege('sq','usage');
select pg_has_role('alicia','staff','member'), pg_has_role('staff','usage'), pg_has_role('robert','staff','usage');
set role robert;
set role none;
set session authorization alicia;
select current_user, session_user;
set role postgres;
set role staff;
select current_user, session_user;
reset session authorization;
select current_user, session_user;
set role nobody;
revoke insert on rolled from staff;
revoke all on rolled from robert;
\dp rolled
drop role staff, nosuch;
drop role if exists nosuch;
drop table app.mine;
drop schema app;
drop view v;
drop sequence sq;
drop table rolled;
drop role alicia;
revoke connect on database postgres from alicia;
drop role alicia;
drop role staff, robert;
\du alicia
\du robert
\du staff
create database roles_d1 owner nobody;
create database roles_d1 connection limit 3;
create database roles_d1;
create database roles_d2 template nosuch;
create database roles_d3 encoding 'LATIN1';
alter database roles_d1 rename to roles_d2;
alter database roles_d2 set work_mem = '5MB';
alter database roles_d2 connection limit 7;
alter database nosuch connection limit 7;
comment on database roles_d2 is 'second';
\l roles_d2
\drds
begin; create database roles_d9; rollback;
\c roles_d2
create table only_here (a int);
show work_mem;
select current_database();
drop database roles_d2;
\c postgres
drop database template1;
drop database nosuch;
drop database if exists nosuch;
drop database roles_d2;
create extension plpgsql;
create extension if not exists plpgsql;
