-- names: orchard rootstock keeper stranger seedling
-- Extended statistics: the object.
create table orchard (apple int, barrel text, cider numeric, pressed date, vat json, grafted point, unused int);
create statistics keeper on apple, barrel from orchard;
create statistics keeper on apple, barrel from orchard;
create statistics if not exists keeper on apple, barrel from orchard;
create statistics nosuch on apple, barrel from nothing;
create statistics nosuch on apple from orchard;
create statistics nosuch on (apple) from orchard;
create statistics nosuch on apple, absent from orchard;
create statistics nosuch on apple, apple, barrel from orchard;
create statistics nosuch on apple, (apple), barrel from orchard;
create statistics nosuch on (apple + 1), (apple + 1), barrel from orchard;
create statistics nosuch on apple, barrel, cider, pressed, unused, (apple + 1), (apple + 2), (apple + 3), (apple + 4) from orchard;
create statistics nosuch on apple, ctid from orchard;
create statistics nosuch on tableoid, apple from orchard;
create statistics nosuch on apple, vat from orchard;
create statistics nosuch on apple, grafted from orchard;
create statistics nosuch on apple, (vat -> 'a') from orchard;
create statistics nosuch (nothing) on apple, barrel from orchard;
create statistics nosuch (mcv, nothing) on apple, barrel from orchard;
create statistics nosuch (mcv) on (apple + 1) from orchard;
create statistics nosuch on apple, (sum(apple)) from orchard;
create statistics nosuch on apple, (row_number() over ()) from orchard;
create statistics nosuch on apple, ((select 1)) from orchard;
create statistics nosuch on apple, generate_series(1, apple) from orchard;
create statistics nosuch on apple, (absent + 1) from orchard;
create statistics nosuch on apple, barrel from orchard, orchard;
create statistics nosuch on apple, barrel from (select * from orchard) s;
create statistics nosuch on relname, relkind from pg_class;
create view rootstock as select apple, barrel from orchard;
create statistics nosuch on apple, barrel from rootstock;
drop view rootstock;
create sequence seedling;
create statistics nosuch on last_value, is_called from seedling;
create index seedling_apple on orchard (apple);
create statistics nosuch on apple, barrel from seedling_apple;
drop sequence seedling;
create statistics absent.nosuch on apple, barrel from orchard;
-- What they are.
create statistics keeper_some (mcv, dependencies) on pressed, barrel, apple from orchard;
create statistics keeper_expr on (apple + 1), lower(barrel), cider from orchard;
create statistics keeper_one on (apple % 7) from orchard;
create statistics keeper_call on date_trunc('day', pressed) from orchard;
create statistics keeper_case (ndistinct) on (case apple when 1 then true else false end), barrel from orchard;
select stxname, stxrelid::regclass, stxnamespace::regnamespace, stxowner::regrole, stxstattarget, stxkeys, stxkind, pg_get_expr(stxexprs, stxrelid)
  from pg_statistic_ext where stxname like 'keeper%' order by stxname;
select stxname, pg_get_statisticsobjdef(oid), pg_get_statisticsobjdef_columns(oid), pg_get_statisticsobjdef_expressions(oid), pg_statistics_obj_is_visible(oid)
  from pg_statistic_ext where stxname like 'keeper%' order by stxname;
select pg_get_statisticsobjdef(0), pg_get_statisticsobjdef_columns(1), pg_get_statisticsobjdef_expressions(2), pg_statistics_obj_is_visible(3);
select pg_describe_object(tableoid, oid, 0) from pg_statistic_ext where stxname = 'keeper';
select deptype, refobjsubid from pg_depend d join pg_statistic_ext s on d.objid = s.oid and classid = 'pg_statistic_ext'::regclass
  where stxname = 'keeper_expr' and refclassid = 'pg_class'::regclass order by 2;
\d orchard
\dX keeper*
-- Changes.
alter statistics keeper set statistics 50;
alter statistics keeper set statistics -2;
alter statistics keeper set statistics 20000;
alter statistics absent set statistics 5;
alter statistics if exists absent set statistics 5;
alter statistics if exists absent.absent set statistics 5;
select stxstattarget from pg_statistic_ext where stxname = 'keeper';
alter statistics keeper set statistics -1;
alter statistics keeper rename to keeper_some;
alter statistics keeper rename to keeper_zip;
alter statistics absent rename to keeper_zip;
create schema stranger;
create statistics stranger.keeper_zip on apple, cider from orchard;
alter statistics stranger.keeper_zip set schema public;
alter statistics keeper_zip set schema stranger;
alter statistics stranger.keeper_zip rename to keeper_far;
alter statistics stranger.keeper_far set schema public;
alter statistics keeper_far set schema absent;
comment on statistics keeper_zip is 'what is kept';
comment on statistics absent is 'what is not';
select obj_description(oid, 'pg_statistic_ext') from pg_statistic_ext where stxname = 'keeper_zip';
comment on statistics keeper_zip is null;
select obj_description(oid, 'pg_statistic_ext') from pg_statistic_ext where stxname = 'keeper_zip';
alter table orchard rename column apple to apples;
alter table orchard rename to orchard_old;
select pg_get_statisticsobjdef(oid) from pg_statistic_ext where stxname like 'keeper_%' order by 1;
alter table orchard_old rename to orchard;
alter table orchard rename column apples to apple;
-- LIKE.
comment on statistics keeper_expr is 'of expressions';
create table orchard_twin (unused int, extra int, like orchard including all excluding indexes excluding comments) ;
create table orchard_twin (extra int, like orchard including statistics including comments);
create table orchard_none (like orchard);
select stxname, pg_get_statisticsobjdef(s.oid), obj_description(s.oid, 'pg_statistic_ext') from pg_statistic_ext s
  where stxrelid in ('orchard_twin'::regclass, 'orchard_none'::regclass) order by 1;
drop table orchard_twin, orchard_none;
-- They go with what they are about.
alter table orchard drop column cider;
select stxname from pg_statistic_ext where stxrelid = 'orchard'::regclass order by 1;
create function stranger.twice(int) returns int language sql immutable as 'select 2 * $1';
create statistics keeper_call2 on (stranger.twice(apple)), barrel from orchard;
drop function stranger.twice(int);
drop schema stranger;
drop schema stranger cascade;
select stxname from pg_statistic_ext where stxrelid = 'orchard'::regclass order by 1;
drop statistics absent;
drop statistics if exists absent;
drop statistics if exists absent.absent;
drop statistics keeper_one, absent;
drop statistics keeper_one, keeper_call;
-- Types.
alter table orchard alter barrel type varchar(20);
select pg_get_statisticsobjdef(oid) from pg_statistic_ext where stxrelid = 'orchard'::regclass order by 1;
alter table orchard alter barrel type json using null;
alter table orchard alter apple type bigint;
select pg_get_statisticsobjdef(oid) from pg_statistic_ext where stxrelid = 'orchard'::regclass order by 1;
-- In a transaction that is rolled back, and one that only reads.
begin;
drop statistics keeper_zip;
create statistics keeper_zip on apple, unused from orchard;
select pg_get_statisticsobjdef(oid) from pg_statistic_ext where stxname = 'keeper_zip';
rollback;
select pg_get_statisticsobjdef(oid) from pg_statistic_ext where stxname = 'keeper_zip';
begin read only;
create statistics seedling on apple, unused from orchard;
rollback;
begin read only;
drop statistics keeper_zip;
rollback;
-- Who may.
create role keeper_maker;
grant usage, create on schema public to keeper_maker;
grant all on orchard to keeper_maker;
set role keeper_maker;
create statistics seedling on apple, unused from orchard;
alter statistics keeper_zip rename to seedling;
alter statistics keeper_zip set statistics 5;
alter statistics keeper_zip set schema public;
comment on statistics keeper_zip is 'x';
drop statistics keeper_zip;
select count(*) from pg_statistic_ext where stxname = 'keeper_zip';
select count(*) from pg_statistic_ext_data;
create table orchard_own (one int, two int);
create statistics keeper_stat on one, two from orchard_own;
reset role;
alter statistics keeper_zip owner to keeper_maker;
alter statistics absent owner to keeper_maker;
drop role keeper_maker;
set role keeper_maker;
alter statistics keeper_zip rename to seedling;
alter statistics seedling owner to postgres;
drop statistics seedling;
reset role;
reassign owned by keeper_maker to current_user;
drop owned by keeper_maker;
select stxname, stxowner = current_user::regrole from pg_statistic_ext where stxname like 'keeper_st%';
drop role keeper_maker;
drop table orchard_own;
drop table orchard;
select count(*) from pg_statistic_ext where stxname ~ 'keeper';
-- Temporary tables.
create temp table orchard (apple int, barrel int);
create statistics pg_temp.keeper on apple, barrel from orchard;
select stxname, pg_statistics_obj_is_visible(oid) from pg_statistic_ext where stxname = 'keeper';
drop statistics keeper;
drop statistics pg_temp.keeper;
create statistics pg_temp.keeper on apple, barrel from orchard;
drop table orchard;
select count(*) from pg_statistic_ext where stxname = 'keeper';
-- Materialized views and partitioned tables.
create materialized view orchard as select g as apple, g % 3 as barrel from generate_series(1, 20) g;
create statistics keeper on apple, barrel from orchard;
drop materialized view orchard;
create table orchard (apple int, barrel int) partition by list (apple);
create table orchard_one partition of orchard for values in (1);
create statistics keeper on apple, barrel from orchard;
create statistics keeper_one on apple, barrel from orchard_one;
select pg_get_statisticsobjdef(oid) from pg_statistic_ext where stxname like 'keeper%' order by 1;
drop table orchard;
select count(*) from pg_statistic_ext where stxname like 'keeper%';
