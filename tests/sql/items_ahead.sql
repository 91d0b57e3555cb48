-- names: iah ibh ivh iwh ixh
-- Queries of WITH RECURSIVE that name later ones, and how WITH, LIMIT and temporary tables are shown.
create table iah (a int);
insert into iah select generate_series(1, 6);
with recursive t as (select * from t2 where a > 2), t2 as (select a * 2 as a from iah) select * from t order by 1;
with recursive t(n) as (select a from t3 union all select n + 10 from t where n < 20), t3 as (select a from t4 limit 2), t4 as (select a from iah order by a desc) select * from t order by 1;
with recursive t as (insert into iah select a + 100 from t2 where a > 4 returning *), t2 as (update iah set a = a + 1 returning *) select * from t union all select * from t2 order by 1;
select * from iah order by 1;
with recursive iah as (select 7 as a from ibh), ibh as (select 1) select * from iah;
with recursive x as (with y as (select 1 as q) select q from y), y as (select q + 1 as q from x) select * from y;
with recursive x(i) as (select 1 union all select i + 1 from y where i < 5), y(i) as (select 1 union all select i + 1 from x where i < 5) select * from x;
with recursive x as (select * from y), y as (select * from z), z as (select * from x) select * from x;
with recursive t as (select 1), t as (select 2) select * from t;

-- SEARCH and CYCLE.
create table ibh (f int, t int, label text);
insert into ibh values (1, 2, '1 to 2'), (1, 3, '1 to 3'), (2, 3, '2 to 3'), (3, 1, '3 to 1');
create view ivh as with recursive s as (select * from ibh union all select g.* from ibh g, s where g.f = s.t and s.f < 2) search depth first by f, t set seq select f, t, label from s order by seq;
create view iwh as with recursive s(f, t, label) as (select * from ibh union all select g.* from ibh g, s where g.f = s.t) cycle f, t set is_cycle using path select f, t, label, is_cycle from s;
create view ixh as with recursive s(f, t, label) as (select * from ibh union all select g.* from ibh g, s where g.f = s.t) search breadth first by f set "Seq" cycle f, t set is_cycle to 'Y' default 'N' using "the path" select f, t, is_cycle from s order by "Seq";
select pg_get_viewdef('ivh');
select pg_get_viewdef('ivh', true);
select pg_get_viewdef('iwh');
select pg_get_viewdef('ixh');
select count(*) from ivh;
select count(*) from iwh;
select is_cycle, count(*) from ixh group by 1 order by 1;
drop view ivh, iwh, ixh;

-- Queries that cannot be named yet.
WITH ixh(x) AS (
  SELECT 1
  UNION (WITH iwh as (SELECT 2)
         SELECT * FROM ixh 
         UNION SELECT * FROM iwh)
)
SELECT * FROM ixh ORDER BY 1;
with a as (select * from ivh), ivh as (select 1) select * from a;
with a as (select * from a) select * from a;
with a as (select (select count(*) from ivh) from (select 1) s), ivh as (select 1) select * from a;
with a as (select * from public.ivh), ivh as (select 1) select * from a;
with a as (select 1), ivh as (select 2) select * from c;
with a as (insert into ivh values (1) returning *), ivh as (select 1) select * from a;
with a as (select 1) insert into ivh select * from a;
with recursive a as (select * from c), ivh as (select 1) select * from a;
with recursive a as (with x as (select * from y), y as (select 1) select * from x) select * from a;
with a as (delete from ivh), ivh as (select 1) select 1;
with a as (select 1 where exists (with d as (select * from ivh) select 1 from d)), ivh as (select 1) select 1;

-- LIMIT and FETCH FIRST.
create view ivh as select a from iah order by a offset 1 fetch first 2 rows with ties;
create view iwh as select a from iah order by a fetch first (null + 1) rows with ties;
create view ixh as select a from iah order by a limit all;
select pg_get_viewdef('ivh');
select pg_get_viewdef('ivh', true);
select pg_get_viewdef('iwh');
select pg_get_viewdef('iwh', true);
select pg_get_viewdef('ixh', true);
drop view ivh, iwh, ixh;
create view ivh as select a from iah order by a limit (2 + 1) offset 1 + 1;
create view iwh as select a from iah union all select 5 order by 1 limit 3::bigint;
create view ixh as select a from iah order by a fetch first (5::bigint) rows with ties;
select pg_get_viewdef('ivh');
select pg_get_viewdef('ivh', true);
select pg_get_viewdef('iwh', true);
select pg_get_viewdef('ixh', true);
drop view ivh, iwh, ixh;

-- Temporary tables are named without their schema.
create temporary table ixh (a int, b text default 'x' check (b <> ''));
create temporary view iwh as select ixh.a, iah.a as c from ixh, iah where ixh.a = iah.a;
select pg_get_viewdef('iwh');
select 'ixh'::regclass, pg_get_viewdef('iwh'::regclass, true);
create temporary table iah (z int);
select pg_get_viewdef('iwh', true);
drop view iwh;
drop table pg_temp.iah, ixh;
drop table iah, ibh;
