-- names: stype
-- Who stores an expression must be allowed to use the types that it names: whatever keeps it (views,
-- checks, defaults, indexes, policies, triggers, partition keys) would hold the type for its owner.
create role stype_other;
create schema stype_s;
grant usage, create on schema stype_s to stype_other;
set search_path to stype_s;
create domain stype_d as int;
create type stype_e as enum ('a', 'b');
revoke usage on type stype_d, stype_e from public;
create table stype_of (e stype_e);
grant select on stype_of to stype_other;
create function stype_fire() returns trigger language plpgsql as 'begin return new; end';
set role stype_other;
create table stype_t (n int, m text);
-- What is not stored is open to all.
select n::stype_d from stype_t where m = 'a'::stype_e::text;
alter table stype_t alter m type text using n::stype_d::text;
create function stype_text() returns int language sql as 'select 1::stype_d';
create view stype_v as select 1 as one where 'a'::stype_e > 'b';
create view stype_v as select e::text from stype_of where e = 'a';
create materialized view stype_v as select n::stype_d::int as n from stype_t;
create table stype_w (n int check (n::stype_d > 0));
create table stype_w (n int default 1::stype_d);
create table stype_w (n int, m int generated always as (n::stype_d + 1) stored);
create table stype_w (n int) partition by range ((n::stype_d + 0));
alter table stype_t add check (n::stype_d > 0);
alter table stype_t alter n set default 1::stype_d;
alter table stype_t add column g int generated always as (n::stype_d + 1) stored;
create index on stype_t ((n::stype_d + 1));
create index on stype_t (n) where n::stype_d > 1;
create policy stype_p on stype_t using (n::stype_d > 1);
create policy stype_p on stype_t with check (m::stype_e = 'a');
create trigger stype_t before insert on stype_t for each row when (new.n::stype_d > 1)
  execute function stype_fire();
create function stype_f(a int default 1::stype_d) returns int language sql as 'select 1';
create domain stype_o as int check (value::stype_d > 1);
create domain stype_o as int default 1::stype_d;
create policy stype_p on stype_t using (true);
alter policy stype_p on stype_t using (n::stype_d > 1);
create domain stype_o as int;
alter domain stype_o add check (value::stype_d > 1);
alter domain stype_o set default 1::stype_d;
reset role;
grant usage on type stype_d to stype_other;
set role stype_other;
create index on stype_t ((n::stype_d + 1));
alter policy stype_p on stype_t using (n::stype_d > 1);
create function stype_f(a int default 1::stype_d) returns int language sql as 'select 1';
create trigger stype_t before insert on stype_t for each row when (new.n::stype_d > 1)
  execute function stype_fire();
reset role;
drop schema stype_s cascade;
drop role stype_other;
