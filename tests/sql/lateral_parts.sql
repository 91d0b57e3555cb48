-- names: lta ltb ltc lvs
-- LATERAL items that become a part of the query around them, and conditions that are known when a plan is made.
create table lta (x int, y int, n text);
create table ltb (k int primary key, y int);
create table ltc (k int, z int, n text);
insert into lta select i, i % 7, case when i % 5 = 0 then null else 'n' || i end from generate_series(1, 40) i;
insert into lta values (null, 3, 'no x'), (41, null, 'no y');
insert into ltb select i, i % 4 from generate_series(1, 60, 2) i;
insert into ltc select i % 20, i, case when i % 3 = 0 then null else 'c' || i end from generate_series(1, 50) i;
analyze lta, ltb, ltc;

-- One row without FROM, joined inside.
select lta.x, ltb.k, s.v from lta, lateral (values (lta.x)) s(v), ltb where ltb.k = s.v and lta.y = 1 order by 1, 2;
select lta.x, ltb.k, s.v from lta join lateral (select lta.x + 1 as v) s on true join ltb on ltb.k = s.v order by 1, 2 limit 5;
select count(*) from lta a, lta b join lateral (values (a.x)) ss(v) on b.y = ss.v;
select a.x, b.x, ss.v from lta a, lta b join lateral (values (a.x + b.y)) ss(v) on b.x = ss.v order by 1, 2, 3 limit 6;
select a.x, s.* from lta a join lateral (select a.x * 2 as v, a.n || '!' as w) s on s.v > 70 order by 1;
select s from lta a, lateral (select a.x, a.n) s where a.y = 2 order by a.x;
select s.*, (s).w from lta a, lateral (select a.x, a.n) s(v, w) where a.y = 2 order by a.x;
select a.x from lta a, lateral (values (a.x, a.y)) s(v, w) where s is null or (s.v, s.w) = (3, 3) order by 1;
select a.x, row(s.*) from lta a, lateral (select) s where a.x < 3 order by 1;
select s.v, t.v from (select 1 as v) s, (values (2)) t(v);
select s.v, a.x from (select 5 as v) s join lta a on a.x = s.v;
select s.v, a.x from (values (5, 'five')) s(v, w) left join lta a on a.x = s.v + 100;
select * from (select 5 as v) s right join (select 6 as w) t on s.v = t.w;
select * from (select 5 as v) s full join (select 6 as w) t on s.v = t.w order by 1;
select * from (select 5 as v) s full join (select 5 as w) t on s.v = t.w;
select * from (select 1 as v where false) s right join ltb on ltb.k = s.v where ltb.k < 4 order by 1, 2;
select a.x, s.v from lta a, lateral (select a.y as v where a.x > 38) s order by 1;

-- On the side of an outer join that may be missing.
select a.x, s.v from lta a left join lateral (values (a.y)) s(v) on a.x > 38 where a.x > 36 order by 1;
select a.x, s.v from lta a left join lateral (values (a.y)) s(v) on true where a.x > 38 order by 1;
select a.x, s.v from lta a left join lateral (select 7 as v) s on a.x = 40 where a.x > 38 order by 1;
select a.x, s.v from lta a left join lateral (select a.y as v where a.x = 40) s on true where a.x > 38 order by 1;
select ltb.k, s.v, s.w from ltb left join (lta a join lateral (values (a.x, a.y + 1)) s(v, w) on true) on ltb.k = s.v where ltb.k > 35 order by 1;
select ltb.k, s.v from ltb left join (lta a join lateral (values (a.x)) s(v) on true) on ltb.k = s.v where ltb.k > 35 order by 1;
select ltb.k, s.v from (lta a join lateral (values (a.x)) s(v) on true) right join ltb on ltb.k = s.v where ltb.k > 35 order by 1;
select ltb.k, s.v, s.w from (lta a join lateral (values (a.x, coalesce(a.n, '-'))) s(v, w) on true) right join ltb on ltb.k = s.v where ltb.k > 33 order by 1;
select ltb.k, s.v, s.w from (lta a join lateral (values (a.x, coalesce(a.n, '-'))) s(v, w) on true) full join ltb on ltb.k = s.v where coalesce(ltb.k, s.v) > 35 order by 1, 2;
select ltb.k, s.v from ltb left join lta a on a.x = ltb.k cross join lateral (select coalesce(a.x, -1) as v) s where ltb.k > 35 order by 1;
select ltb.k, s.v from ltb left join lta a on a.x = ltb.k cross join lateral (select coalesce(a.x, -1) as v) s where s.v = -1 order by 1 limit 3;
select ltb.k, s.v from ltb left join lta a on a.x = ltb.k left join lateral (select coalesce(a.x, -1) as v) s on s.v > 0 where ltb.k > 35 order by 1;
select ltb.k, s.v from ltb left join lta a on a.x = ltb.k left join lateral (select a.x as v) s on s.v is null where ltb.k > 35 order by 1;
select ltb.k, s.v, ltc.z from ltb left join lateral (select ltb.k + 1 as v) s on ltb.y = 1 left join ltc on ltc.k = s.v where ltb.k < 10 order by 1, 3;
select ltb.k, s.v, ltc.z from ltb left join lateral (select ltb.k + 1 as v) s on ltb.y = 1 join ltc on ltc.k = s.v where ltb.k < 10 order by 1, 3;
select ltb.k, ltc.z, s.v from ltb left join ltc on ltc.k = ltb.k left join lateral (values (ltc.z, 1)) s(v, one) on s.one = 1 and s.v > 20 where ltb.k < 8 order by 1, 2;
select ltb.k, t.w from ltb left join (ltc join lateral (select ltc.k as u, 'there' as w) t on t.u = ltc.k) on t.u = ltb.k and ltc.z < 20 where ltb.k < 23 order by 1;

-- With FROM.
select a.x, s.k from lta a, lateral (select * from ltb where ltb.k = a.x) s where a.y = 1 order by 1;
select a.x, s.k, s.v from lta a, lateral (select ltb.k, ltb.y + a.y as v from ltb where ltb.k > a.x and ltb.y = a.y) s where a.y = 1 and a.x < 10 order by 1, 2 limit 5;
select a.x, s.k from lta a left join lateral (select * from ltb where ltb.k = a.x) s on true where a.y = 1 order by 1;
select a.x, s.k, s.v from lta a left join lateral (select ltb.k, a.y as v from ltb where ltb.k = a.x) s on true where a.y = 1 order by 1;
select a.x, s.k from lta a left join lateral (select * from ltb where ltb.k = a.x) s on s.y = 3 where a.y = 1 order by 1;
select a.x, s.k, s.z from lta a, lateral (select ltb.k, ltc.z from ltb join ltc on ltc.k = ltb.k and ltc.z > a.y where ltb.k = a.x) s where a.x < 6 order by 1, 2, 3;
select a.x, s.k, s.z from lta a, lateral (select ltb.k, ltc.z from ltb left join ltc on ltc.k = ltb.k and ltc.z > a.x + 20 where ltb.k = a.x) s where a.x < 12 order by 1, 2, 3;
select a.x, s.k, s.z from lta a left join lateral (select ltb.k, ltc.z from ltb left join ltc on ltc.k = ltb.k and ltc.z > a.x + 20 where ltb.k = a.x) s on true where a.x < 12 order by 1, 2, 3;
select a.x, s.k, s.z from lta a left join lateral (select ltb.k, ltc.z from ltb join ltc on ltc.k = ltb.k and ltc.z > a.x + 20 where ltb.k = a.x) s on true where a.x < 12 order by 1, 2, 3;
select a.x, s.z from lta a, lateral (select z from ltc where ltc.k = a.x order by z desc limit 1) s where a.y = 2 order by 1;
select a.x, s.z from lta a, lateral (select max(z) as z from ltc where ltc.k = a.x) s where a.y = 2 order by 1;
select a.x, s.z from lta a left join lateral (select max(z) as z from ltc where ltc.k = a.x group by ltc.k) s on true where a.y = 2 order by 1;
select a.x, g from lta a, lateral (select * from generate_series(1, a.y) g) s where a.x < 4 order by 1, 2;
select a.x, s.v from lta a, lateral (select distinct ltc.n as v from ltc where ltc.k = a.x) s where a.x < 4 order by 1, 2;
select a.x, s.v from lta a, lateral (select ltc.n as v from ltc where ltc.k = a.x union all select a.n) s where a.x < 4 order by 1, 2;

-- LATERAL behind and inside of LATERAL.
select a.x, t.w from lta a, lateral (values (a.x + 1)) s(v), lateral (values (s.v * 2)) t(w), ltb where ltb.k = t.w + 1 order by 1;
select a.x, t.w from lta a cross join lateral (values (a.x + 1)) s(v) left join lateral (select s.v as w from ltb where ltb.k = s.v) t on true where a.x < 8 order by 1;
select a.x, t.w from lta a, lateral (select u.w from (values (a.x, a.y)) u(w, q), lateral (select 1 where u.q = 2) one) t where a.x < 20 order by 1;
select a.x, s.w from lta a, lateral (select t.w from ltb, lateral (values (ltb.k + a.y)) t(w) where ltb.k = a.x) s where a.x < 12 order by 1;
select a.x, s.g from lta a, lateral (values (a.y)) v(w), lateral generate_series(1, v.w) s(g) where a.x < 5 order by 1, 2;
select a.x, s.g from lta a, lateral generate_series(1, a.y) s(g), lateral (values (s.g + a.x)) v(w), ltb where ltb.k = v.w and a.x < 9 order by 1, 2;
select a.x, b.k, s.v from lta a join (ltb b join lateral (select a.x + b.k as v) s on s.v > 60) on b.k = a.x order by 1;
select a.x, s.v, t.v from lta a, lateral (select (select max(z) from ltc) + a.x as v) s, lateral (select s.v + 1 as v) t where s.v > 88 order by 1;
select a.x, s.v from lta a, lateral (select (select max(z) from ltc where ltc.k = a.x) as v) s where s.v > 47 order by 1;

-- Above them.
select s.v, count(*), min(a.x) from lta a, lateral (select a.y % 3 as v) s group by s.v having count(*) > 10 order by 1;
select s.v, t.w, count(*) from lta a, lateral (values (a.y)) s(v) left join lateral (values (s.v / 2)) t(w) on s.v > 2 group by rollup (s.v, t.w) order by 1, 2, 3;
select distinct s.v from lta a, lateral (select a.y as v) s order by 1 desc;
select s.v, sum(a.x) over (partition by s.v order by a.x) from lta a, lateral (select a.y as v) s where a.x < 12 order by 1, 2;
select a.x from lta a where exists (select 1 from ltb, lateral (values (ltb.k + 1)) s(v) where s.v = a.x) order by 1 limit 5;
select a.x from lta a where not exists (select 1 from ltb, lateral (values (ltb.k + 1)) s(v) where s.v = a.x) order by 1 limit 5;
select a.x from lta a where a.x in (select s.v from ltb, lateral (select ltb.k * 2 as v) s where ltb.y = a.y) order by 1;
select a.x, (select max(s.v) from ltb, lateral (select ltb.k + a.x as v) s where ltb.k < a.x) from lta a where a.y = 1 order by 1;
select a.x, (select s.v from (select a.x as v) s) from lta a where a.y = 1 order by 1;
select (select count(*) from (select a.x as v) s join ltb on ltb.k = s.v) from lta a where a.x < 5 order by a.x;
with u as (select a.x, s.v from lta a, lateral (select a.x + a.y as v) s) select u.x, w.v from u, lateral (select u.v + 1 as v) w where u.x < 4 order by 1;
create view lvs as select a.x, s.v, t.k from lta a cross join lateral (values (a.x + a.y)) s(v) left join lateral (select ltb.k from ltb where ltb.k = s.v) t on true;
select * from lvs where v < 12 order by 1;
select lvs.x, w.d from lvs, lateral (select lvs.v - lvs.x as d) w where lvs.k = 13 order by 1;
select pg_get_viewdef('lvs'::regclass);

-- Changes.
begin;
update lta set y = s.v from ltb, lateral (select ltb.k as v) s where lta.x = s.v and s.v < 6 returning lta.x, lta.y, s.v;
delete from lta using ltb cross join lateral (values (ltb.k + 1)) s(v) where lta.x = s.v and ltb.k < 6 returning lta.x, s.v;
insert into ltb select s.v, 0 from lta a, lateral (select a.x + 1000 as v) s where a.x > 38 returning *;
merge into ltb using (select a.x, s.v from lta a, lateral (select a.y as v) s where a.x < 8) m on ltb.k = m.x when matched then update set y = m.v when not matched then insert values (m.x, m.v);
merge into ltb using (lta a join lateral generate_series(1, a.y) g on true) on ltb.k = a.x and g = 2 and a.x < 9 when matched then update set y = 100 + a.y + g when not matched then do nothing;
merge into ltb using (lta a cross join lateral (select max(z) as z from ltc where ltc.k = a.x) m) on ltb.k = a.x when matched and m.z > 48 then delete;
select * from ltb where k < 10 order by 1;
select a.x, s.v from lta a, lateral (select a.y as v) s where a.x > 38 order by 1 for update of a;
rollback;

-- What is volatile or fails is computed as often as it is written.
select count(distinct s.v) > 1 from lta a, lateral (select random() as v) s;
select bool_and(s.v = s.v) from lta a, lateral (select random() + a.x as v) s;
select a.x from lta a, lateral (select 1 / (a.x - 3) as v) s where a.x < 3 order by 1;
select a.x, s.v from lta a, lateral (select 1 / (a.x - 3) as v) s where a.x < 3 order by 1;
select a.x, s.v from lta a, lateral (select 1 / (a.x - 3) as v) s where a.x < 5 order by 1;
select a.x from lateral (values (a.x)) s(v), lta a;
select * from lta a, lateral (values (nowhere)) s(v);
select * from lta a, lateral (select sum(a.x) as v) s;

-- Never met.
select count(*) from lta a, lta b, ltc where false;
select count(*) from lta a, lta b, ltc where a.x = b.x and false;
select count(*) from lta a, lta b, ltc where null;
select count(*) from lta a, lta b, ltc where 1 = 2 and a.x > 1;
select count(*) from lta a where 1 = 1 and a.x > 30 and not false;
select count(*) from lta a where 1 = 2 or a.x > 30;
select count(*) from lta a where (1 = 2 or a.x > 30) and ('a' = 'b' or null or a.y = 1);
select count(*) from lta a where null is null and 1 is not null and (1 = 2) is not true;
select a.x, b.k from lta a left join ltb b on false where a.x < 3 order by 1;
select a.x, b.k from lta a left join (ltb b join ltc on b.k = ltc.k) on 1 = 0 where a.x < 3 order by 1;
select a.x, b.k from lta a left join ltb b on a.x = b.k and null where a.x < 3 order by 1;
select b.k, a.x from lta a right join ltb b on false where b.k < 4 order by 1;
select a.x, b.k from lta a left join ltb b on a.x = b.k and 1 = 1 where a.x < 4 order by 1;
select count(*), count(a.x), count(b.k) from lta a full join ltb b on false;
select count(*) from lta a full join ltb b on a.x = b.k where false;
select count(*) from lta a join ltb b on false;
select a.x from lta a where a.x < 3 and exists (select 1 from ltb where ltb.k = a.x and false);
select a.x from lta a where a.x < 3 and not exists (select 1 from ltb where ltb.k = a.x and false) order by 1;
select a.x from lta a where a.x < 3 and a.x in (select k from ltb where 1 = 2);
select a.x from lta a where a.x < 3 and a.x not in (select k from ltb where 1 = 2) order by 1;
select x from lta where false union all select k from ltb where k < 4 union all select k from ltc where 1 = 2 order by 1;
select * from (select x from lta, ltb where false) s full join (select 1 as one) t on s.x = t.one;
select * from (select x from lta, ltb where false) s right join (values (1), (2)) t(w) on s.x = t.w order by 2;
select s.c from lta a, lateral (select count(*) as c from ltb, ltc where ltb.k = a.x and false) s where a.x < 3;
select count(*), sum(x), max(n) from lta, ltb where false;
select lta.y, count(*) from lta, ltb where false group by lta.y;
select a.x, s.v from lta a left join lateral (select a.x as v where false) s on true where a.x < 3 order by 1;
update lta set y = 0 where false;
delete from lta using ltb where lta.x = ltb.k and 1 = 2;
insert into ltb select x, y from lta, ltc where null returning *;
select 1 from lta where 1 / 0 = 1 and false;
select 1 from lta where false and 1 / 0 = 1;
select count(*) from lta where x / 0 = 1 and false;
prepare one(int) as select count(*) from lta a, lta b where $1 = 1 and a.x = b.x;
execute one(1);
execute one(2);
execute one(null);
select count(*) from lta where 1 = 2 and x = 1;
select count(*) from lta where 1 = 1 and x = 1;
explain (costs off) select * from lta, ltb where false;
explain (costs off) select * from lta where x = 1 and 1 = 2;
explain (costs off) select * from lta a, lateral (values (a.x)) s(v) where s.v = 1;
explain (costs off) select * from (select 1 as v) s;
drop view lvs;
drop table lta, ltb, ltc;
