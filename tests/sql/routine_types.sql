-- names: rtypes
-- Who makes a routine must be allowed to use the types of its arguments and of its result.
create role rtypes_other;
create schema rtypes_s;
grant usage, create on schema rtypes_s to rtypes_other;
set search_path to rtypes_s;
create domain rtypes_d as int;
create type rtypes_e as enum ('a', 'b');
revoke usage on type rtypes_d, rtypes_e from public;
set role rtypes_other;
create function rtypes_one(rtypes_d) returns int language sql as 'select 1';
create function rtypes_one(int) returns rtypes_d language sql as 'select 1';
create function rtypes_one(rtypes_e) returns int language sql as 'select 1';
create function rtypes_one(rtypes_e[]) returns int language sql as 'select 1';
create function rtypes_one(variadic rtypes_e[]) returns int language sql as 'select 1';
create function rtypes_one(out rtypes_e) language sql as 'select ''a''::rtypes_e';
create function rtypes_one(int) returns table (e rtypes_e) language sql as 'select ''a''::rtypes_e';
create function rtypes_one(int) returns setof rtypes_e language sql as 'select ''a''::rtypes_e';
create procedure rtypes_two(rtypes_d) language sql as 'select 1';
create procedure rtypes_two(int, inout rtypes_e) language plpgsql as 'begin end';
-- Values of them may be made in between.
create function rtypes_three() returns text language sql as 'select ''a''::rtypes_e::text';
create function rtypes_four() returns int language plpgsql as 'declare v rtypes_d := 4; begin return v; end';
select rtypes_three(), rtypes_four();
reset role;
grant usage on type rtypes_d to rtypes_other;
set role rtypes_other;
create function rtypes_one(rtypes_d) returns rtypes_d language sql as 'select $1';
create or replace function rtypes_one(rtypes_d) returns rtypes_d language sql as 'select $1 + 1';
select rtypes_one(1);
reset role;
revoke usage on type rtypes_d from rtypes_other;
set role rtypes_other;
select rtypes_one(1);
create or replace function rtypes_one(rtypes_d) returns rtypes_d language sql as 'select $1 + 2';
reset role;
drop schema rtypes_s cascade;
drop role rtypes_other;
