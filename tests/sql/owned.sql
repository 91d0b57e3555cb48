-- names: keeper heir guest boxes crate label parcel files
-- What belongs to a role is given to another, or dropped with what was given to the role.
create role keeper;
create role heir;
create role guest;
grant create on schema public to keeper;
create schema boxes authorization keeper;
set role keeper;
create table crate(label serial primary key, parcel int);
create view files as select count(*) from crate;
create table boxes.crate(label int);
grant select on crate to guest;
grant select (label), update (parcel) on crate to guest;
grant select on files to guest;
alter table crate owner to heir;
alter schema boxes owner to heir;
reset role;
grant heir to keeper;
set role keeper;
alter table crate owner to heir;
reset role;
grant create on schema public to heir;
set role keeper;
alter table crate owner to heir;
reset role;
select relname, pg_get_userbyid(relowner), relacl from pg_class where relname in ('crate', 'files', 'crate_label_seq') order by 1, 2;
select attname, attacl from pg_attribute where attrelid = 'crate'::regclass and attnum > 0 order by attnum;
set role heir;
insert into crate (parcel) values (1);
reset role;

reassign owned by keeper to nobody;
reassign owned by keeper, heir to guest;
select relname, nspname, pg_get_userbyid(relowner), relacl from pg_class c join pg_namespace n on n.oid = relnamespace where relname in ('crate', 'files', 'crate_label_seq') order by 1, 2;
select nspname, pg_get_userbyid(nspowner), nspacl from pg_namespace where nspname = 'boxes';
set role guest;
insert into crate (parcel) values (2);
select * from files;
reassign owned by keeper to guest;
drop owned by keeper;
reset role;
reassign owned by guest to keeper;
set role keeper;
grant select, insert on crate to guest;
reset role;

-- Dropped: what it owns, and what it was given.
drop owned by guest;
select relacl from pg_class where oid = 'crate'::regclass;
select attname, attacl from pg_attribute where attrelid = 'crate'::regclass and attnum > 0 order by attnum;
drop role guest;
create view boxes.files as select label from crate;
drop owned by keeper;
drop owned by keeper cascade;
select relname from pg_class where relname in ('crate', 'files', 'crate_label_seq');
drop owned by keeper, heir;
drop role keeper, heir;
reassign owned by postgres to current_user;
drop owned by postgres;
