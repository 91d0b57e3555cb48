-- names: lap lbp lcp lvp lfp
-- LATERAL items that are planned by themselves, with items beside them that they do not look at.
create table lap (x int, y int, arr int[]);
create table lbp (k int primary key, y int);
create table lcp (k int, z int);
insert into lap select i, i % 7, array[i, i + 1] from generate_series(1, 40) i;
insert into lap values (null, 3, null), (41, null, '{}');
insert into lbp select i, i % 4 from generate_series(1, 60, 2) i;
insert into lcp select i % 20, i from generate_series(1, 50) i;
analyze lap, lbp, lcp;

-- Several rows of VALUES, sets, LIMIT, aggregates, DISTINCT.
select count(*) from lap a, lap b join lateral (values (a.x), (-1)) s(v) on b.x = s.v;
select a.x, b.k, s.v from lap a, lbp b join lateral (values (a.x), (a.x + 1)) s(v) on b.k = s.v where a.y = 2 order by 1, 2, 3;
select a.x, b.k, u from lap a, lbp b, unnest(a.arr) u where b.k = u and a.x < 6 order by 1, 2, 3;
select a.x, b.k, u, n from lap a cross join lbp b join lateral unnest(a.arr) with ordinality t(u, n) on b.k = u where a.x < 6 order by 1, 2, 3;
select a.x, b.k, s.z from lap a, lbp b, lateral (select c.z from lcp c where c.k = a.y order by c.z limit 2) s where b.k = s.z order by 1, 2, 3 limit 12;
select a.x, b.k, s.n from lap a, lbp b, lateral (select count(*) as n from lcp c where c.k = a.x) s where b.k = s.n and a.x > 5 order by 1, 2 limit 5;
select a.x, b.k, s.n from lap a, lbp b, lateral (select sum(z) as n from lcp c where c.k = b.k) s where a.x = b.k and s.n > 60 order by 1, 2, 3;
select b.k, a.x, s.y from lbp b, lap a, lateral (select distinct c.z % 3 as y from lcp c where c.k = a.y) s where s.y = b.y and b.k < 6 order by 1, 2, 3 limit 8;
select a.x, b.k, g from lap a, lbp b, generate_series(a.x, a.x + 2) g where g = b.k and a.y = 0 order by 1, 2, 3;
-- What looks at several of them, or at those in the middle.
select a.x, b.k, c.z, s.v from lap a, lbp b, lcp c, lateral (values (a.x + b.k), (0)) s(v) where s.v = c.z and b.k < 4 and a.x < 4 order by 1, 2, 3, 4;
select a.x, b.k, c.z, s.v from lap a, lbp b, lcp c, lateral (values (b.k), (b.k + 2)) s(v) where s.v = c.z and a.x = s.v and b.k < 9 order by 1, 2, 3, 4;
select a.x, b.k, c.z, s.v from lap a, lbp b, lcp c, lateral (values (a.x + c.z), (0)) s(v) where s.v = b.k and c.z < 4 and a.x < 4 order by 1, 2, 3, 4;
-- Several items, one after the other, and one that looks at another.
select a.x, b.k, s.v, t.w from lap a, lbp b, lateral (values (a.x), (a.y)) s(v), lateral (values (b.k), (b.y)) t(w) where s.v = t.w and a.x < 4 order by 1, 2, 3, 4;
select a.x, b.k, s.v, t.w from lap a, lbp b, lateral (values (a.x), (a.y)) s(v), lateral (values (s.v), (s.v + 1)) t(w) where t.w = b.k and a.x < 4 order by 1, 2, 3, 4;
select a.x, b.k, s.v, t.w from lap a, lateral (values (a.x), (a.y)) s(v), lbp b, lateral (select max(c.z) as w from lcp c where c.k = b.k) t where s.v = b.k and a.x between 3 and 9 order by 1, 2, 3, 4;
-- Outer joins on either side.
select a.x, b.k, s.v from (lap a left join lcp c on c.z = a.x + 40), lbp b join lateral (values (c.k), (a.y)) s(v) on s.v = b.k where a.x < 12 order by 1, 2, 3;
select a.x, b.k, s.v from lap a cross join lbp b left join lateral (values (a.x), (0)) s(v) on s.v = b.k where a.x < 3 and b.k < 5 order by 1, 2, 3;
select a.x, b.k, s.v from lap a, (lbp b left join lcp c on c.k = b.k and c.z < 3) join lateral (values (a.x), (1)) s(v) on s.v = b.k where a.x < 6 and c.z is null order by 1, 2, 3;
select a.x, b.k from lap a, lbp b join lateral (values (a.x), (-1)) s(v) on b.k = s.v where not exists (select from lcp c where c.z = a.x) order by 1, 2;
-- Conditions without columns, of volatile calls, and of enclosing queries.
select count(*) from lap a, lbp b join lateral (values (a.x), (-1)) s(v) on b.k = s.v where random() >= 0;
select count(*) from lap a, lbp b join lateral (values (a.x), (-1)) s(v) on b.k = s.v and false;
select c.z, (select count(*) from lap a, lbp b join lateral (values (a.x), (c.k)) s(v) on b.k = s.v where a.y = c.k) from lcp c where c.z < 8 order by 1;
select c.z, s.n from lcp c, lateral (select count(*) as n from lap a, lbp b join lateral (values (a.x), (c.k)) s(v) on b.k = s.v where a.y = c.k) s where c.z < 8 order by 1;
prepare lvp as select a.x, b.k from lap a, lbp b join lateral (values (a.x), ($1)) s(v) on b.k = s.v where a.x < 4 order by 1, 2;
execute lvp(3);
execute lvp(5);
-- In what writes.
update lbp b set y = -s.v from lap a, lateral (values (a.x), (a.x + 2)) s(v) where b.k = s.v and a.x = 9 returning b.*;
delete from lcp c using lap a, lbp b, lateral (values (a.x), (a.y)) s(v) where s.v = b.k and c.z = b.k and a.x = 11 returning c.*, a.x, b.k;
insert into lbp select s.v + 100, c.z from lap a, lcp c, lateral (values (a.x), (a.x + 30)) s(v) where s.v = c.z and a.x = 5 returning *;
deallocate lvp;
drop table lap, lbp, lcp;
