-- names: restrop
-- What is done for the owner of an object, whoever asks for it, leaves nothing behind that would run
-- later with the rights of whoever asked.
create role restrop_owner;
create role restrop_group;
create schema restrop_s authorization restrop_owner;
set search_path to restrop_s;
set role restrop_owner;
create function restrop_grant() returns void language sql as 'grant restrop_group to restrop_owner';
create function restrop_act() returns bool language sql as
  'declare restrop_c cursor with hold for select restrop_grant(); select true';
create materialized view restrop_view as select restrop_act() with no data;
refresh materialized view restrop_view;
reset role;
refresh materialized view restrop_view;
select pg_has_role('restrop_owner', 'restrop_group', 'member');

-- A deferred trigger would run when the transaction of whoever asked ends.
set role restrop_owner;
create table restrop_trap (i int);
create function restrop_fire() returns trigger language plpgsql as
  'begin perform restrop_grant(); return null; end';
create constraint trigger restrop_t after insert on restrop_trap initially deferred
  for each row execute procedure restrop_fire();
create or replace function restrop_act() returns bool language sql as
  'insert into restrop_trap values (1); select true';
refresh materialized view restrop_view;
reset role;
refresh materialized view restrop_view;
begin;
set constraints all immediate;
refresh materialized view restrop_view;
rollback;
-- What it defers by itself, too.
create or replace function restrop_act() returns bool language plpgsql as
  'begin set constraints all deferred; insert into restrop_trap values (1); return true; end';
refresh materialized view restrop_view;
select pg_has_role('restrop_owner', 'restrop_group', 'member');
-- Whoever writes for itself may.
begin;
set role restrop_owner;
insert into restrop_trap values (2);
reset role;
rollback;

-- A deferred foreign key is one, too.
set role restrop_owner;
create table restrop_parent (i int primary key);
create table restrop_child (i int references restrop_parent deferrable initially deferred);
create or replace function restrop_act() returns bool language sql as
  'insert into restrop_child values (1); select true';
refresh materialized view restrop_view;
insert into restrop_parent values (1);
create or replace function restrop_act() returns bool language sql as
  'delete from restrop_parent; select true';
refresh materialized view restrop_view;

-- Nor does it change what the session has.
create function restrop_try(text) returns text language plpgsql as
  'begin execute $1; return null; exception when others then return sqlstate || '' '' || sqlerrm; end';
create materialized view restrop_tries as
  select statement, restrop_try(statement) as outcome
  from (values ('prepare restrop_p as select 1'), ('deallocate restrop_p'), ('deallocate all'),
    ('close all'), ('close restrop_c'), ('discard plans'), ('discard sequences'), ('discard temp'),
    ('create temp table restrop_u (i int)'), ('set work_mem = ''1MB'''),
    ('set local work_mem = ''1MB'''), ('reset work_mem'), ('set role restrop_group'), ('reset role'),
    ('declare restrop_c cursor with hold for select 1'), ('show work_mem')) s(statement);
select * from restrop_tries order by statement collate "C";
reset role;
refresh materialized view restrop_tries;
select * from restrop_tries order by statement collate "C";

-- The same holds for what indexes compute when they are built.
set role restrop_owner;
create function restrop_index(int) returns int immutable language plpgsql as
  'begin insert into restrop_trap values ($1); return $1; exception when others then
   raise notice ''% %'', sqlstate, sqlerrm; return $1; end';
create table restrop_indexed (i int);
insert into restrop_indexed values (7);
reset role;
create index restrop_i on restrop_s.restrop_indexed (restrop_index(i));
reindex index restrop_s.restrop_i;
select pg_has_role('restrop_owner', 'restrop_group', 'member');

-- What a foreign key's action sets off is no such operation, though it acts for an owner.
create table restrop_up (i int primary key);
create table restrop_down (i int references restrop_up on delete cascade);
grant usage on schema restrop_s to public;
create function restrop_before() returns trigger language plpgsql as
  'begin create temp table restrop_made (i int); set restrop.seen = ''yes'';
   raise notice ''% %'', current_user, session_user = current_user; return old; end';
create trigger restrop_b before delete on restrop_down for each row execute function restrop_before();
create constraint trigger restrop_d after delete on restrop_down deferrable initially deferred
  for each row execute function restrop_fire();
insert into restrop_up values (1);
insert into restrop_down values (1);
alter table restrop_down owner to restrop_owner;
create or replace function restrop_grant() returns void language plpgsql as
  'begin raise notice ''at the end''; end';
delete from restrop_up;
show restrop.seen;
select count(*) from restrop_made;
drop table restrop_made;
drop schema restrop_s cascade;
drop role restrop_owner;
drop role restrop_group;
