-- names: exc
-- What EXPLAIN says of nodes: conditions, keys, subqueries. Only plans that both servers make.
create table exc_a (id int primary key, k int, v varchar(10), d date, n numeric(10,2), a int[]);
create table exc_b (id int primary key, k int, t text, "Odd" int);
insert into exc_a select i, i % 10, 'v' || i, '2020-01-01'::date + i, i * 1.5, array[i, i + 1] from generate_series(1, 1000) as i;
insert into exc_b select i, i % 10, 't' || i, i from generate_series(1, 1000) as i;
analyze exc_a;
analyze exc_b;
-- Scans.
explain (costs off) select * from exc_a where id = 7;
explain (costs off) select * from exc_a as a where a.id > 7 and a.id <= 20 and a.k is not null;
explain (costs off) select * from exc_a where v = 'x' and d >= date '2020-02-02' and n > 3.5 or k in (1, 2, 3);
explain (costs off) select * from exc_a where n > 2 and d < date '2020-01-01' + 30;
explain (costs off) select * from exc_a where v is not null and v like 'v1%' and (k <= 2 or k >= 5);
explain (costs off) select * from exc_a where case when k = 1 then 1 when k = 2 then id else 0 end = coalesce(k, 5);
explain (costs off) select * from exc_a where k is distinct from 3 and (k > 2) is not true and upper(v) = 'X' and nullif(k, 2) = 1;
explain (costs off) select * from exc_a where a @> '{4}' and a[1] = 3 and greatest(k, id) > 3 and 5 = any (a);
explain (costs off) select "Odd" from exc_b as "B" where "Odd" = 1 and 'it''s' = t;
explain (costs off) select 1 where false;
-- Groups, order.
explain (costs off) select k, count(*), sum(n) from exc_a where v like 'v1%' group by k having count(*) > 3 and sum(n) < 100 order by count(*) desc, k;
explain (costs off) select k % 3, max(id) from exc_a group by k % 3 order by max(id) nulls first, 1 desc nulls last;
explain (costs off) select count(distinct k) filter (where id > 5) as c from exc_a having count(*) > 1;
explain (costs off) select row_number() over (partition by k order by id) from exc_a where k > 2;
explain (costs off) select k, d from exc_a order by d desc, lower(v) limit 3;
-- Subqueries.
explain (costs off) select id, (select count(*) from exc_b as b where b.t = a.v limit 1) from exc_a as a where k > 3;
explain (costs off) select id from exc_a where k not in (select k from exc_b where "Odd" > 3);
explain (costs off) select id from exc_a where n > (select avg(n) from exc_a as i);
-- What writes.
explain (costs off) update exc_a set k = 1 where id = 5;
explain (costs off) delete from exc_a where id <> 2 and k = 3;
-- The other forms.
explain (costs off, format json) select k, count(*) from exc_a where n > 2 group by k order by k desc;
explain (costs off, format yaml) select k from exc_a where n > 2 order by k desc, v;
explain (costs off, format xml) select k from exc_a where n > 2 and v = '<&"' order by k desc;
explain (costs off, format json) select id from exc_a where n > (select avg(n) from exc_a as i);
-- Parameters.
prepare exc_p(int) as select * from exc_a where id = $1;
set plan_cache_mode = force_generic_plan;
explain (costs off) execute exc_p(3);
deallocate exc_p;
reset plan_cache_mode;
-- What was left out.
explain (costs off, timing off, summary off, analyze) select * from exc_a where n > 20 and k = 3;
explain (costs off, timing off, summary off, analyze) select * from exc_a where id < 20 and k = 3;
drop table exc_a, exc_b;
