-- names: ta tb tc vs
-- LATERAL items that become a part of the query around them, and conditions that are known when a plan is made.
create table ta (x int, y int, n text);
create table tb (k int primary key, y int);
create table tc (k int, z int, n text);
insert into ta select i, i % 7, case when i % 5 = 0 then null else 'n' || i end from generate_series(1, 40) i;
insert into ta values (null, 3, 'no x'), (41, null, 'no y');
insert into tb select i, i % 4 from generate_series(1, 60, 2) i;
insert into tc select i % 20, i, case when i % 3 = 0 then null else 'c' || i end from generate_series(1, 50) i;
analyze ta, tb, tc;

-- One row without FROM, joined inside.
select ta.x, tb.k, s.v from ta, lateral (values (ta.x)) s(v), tb where tb.k = s.v and ta.y = 1 order by 1, 2;
select ta.x, tb.k, s.v from ta join lateral (select ta.x + 1 as v) s on true join tb on tb.k = s.v order by 1, 2 limit 5;
select count(*) from ta a, ta b join lateral (values (a.x)) ss(v) on b.y = ss.v;
select a.x, b.x, ss.v from ta a, ta b join lateral (values (a.x + b.y)) ss(v) on b.x = ss.v order by 1, 2, 3 limit 6;
select a.x, s.* from ta a join lateral (select a.x * 2 as v, a.n || '!' as w) s on s.v > 70 order by 1;
select s from ta a, lateral (select a.x, a.n) s where a.y = 2 order by a.x;
select s.*, (s).w from ta a, lateral (select a.x, a.n) s(v, w) where a.y = 2 order by a.x;
select a.x from ta a, lateral (values (a.x, a.y)) s(v, w) where s is null or (s.v, s.w) = (3, 3) order by 1;
select a.x, row(s.*) from ta a, lateral (select) s where a.x < 3 order by 1;
select s.v, t.v from (select 1 as v) s, (values (2)) t(v);
select s.v, a.x from (select 5 as v) s join ta a on a.x = s.v;
select s.v, a.x from (values (5, 'five')) s(v, w) left join ta a on a.x = s.v + 100;
select * from (select 5 as v) s right join (select 6 as w) t on s.v = t.w;
select * from (select 5 as v) s full join (select 6 as w) t on s.v = t.w order by 1;
select * from (select 5 as v) s full join (select 5 as w) t on s.v = t.w;
select * from (select 1 as v where false) s right join tb on tb.k = s.v where tb.k < 4 order by 1, 2;
select a.x, s.v from ta a, lateral (select a.y as v where a.x > 38) s order by 1;

-- On the side of an outer join that may be missing.
select a.x, s.v from ta a left join lateral (values (a.y)) s(v) on a.x > 38 where a.x > 36 order by 1;
select a.x, s.v from ta a left join lateral (values (a.y)) s(v) on true where a.x > 38 order by 1;
select a.x, s.v from ta a left join lateral (select 7 as v) s on a.x = 40 where a.x > 38 order by 1;
select a.x, s.v from ta a left join lateral (select a.y as v where a.x = 40) s on true where a.x > 38 order by 1;
select tb.k, s.v, s.w from tb left join (ta a join lateral (values (a.x, a.y + 1)) s(v, w) on true) on tb.k = s.v where tb.k > 35 order by 1;
select tb.k, s.v from tb left join (ta a join lateral (values (a.x)) s(v) on true) on tb.k = s.v where tb.k > 35 order by 1;
select tb.k, s.v from (ta a join lateral (values (a.x)) s(v) on true) right join tb on tb.k = s.v where tb.k > 35 order by 1;
select tb.k, s.v, s.w from (ta a join lateral (values (a.x, coalesce(a.n, '-'))) s(v, w) on true) right join tb on tb.k = s.v where tb.k > 33 order by 1;
select tb.k, s.v, s.w from (ta a join lateral (values (a.x, coalesce(a.n, '-'))) s(v, w) on true) full join tb on tb.k = s.v where coalesce(tb.k, s.v) > 35 order by 1, 2;
select tb.k, s.v from tb left join ta a on a.x = tb.k cross join lateral (select coalesce(a.x, -1) as v) s where tb.k > 35 order by 1;
select tb.k, s.v from tb left join ta a on a.x = tb.k cross join lateral (select coalesce(a.x, -1) as v) s where s.v = -1 order by 1 limit 3;
select tb.k, s.v from tb left join ta a on a.x = tb.k left join lateral (select coalesce(a.x, -1) as v) s on s.v > 0 where tb.k > 35 order by 1;
select tb.k, s.v from tb left join ta a on a.x = tb.k left join lateral (select a.x as v) s on s.v is null where tb.k > 35 order by 1;
select tb.k, s.v, tc.z from tb left join lateral (select tb.k + 1 as v) s on tb.y = 1 left join tc on tc.k = s.v where tb.k < 10 order by 1, 3;
select tb.k, s.v, tc.z from tb left join lateral (select tb.k + 1 as v) s on tb.y = 1 join tc on tc.k = s.v where tb.k < 10 order by 1, 3;
select tb.k, tc.z, s.v from tb left join tc on tc.k = tb.k left join lateral (values (tc.z, 1)) s(v, one) on s.one = 1 and s.v > 20 where tb.k < 8 order by 1, 2;
select tb.k, t.w from tb left join (tc join lateral (select tc.k as u, 'there' as w) t on t.u = tc.k) on t.u = tb.k and tc.z < 20 where tb.k < 23 order by 1;

-- With FROM.
select a.x, s.k from ta a, lateral (select * from tb where tb.k = a.x) s where a.y = 1 order by 1;
select a.x, s.k, s.v from ta a, lateral (select tb.k, tb.y + a.y as v from tb where tb.k > a.x and tb.y = a.y) s where a.y = 1 and a.x < 10 order by 1, 2 limit 5;
select a.x, s.k from ta a left join lateral (select * from tb where tb.k = a.x) s on true where a.y = 1 order by 1;
select a.x, s.k, s.v from ta a left join lateral (select tb.k, a.y as v from tb where tb.k = a.x) s on true where a.y = 1 order by 1;
select a.x, s.k from ta a left join lateral (select * from tb where tb.k = a.x) s on s.y = 3 where a.y = 1 order by 1;
select a.x, s.k, s.z from ta a, lateral (select tb.k, tc.z from tb join tc on tc.k = tb.k and tc.z > a.y where tb.k = a.x) s where a.x < 6 order by 1, 2, 3;
select a.x, s.k, s.z from ta a, lateral (select tb.k, tc.z from tb left join tc on tc.k = tb.k and tc.z > a.x + 20 where tb.k = a.x) s where a.x < 12 order by 1, 2, 3;
select a.x, s.k, s.z from ta a left join lateral (select tb.k, tc.z from tb left join tc on tc.k = tb.k and tc.z > a.x + 20 where tb.k = a.x) s on true where a.x < 12 order by 1, 2, 3;
select a.x, s.k, s.z from ta a left join lateral (select tb.k, tc.z from tb join tc on tc.k = tb.k and tc.z > a.x + 20 where tb.k = a.x) s on true where a.x < 12 order by 1, 2, 3;
select a.x, s.z from ta a, lateral (select z from tc where tc.k = a.x order by z desc limit 1) s where a.y = 2 order by 1;
select a.x, s.z from ta a, lateral (select max(z) as z from tc where tc.k = a.x) s where a.y = 2 order by 1;
select a.x, s.z from ta a left join lateral (select max(z) as z from tc where tc.k = a.x group by tc.k) s on true where a.y = 2 order by 1;
select a.x, g from ta a, lateral (select * from generate_series(1, a.y) g) s where a.x < 4 order by 1, 2;
select a.x, s.v from ta a, lateral (select distinct tc.n as v from tc where tc.k = a.x) s where a.x < 4 order by 1, 2;
select a.x, s.v from ta a, lateral (select tc.n as v from tc where tc.k = a.x union all select a.n) s where a.x < 4 order by 1, 2;

-- LATERAL behind and inside of LATERAL.
select a.x, t.w from ta a, lateral (values (a.x + 1)) s(v), lateral (values (s.v * 2)) t(w), tb where tb.k = t.w + 1 order by 1;
select a.x, t.w from ta a cross join lateral (values (a.x + 1)) s(v) left join lateral (select s.v as w from tb where tb.k = s.v) t on true where a.x < 8 order by 1;
select a.x, t.w from ta a, lateral (select u.w from (values (a.x, a.y)) u(w, q), lateral (select 1 where u.q = 2) one) t where a.x < 20 order by 1;
select a.x, s.w from ta a, lateral (select t.w from tb, lateral (values (tb.k + a.y)) t(w) where tb.k = a.x) s where a.x < 12 order by 1;
select a.x, s.g from ta a, lateral (values (a.y)) v(w), lateral generate_series(1, v.w) s(g) where a.x < 5 order by 1, 2;
select a.x, s.g from ta a, lateral generate_series(1, a.y) s(g), lateral (values (s.g + a.x)) v(w), tb where tb.k = v.w and a.x < 9 order by 1, 2;
select a.x, b.k, s.v from ta a join (tb b join lateral (select a.x + b.k as v) s on s.v > 60) on b.k = a.x order by 1;
select a.x, s.v, t.v from ta a, lateral (select (select max(z) from tc) + a.x as v) s, lateral (select s.v + 1 as v) t where s.v > 88 order by 1;
select a.x, s.v from ta a, lateral (select (select max(z) from tc where tc.k = a.x) as v) s where s.v > 47 order by 1;

-- Above them.
select s.v, count(*), min(a.x) from ta a, lateral (select a.y % 3 as v) s group by s.v having count(*) > 10 order by 1;
select s.v, t.w, count(*) from ta a, lateral (values (a.y)) s(v) left join lateral (values (s.v / 2)) t(w) on s.v > 2 group by rollup (s.v, t.w) order by 1, 2, 3;
select distinct s.v from ta a, lateral (select a.y as v) s order by 1 desc;
select s.v, sum(a.x) over (partition by s.v order by a.x) from ta a, lateral (select a.y as v) s where a.x < 12 order by 1, 2;
select a.x from ta a where exists (select 1 from tb, lateral (values (tb.k + 1)) s(v) where s.v = a.x) order by 1 limit 5;
select a.x from ta a where not exists (select 1 from tb, lateral (values (tb.k + 1)) s(v) where s.v = a.x) order by 1 limit 5;
select a.x from ta a where a.x in (select s.v from tb, lateral (select tb.k * 2 as v) s where tb.y = a.y) order by 1;
select a.x, (select max(s.v) from tb, lateral (select tb.k + a.x as v) s where tb.k < a.x) from ta a where a.y = 1 order by 1;
select a.x, (select s.v from (select a.x as v) s) from ta a where a.y = 1 order by 1;
select (select count(*) from (select a.x as v) s join tb on tb.k = s.v) from ta a where a.x < 5 order by a.x;
with u as (select a.x, s.v from ta a, lateral (select a.x + a.y as v) s) select u.x, w.v from u, lateral (select u.v + 1 as v) w where u.x < 4 order by 1;
create view vs as select a.x, s.v, t.k from ta a cross join lateral (values (a.x + a.y)) s(v) left join lateral (select tb.k from tb where tb.k = s.v) t on true;
select * from vs where v < 12 order by 1;
select vs.x, w.d from vs, lateral (select vs.v - vs.x as d) w where vs.k = 13 order by 1;
select pg_get_viewdef('vs'::regclass);

-- Changes.
begin;
update ta set y = s.v from tb, lateral (select tb.k as v) s where ta.x = s.v and s.v < 6 returning ta.x, ta.y, s.v;
delete from ta using tb cross join lateral (values (tb.k + 1)) s(v) where ta.x = s.v and tb.k < 6 returning ta.x, s.v;
insert into tb select s.v, 0 from ta a, lateral (select a.x + 1000 as v) s where a.x > 38 returning *;
merge into tb using (select a.x, s.v from ta a, lateral (select a.y as v) s where a.x < 8) m on tb.k = m.x when matched then update set y = m.v when not matched then insert values (m.x, m.v);
merge into tb using (ta a join lateral generate_series(1, a.y) g on true) on tb.k = a.x and g = 2 and a.x < 9 when matched then update set y = 100 + a.y + g when not matched then do nothing;
merge into tb using (ta a cross join lateral (select max(z) as z from tc where tc.k = a.x) m) on tb.k = a.x when matched and m.z > 48 then delete;
select * from tb where k < 10 order by 1;
select a.x, s.v from ta a, lateral (select a.y as v) s where a.x > 38 order by 1 for update of a;
rollback;

-- What is volatile or fails is computed as often as it is written.
select count(distinct s.v) > 1 from ta a, lateral (select random() as v) s;
select bool_and(s.v = s.v) from ta a, lateral (select random() + a.x as v) s;
select a.x from ta a, lateral (select 1 / (a.x - 3) as v) s where a.x < 3 order by 1;
select a.x, s.v from ta a, lateral (select 1 / (a.x - 3) as v) s where a.x < 3 order by 1;
select a.x, s.v from ta a, lateral (select 1 / (a.x - 3) as v) s where a.x < 5 order by 1;
select a.x from ta a right join lateral (values (a.x)) s(v) on true;
select a.x from lateral (values (a.x)) s(v), ta a;
select * from ta a, lateral (values (nowhere)) s(v);
select * from ta a, lateral (select sum(a.x) as v) s;

-- Never met.
select count(*) from ta a, ta b, tc where false;
select count(*) from ta a, ta b, tc where a.x = b.x and false;
select count(*) from ta a, ta b, tc where null;
select count(*) from ta a, ta b, tc where 1 = 2 and a.x > 1;
select count(*) from ta a where 1 = 1 and a.x > 30 and not false;
select count(*) from ta a where 1 = 2 or a.x > 30;
select count(*) from ta a where (1 = 2 or a.x > 30) and ('a' = 'b' or null or a.y = 1);
select count(*) from ta a where null is null and 1 is not null and (1 = 2) is not true;
select a.x, b.k from ta a left join tb b on false where a.x < 3 order by 1;
select a.x, b.k from ta a left join (tb b join tc on b.k = tc.k) on 1 = 0 where a.x < 3 order by 1;
select a.x, b.k from ta a left join tb b on a.x = b.k and null where a.x < 3 order by 1;
select b.k, a.x from ta a right join tb b on false where b.k < 4 order by 1;
select a.x, b.k from ta a left join tb b on a.x = b.k and 1 = 1 where a.x < 4 order by 1;
select count(*), count(a.x), count(b.k) from ta a full join tb b on false;
select count(*) from ta a full join tb b on a.x = b.k where false;
select count(*) from ta a join tb b on false;
select a.x from ta a where a.x < 3 and exists (select 1 from tb where tb.k = a.x and false);
select a.x from ta a where a.x < 3 and not exists (select 1 from tb where tb.k = a.x and false) order by 1;
select a.x from ta a where a.x < 3 and a.x in (select k from tb where 1 = 2);
select a.x from ta a where a.x < 3 and a.x not in (select k from tb where 1 = 2) order by 1;
select x from ta where false union all select k from tb where k < 4 union all select k from tc where 1 = 2 order by 1;
select * from (select x from ta, tb where false) s full join (select 1 as one) t on s.x = t.one;
select * from (select x from ta, tb where false) s right join (values (1), (2)) t(w) on s.x = t.w order by 2;
select s.c from ta a, lateral (select count(*) as c from tb, tc where tb.k = a.x and false) s where a.x < 3;
select count(*), sum(x), max(n) from ta, tb where false;
select ta.y, count(*) from ta, tb where false group by ta.y;
select a.x, s.v from ta a left join lateral (select a.x as v where false) s on true where a.x < 3 order by 1;
update ta set y = 0 where false;
delete from ta using tb where ta.x = tb.k and 1 = 2;
insert into tb select x, y from ta, tc where null returning *;
select 1 from ta where 1 / 0 = 1 and false;
select 1 from ta where false and 1 / 0 = 1;
select count(*) from ta where x / 0 = 1 and false;
prepare one(int) as select count(*) from ta a, ta b where $1 = 1 and a.x = b.x;
execute one(1);
execute one(2);
execute one(null);
select count(*) from ta where 1 = 2 and x = 1;
select count(*) from ta where 1 = 1 and x = 1;
explain (costs off) select * from ta, tb where false;
explain (costs off) select * from ta where x = 1 and 1 = 2;
explain (costs off) select * from ta a, lateral (values (a.x)) s(v) where s.v = 1;
explain (costs off) select * from (select 1 as v) s;
drop view vs;
drop table ta, tb, tc;
