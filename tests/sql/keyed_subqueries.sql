-- names: kyq
-- Subqueries that look at the row around them by equalities: found by key once many rows have come.
create table kyq_o (id int primary key, k int, x int, t text);
create table kyq_t (id int primary key, k int, y int, z int, t text);
create table kyq_none (k int, y int);
insert into kyq_o select i, nullif(i % 13, 0), nullif(i % 5, 3), 'o' || i % 4 from generate_series(1, 60) as i;
insert into kyq_t select i, nullif(i % 11, 5), nullif(i % 7, 2), i % 3, 'o' || i % 6 from generate_series(1, 90) as i;
analyze kyq_o;
analyze kyq_t;
-- Aggregates: of no row count is 0, the others are NULL, and expressions over them may be anything.
select o.id, (select count(*) from kyq_t as t where t.k = o.k) from kyq_o as o order by 1;
select o.id, (select sum(t.y) from kyq_t as t where t.k = o.k and t.z = 1) from kyq_o as o where o.id < 30 order by 1;
select o.id, (select coalesce(max(t.y), -1) + count(*) from kyq_t as t where o.k = t.k and t.z > 0) from kyq_o as o where o.id < 30 order by 1;
select o.id, (select array_agg(distinct t.z order by t.z) from kyq_t as t where t.k = o.k) from kyq_o as o where o.id < 20 order by 1;
select sum((select count(*) from kyq_t as t where t.k = o.k and t.t = o.t)) from kyq_o as o;
select o.id from kyq_o as o where 3 < (select count(*) from kyq_t as t where t.k = o.k and t.y is not null) order by 1;
select o.id from kyq_o as o where o.x > (select 0.3 * avg(t.y) from kyq_t as t where t.k = o.k) order by 1;
select count(*) from kyq_o as o where (select count(*) from kyq_t as t where t.k = o.k + 1) > (select count(*) from kyq_t as t where t.k = o.x);
select o.id, (select sum(n) from (select t.k, count(*) as n from kyq_t as t group by t.k) as d where d.k = o.x) from kyq_o as o where o.id < 15 order by 1;
-- HAVING and groups.
select o.id, (select count(*) from kyq_t as t where t.k = o.k having count(*) > 8) from kyq_o as o where o.id < 20 order by 1;
select o.id, (select t.z from kyq_t as t where t.k = o.k group by t.z having count(*) > 40) from kyq_o as o where o.id < 5 order by 1;
select o.id from kyq_o as o where o.x in (select max(t.y) from kyq_t as t where t.k = o.k group by t.z) order by 1;
select o.id from kyq_o as o where o.x not in (select max(t.y) from kyq_t as t where t.k = o.k group by t.z) order by 1;
select o.id from kyq_o as o where o.x not in (select count(*) from kyq_t as t where t.k = o.k) order by 1;
select o.id from kyq_o as o where o.x = any (select max(t.y) from kyq_t as t where t.k = o.k) is null order by 1;
select o.id, exists (select count(*) from kyq_t as t where t.k = o.k) from kyq_o as o where o.id < 6 order by 1;
-- Rows: one, none, and more than one.
select o.id, (select t.t from kyq_t as t where t.id = o.k) from kyq_o as o where o.id < 20 order by 1;
select o.id, (select t.t from kyq_t as t where t.k = o.k and t.z = 0) from kyq_o as o where o.k = 14 order by 1;
select count((select t.t from kyq_t as t where t.k = o.k)) from kyq_o as o;
select count((select t.t from kyq_t as t where t.k = o.k)) from kyq_o as o where o.k is null;
-- NOT IN, <> ALL, = ANY with NULLs on either side.
select o.id from kyq_o as o where o.x not in (select t.y from kyq_t as t where t.k = o.k) order by 1;
select o.id, o.x not in (select t.y from kyq_t as t where t.k = o.k) from kyq_o as o order by 1;
select o.id, o.x <> all (select t.y from kyq_t as t where t.k = o.k) from kyq_o as o where o.id < 20 order by 1;
select o.id, o.x = any (select t.y from kyq_t as t where t.k = o.k and t.z = 1) as found from kyq_o as o where o.id < 30 order by 1;
select o.id, o.x < all (select t.y from kyq_t as t where t.k = o.k and t.z = 1) as found from kyq_o as o where o.id < 30 order by 1;
select o.id, (o.x, o.t) in (select t.y, t.t from kyq_t as t where t.k = o.k) as found from kyq_o as o order by 1;
select o.id, (o.x, o.id % 3) not in (select t.y, t.z from kyq_t as t where t.k = o.k) as found from kyq_o as o order by 1;
-- The same without keys.
select o.id, o.x not in (select t.y from kyq_t as t) from kyq_o as o where o.id < 12 order by 1;
select o.id, o.x not in (select t.y from kyq_t as t where t.y > 1) from kyq_o as o where o.id < 12 order by 1;
select o.id, o.x <> all (select t.y from kyq_t as t where t.y > 1) from kyq_o as o where o.id < 12 order by 1;
select o.id, o.x <> all (select t.y from kyq_t as t) from kyq_o as o where o.id < 12 order by 1;
select o.id, o.x not in (select y from kyq_none), o.x <> all (select y from kyq_none), o.x = any (select y from kyq_none) from kyq_o as o where o.id < 5 order by 1;
select o.id, (o.x, o.k) not in (select t.y, t.k from kyq_t as t) from kyq_o as o where o.id < 20 order by 1;
select o.id, (o.x, null) not in (select t.y, t.k from kyq_t as t where t.y = 1) from kyq_o as o where o.id < 8 order by 1;
select 1 not in (select null::int), null::int not in (select 1 where false), null::int not in (select 1), 1 not in (select 2);
-- EXISTS where it is no condition by itself.
select o.id from kyq_o as o where o.id < 4 or exists (select 1 from kyq_t as t where t.k = o.k and t.y = 6) order by 1;
select o.id, not exists (select 1 from kyq_t as t where t.k = o.k and t.t = o.t) as missing from kyq_o as o where o.id < 25 order by 1;
-- What is compared may fail, or what is computed, of rows that nobody asks for.
create table kyq_d (k int, v int);
insert into kyq_d select i, i - 8 from generate_series(1, 20) as i;
analyze kyq_d;
select o.id, (select sum(10 / d.v) from kyq_d as d where d.k = o.k) from kyq_o as o where o.id between 9 and 25 and o.k <> 8 order by 1;
select o.id, (select sum(10 / d.v) from kyq_d as d where d.k = o.k) from kyq_o as o where o.id between 1 and 12 order by 1;
select o.id, (select count(*) from kyq_none as n where n.k = 1 / (o.id - 5)) from kyq_o as o where o.id between 1 and 8 order by 1;
-- What differs each time is computed each time.
create function kyq_noisy(n int) returns int language plpgsql volatile as $$ begin raise notice 'noisy %', n; return n; end $$;
select o.id, (select max(kyq_noisy(t.y)) from kyq_t as t where t.k = o.k and t.id < 9) from kyq_o as o where o.id < 6 order by 1;
-- Within one another, with LATERAL, and below outer joins.
select o.id, (select max((select count(*) from kyq_t as u where u.k = t.k)) from kyq_t as t where t.k = o.k) from kyq_o as o where o.id < 20 order by 1;
select o.id, l.n from kyq_o as o, lateral (select (select count(*) from kyq_t as t where t.k = o.k) as n) as l where o.id < 14 order by 1;
select o.id, p.id, (select count(*) from kyq_t as t where t.k = p.k) from kyq_o as o left join kyq_o as p on p.id = o.id + 50 where o.id > 5 order by 1;
select o.k, (select count(*) from kyq_t as t where t.k = o.k), count(*) from kyq_o as o group by o.k order by 1;
select o.k, (select max(t.y) from kyq_t as t where t.k = count(*)) from kyq_o as o group by o.k order by 1;
select o.k from kyq_o as o group by o.k having sum(o.x) > (select avg(t.id) / 4 from kyq_t as t where t.k = o.k) order by 1;
-- Types: what equals another may look otherwise.
create table kyq_n (k numeric, c char(4), f float8, v varchar(5));
insert into kyq_n values (1.0, 'a', '-0', 'a'), (1.00, 'a ', 'nan', 'b'), (2, 'b', 0, 'a '), (null, null, null, null);
select k, c, f, (select count(*) from kyq_n as m where m.k = n.k), (select count(*) from kyq_n as m where m.c = n.c),
  (select count(*) from kyq_n as m where m.f = n.f), (select count(*) from kyq_n as m where m.v = n.v) from kyq_n as n order by 1, 2, 3;
-- Parameters, and statements that write.
prepare kyq_p(int) as select count(*) from kyq_o as o where o.x < (select count(*) from kyq_t as t where t.k = o.k and t.z = $1);
execute kyq_p(0);
execute kyq_p(1);
execute kyq_p(7);
begin;
update kyq_o as o set x = (select count(*) from kyq_t as t where t.k = o.k);
select sum(x), count(*) from kyq_o;
update kyq_o as o set x = x + (select sum(p.x) from kyq_o as p where p.k = o.k);
select sum(x), count(*) from kyq_o;
delete from kyq_o as o where o.x not in (select t.y from kyq_t as t where t.k = o.k);
select sum(x), count(*) from kyq_o;
rollback;
select o.id from kyq_o as o where o.x = (select min(t.y) from kyq_t as t where t.k = o.k) order by o.id for update;
-- Who may not see rows does not count them.
create role kyq_role;
alter table kyq_t enable row level security;
create policy kyq_policy on kyq_t to kyq_role using (z = 1);
grant select on kyq_o, kyq_t to kyq_role;
set role kyq_role;
select sum((select count(*) from kyq_t as t where t.k = o.k)), count(*) filter (where o.x not in (select t.y from kyq_t as t where t.k = o.k)) from kyq_o as o;
reset role;
select sum((select count(*) from kyq_t as t where t.k = o.k)), count(*) filter (where o.x not in (select t.y from kyq_t as t where t.k = o.k)) from kyq_o as o;
create view kyq_view with (security_barrier) as select * from kyq_t where z = 1;
select sum((select count(*) from kyq_view as t where t.k = o.k)) from kyq_o as o;
drop view kyq_view;
drop table kyq_o, kyq_t, kyq_none, kyq_d, kyq_n;
drop function kyq_noisy;
drop role kyq_role;
