-- names: zlv zlu
-- Locks on views that are no table with other columns, and on subqueries.
create table zlv (a int primary key, b int);
create table zlu (a int primary key, c int);
insert into zlv values (1, 1), (2, 1);
insert into zlu values (1, 5), (2, 6);
create view zlv_join as select zlv.a, zlu.c from zlv join zlu using (a);
create view zlv_agg as select count(*) from zlv;
create view zlv_group as select b from zlv group by b;
create view zlv_union as select a from zlv union all select a from zlu;
create view zlv_distinct as select distinct b from zlv;
create view zlv_window as select row_number() over () from zlv;
create view zlv_having as select 1 from zlv having true;
create view zlv_series as select generate_series(1, 2) from zlv;
create view zlv_inside as select * from (select a, count(*) from zlv group by a) s;
create view zlv_above as select * from zlv_agg;
create view zlv_values as select * from (values (1)) v(x);
create view zlv_with as with w as (select a from zlv) select * from w;
create view zlv_limit as select a from zlv order by a limit 1;
create view zlv_left as select zlv.a, zlu.c from zlv left join zlu using (a);
create view zlv_const as select 1 as x;
create view zlv_function as select * from generate_series(1, 2) g;
select * from zlv_join order by a for update;
select * from zlv_join order by a for key share of zlv_join;
select * from zlv_agg for update;
select * from zlv_agg for key share;
select * from zlv_group for share;
select * from zlv_union order by a for update;
select * from zlv_distinct for no key update;
select * from zlv_window for update;
select * from zlv_having for update;
select * from zlv_series for update;
select * from zlv_inside for update;
select * from zlv_above for update;
select * from zlv_values for update;
select * from zlv_with order by a for update;
select * from zlv_limit for update nowait;
select * from zlv_left for update;
select * from zlv_const for update;
select * from zlv_function order by 1 for update;
-- Only what is named.
select * from zlv, zlv_agg x for update of zlv;
select * from zlv, zlv_agg x for update of x;
-- Subqueries.
select * from (select a from zlv) s where a = 1 for update of s;
select * from (select a from zlv union select 1) s for update;
select * from (select count(*) from zlv) s for update;
select * from (values (1)) s for update;
select * from zlv, lateral (select c from zlu where zlu.a = zlv.a) s order by a for update;
-- What cannot be locked at all.
select a from zlv union select 1 for update;
(select a from zlv for update) union select 1;
values (1) for update;
with w as (select a from zlv) select * from w order by a for update;
with w as (select a from zlv) select * from w for update of w;
select * from generate_series(1, 2) g for update of g;
select * from zlv for share of nothing;
select * from zlv for update of public.zlv;
-- Outer joins.
select * from zlv left join zlu using (a) for update;
select * from zlv left join zlu using (a) order by a for update of zlv;
select * from zlv left join zlu using (a) where c > 5 for update;
select * from zlv full join zlu using (a) for update of zlv;
select * from zlv right join zlu using (a) for share of zlv;
select * from zlv right join zlu using (a) order by a for share of zlu;
select * from zlv left join (select 1 as a) s using (a) order by a for update;
select * from zlv left join (select a from zlu limit 1) s using (a) for update;
select * from zlv left join generate_series(1, 1) g on g = a order by a for update;
-- Others wait for them.
begin;
select * from zlv_join where a = 1 for update;
select count(*) > 1 from pg_locks where mode = 'RowShareLock' and relation in ('zlv'::regclass, 'zlu'::regclass);
commit;
-- Rights below.
create role zlv_role;
grant select, update on zlv_join to zlv_role;
set role zlv_role;
select * from zlv_join order by a for update;
reset role;
revoke update on zlv_join from zlv_role;
set role zlv_role;
select * from zlv_join for update;
reset role;
drop table zlv, zlu cascade;
drop view zlv_values, zlv_const, zlv_function;
drop role zlv_role;
