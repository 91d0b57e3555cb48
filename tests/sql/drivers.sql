-- names: crown rungs
-- What drivers and their libraries ask for besides queries: zones as intervals, names with the database
-- in front, types of parameters, limits, subqueries that introspection computes for few of its rows.
create table crown (id int primary key, name varchar(20), kind "char", at cidr);

-- Time zones as intervals.
set time zone interval '+00:00' hour to minute;
show time zone;
set time zone interval '2.5 h';
show time zone;
select '2024-01-01 00:00+00'::timestamptz;
set time zone interval '-03:30' hour to minute;
show time zone;
select '2024-01-01 00:00+00'::timestamptz;
set time zone interval '1:02:03.9';
show time zone;
set time zone interval(0) '1:02:03.9';
show time zone;
set time zone interval '-1:02:03.9' hour;
show time zone;
set timezone to 'interval ''5:00''';
show time zone;
set timezone = 'INTERVAL ''-05:45''';
show time zone;
set time zone interval '167:59:59';
show time zone;
set time zone interval '168:00';
set time zone interval '1 day';
set time zone interval '1 mon';
set time zone interval 'x';
set timezone to 'interval 2';
set timezone to 'interval ''2';
set timezone to 'interval';
set timezone to 'interval ''2'' ''';
begin;
set local time zone interval '7:00';
show time zone;
rollback;
set time zone 'UTC';

-- Names with the database in front.
select 'postgres.public.crown'::regclass, '"postgres"."public"."crown"'::regclass;
select 'other.public.crown'::regclass;
select 'a.b.c.d'::regclass;
select to_regclass('postgres.public.crown'), to_regclass('postgres.public.nowhere');
select to_regclass('other.public.crown');
select to_regclass('a.b.c.d');

-- An array that a parameter is, beside an operand.
prepare by_name as select id from crown where name = any($1);
prepare by_kind as select id from crown where kind = any($1);
prepare by_at as select id from crown where at = any($1);
prepare by_id as select id from crown where id = any($1) and name <> all($2);
select name, parameter_types from pg_prepared_statements order by name;
insert into crown values (1, 'a', 'x', '10.0.0.0/8'), (2, 'b', 'y', null);
execute by_name('{a,c}');
execute by_kind('{y}');
execute by_at('{10.0.0.0/8}');
execute by_id('{1,2}', '{b}');
deallocate all;

-- Limits.
show max_index_keys;
show max_function_args;
set max_index_keys = 5;
select name, setting, context, category from pg_settings where name in ('max_index_keys', 'max_function_args') order by name;

-- Columns that are subqueries, of a query in FROM that is joined.
create table rungs (item int, n int);
insert into rungs values (1, 10), (1, 20), (2, 30);
select d.id, d.total, l.n
from (select i.id, (select sum(n) from rungs where item = i.id) as total, (select max(n) from rungs) as most from crown i) d
join rungs l on l.item = d.id and l.n > 10 order by 1, 3;
select d.id, d.total
from (select i.id, (select sum(n) from rungs where item = i.id) as total from crown i) d
join rungs l on l.item = d.id where d.total > 20 order by 1;
select d.id, d.twice
from (select e.id, e.total * 2 as twice from (select i.id, (select sum(n) from rungs where item = i.id) as total from crown i) e) d, rungs l
where l.item = d.id and l.n = 30;
select l.n, d.total
from rungs l left join (select i.id, (select sum(n) from rungs where item = i.id) as total from crown i) d on d.id = l.item and l.n > 10 order by 1;
select d.total, d.total + 1 as more, case when d.id > 1 then d.total end as some
from (select i.id, (select sum(n) from rungs where item = i.id) as total from crown i) d, generate_series(1, 2) g where g = d.id order by 1;
with recursive tree(id, depth, total) as (
  select d.id, 0, d.total from (select i.id, (select sum(n) from rungs where item = i.id) as total from crown i) d where d.id = any('{1}'::int[])
  union all
  select d.id, t.depth + 1, d.total
  from (select i.id, (select sum(n) from rungs where item = i.id) as total from crown i) d, tree t where d.id = t.id + 1
) select * from tree order by 1;
drop table crown, rungs;
