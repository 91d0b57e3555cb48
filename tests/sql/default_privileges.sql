-- names: keeper heir guest boxes crate label parcel files
-- What ALTER DEFAULT PRIVILEGES says holds for whatever is made later, however it is made.
create role keeper;
create role heir;
create role guest;
grant create on schema public to keeper;
create schema boxes authorization keeper;
set role keeper;
create table crate(label int);
alter default privileges grant select on tables to guest;
alter default privileges in schema boxes grant insert on tables to guest, heir;
alter default privileges in schema boxes grant usage on sequences to guest with grant option;
alter default privileges revoke execute on functions from public;
alter default privileges grant usage on types to guest;
alter default privileges grant usage, create on schemas to guest;
select relacl from pg_class where relname = 'crate';
select pg_get_userbyid(defaclrole), defaclnamespace::regnamespace, defaclobjtype, defaclacl from pg_default_acl order by 2, 3;
\ddp
\ddp boxes
-- Every way to make something.
drop table crate;
create table crate(label serial, parcel int generated always as identity);
create table boxes.parcel(like crate);
create table boxes.files as select 1 as label;
select 1 as label into boxes.label;
create view boxes.heir as select 1 as label;
create materialized view boxes.guest as select 1 as label;
create sequence boxes.keeper;
create table boxes.late(label int);
alter table boxes.late add column parcel serial;
alter table boxes.late alter column label set not null, alter column label add generated always as identity;
select relnamespace::regnamespace::text ~ 'boxes' as here, relname, relacl from pg_class where relkind in ('r', 'v', 'm', 'S') and relowner = 'keeper'::regrole order by relkind, oid;
reset role;
grant create on database postgres to keeper;
set role keeper;
create schema files create table files(label int) create sequence parcel;
select nspname, nspacl from pg_namespace where nspname = 'files';
select relname, relacl from pg_class where relnamespace = 'files'::regnamespace order by relkind, oid;
set role guest;
select * from crate;
insert into boxes.parcel values (1);
reset role;
grant usage on schema boxes to guest;
set role guest;
insert into boxes.parcel values (1);
update boxes.parcel set label = 2;
select nextval('boxes.keeper') > 0;
reset role;

-- What is taken.
set role keeper;
drop table crate;
alter default privileges revoke all on tables from keeper;
create table crate(label int);
select relacl from pg_class where relname = 'crate' and relnamespace = 'public'::regnamespace;
select * from crate;
alter default privileges grant all on tables to keeper;
alter default privileges revoke select on tables from guest;
alter default privileges in schema boxes revoke insert on tables from guest, heir;
alter default privileges grant execute on functions to public;
select defaclnamespace::regnamespace, defaclobjtype, defaclacl from pg_default_acl order by 1, 2;

-- What is refused.
alter default privileges in schema boxes grant usage on schemas to guest;
alter default privileges grant execute on tables to guest;
alter default privileges grant select on sequences to guest;
alter default privileges grant connect on schemas to guest;
alter default privileges grant select (label) on tables to guest;
alter default privileges grant all on tables to public with grant option;
alter default privileges for role absent grant all on tables to public;
alter default privileges in schema absent grant all on tables to public;
alter default privileges for role heir grant all on tables to public;
alter default privileges grant nonsense on tables to guest;
reset role;
alter default privileges for role keeper, heir grant trigger on tables to guest;
alter default privileges for user heir in schema boxes, public grant select on tables to guest with grant option;
alter default privileges for user heir in schema boxes revoke grant option for select on tables from guest;
select defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype, defaclacl from pg_default_acl order by 1, 2, 3;
begin;
alter default privileges for role heir grant delete on tables to guest;
rollback;
set default_transaction_read_only = on;
alter default privileges for role heir grant delete on tables to guest;
reset default_transaction_read_only;
select count(*) from pg_default_acl;

-- What depends on it.
drop role guest;
drop role heir;
reassign owned by heir to keeper;
drop role heir;
drop owned by heir;
drop role heir;
drop owned by guest;
select defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype, defaclacl from pg_default_acl order by 1, 2, 3;
alter default privileges for role keeper in schema boxes grant select on tables to public;
alter schema boxes rename to parcel;
\ddp
drop schema parcel, files cascade;
\ddp
alter default privileges for role keeper grant select on tables to guest;
drop owned by keeper cascade;
select count(*) from pg_default_acl;
drop role keeper, guest;
