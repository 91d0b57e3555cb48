-- names: exv
-- What VERBOSE and SETTINGS add to EXPLAIN, and what ANALYZE says beside the nodes. Only plans that both
-- servers make.
create schema exv_s;
create table exv_a (id int primary key, k int, v varchar(10), d date, n numeric(10,2), a int[]);
create table exv_s."Odd t" (x int, "Y z" bigint, t text);
insert into exv_a select i, i % 10, 'v' || i, '2020-01-01'::date + i, i * 1.5, array[i, i + 1] from generate_series(1, 1000) as i;
analyze exv_a;
set enable_bitmapscan = off;
-- Columns, and the names of what is read.
explain (verbose, costs off) select * from exv_a where id = 7;
explain (verbose, costs off) select * from exv_a as z where z.k > 2 and upper(v) = 'X';
explain (verbose, costs off) select upper(v), k from exv_a order by id + 1;
explain (verbose, costs off) select id, k, v, d, n, a from exv_a order by n desc nulls last, d;
explain (verbose, costs off) select * from exv_s."Odd t" as "B" where "Y z" = 1 and 'it''s' = t;
explain (verbose, costs off) select k % 3, case when id > 5 then 'a''b' end, a[1] from exv_a limit 3;
explain (verbose, costs off) select 1, 'x', null, 1.5, date '2020-01-01';
explain (verbose, costs off) select 1 where false;
explain (verbose, costs off) values (1), (2);
explain (costs off) select i from (values (1), (2)) as v (i) where i > 1;
-- Groups.
explain (verbose, costs off) select x, "Y z", t, count(*), max(t) from exv_s."Odd t" group by x, "Y z", t having sum(x) > 3 order by count(*) desc, x;
explain (verbose, costs off) select "Y z", x, t, count(*) * 2 from exv_s."Odd t" group by x, "Y z", t order by count(*) * 2;
-- Several tables.
explain (verbose, costs off) select id from exv_a union all select x from exv_s."Odd t";
-- What writes.
explain (verbose, costs off) insert into exv_s."Odd t" values (1, 2);
explain (verbose, costs off) insert into exv_s."Odd t" (t) values ('x') returning x, "Y z" + 1;
explain (verbose, costs off) insert into exv_s."Odd t" (t, x) select v, id from exv_a;
explain (verbose, costs off) insert into exv_a (id) values (1) on conflict do nothing;
explain (verbose, costs off) insert into exv_a (id, k) values (1, 2) on conflict (id) do update set k = excluded.k where exv_a.k > 3;
explain (costs off) insert into exv_a (id, k) values (1, 2) on conflict (id) do update set k = excluded.k where exv_a.k > 3;
explain (costs off) delete from exv_s."Odd t";
-- The other forms.
explain (verbose, costs off, format json) select x, "Y z", t, count(*) from exv_s."Odd t" where x > 2 group by x, "Y z", t order by x desc;
explain (verbose, costs off, format yaml) select x, t, "Y z" from exv_s."Odd t" order by t;
explain (verbose, costs off, format xml) select v, '<&"' from exv_a where n > 2 order by k desc;
explain (verbose, costs off, format json) insert into exv_s."Odd t" as "O" values (1, 2);
explain (costs off) update exv_s."Odd t" as "O" set x = 1 where "Y z" > 2 returning "O".x + 1, t;
explain (costs off) delete from exv_s."Odd t" as o where o.x = 3;
-- Settings.
reset enable_bitmapscan;
explain (settings, costs off) select 1;
explain (settings, costs off, format json) select 1;
explain (settings, costs off, format yaml) select 1;
explain (settings, costs off, format xml) select 1;
set enable_seqscan = off;
set work_mem = '64kB';
set search_path = public, exv_s;
set random_page_cost = 1.5;
explain (settings, costs off) select 1;
explain (settings, costs off, format json) select 1;
begin;
set local jit = off;
explain (settings off, costs off) select 1;
explain (settings, costs off, format xml) select 1;
rollback;
reset all;
-- Nothing is known of what has not run.
explain (buffers, costs off) select 1;
explain (buffers, costs off, format json) select 1;
explain (wal, costs off) select 1;
explain (analyze, wal, buffers, costs off, timing off, summary off) select 1;
explain (analyze, wal, buffers, costs off, timing off, summary off, format yaml) select 1;
explain (buffers nope) select 1;
explain (verbose 3) select 1;
-- What triggers and foreign keys took.
create table exv_of (a int references exv_a, b int);
create function exv_fire() returns trigger language plpgsql as $$
begin
  if new.b < 0 then return null; end if;
  return new;
end $$;
create trigger exv_late after insert on exv_of for each row execute function exv_fire();
create trigger exv_first before insert on exv_of for each row execute function exv_fire();
create trigger exv_once after insert on exv_of execute function exv_fire();
create trigger exv_never before delete on exv_of for each row execute function exv_fire();
drop trigger exv_once on exv_of;
explain (analyze, costs off, timing off, summary off) insert into exv_of values (1, 1), (2, -1), (3, 3);
explain (analyze, costs off, timing off, summary off, format yaml) select 1;
explain (analyze, costs off, timing off, summary off) delete from exv_a where id = 1000;
explain (analyze, costs off, timing off, summary off) delete from exv_a where id = 1;
explain (analyze, costs off, timing off, summary off) insert into exv_a (id, k) values (5, 2), (2000, 3) on conflict (id) do update set k = excluded.k where exv_a.k > 7;
explain (analyze, costs off, timing off, summary off, format json) insert into exv_a (id, k) values (8, 2) on conflict (id) do update set k = excluded.k where exv_a.k > 7;
explain (analyze, costs off, timing off, summary off) insert into exv_a (id, k) values (8, 2) on conflict do nothing;
-- What makes a table makes it.
explain (analyze, costs off, timing off, summary off) create table exv_made as select k from exv_a where k = 3;
explain (analyze, costs off, timing off, summary off) create table if not exists exv_made as select 1 as k;
explain (analyze, costs off, timing off, summary off, format json) create table if not exists exv_made as select 1 as k;
explain (analyze, costs off, timing off, summary off) create table exv_made as select 1 as k;
explain (analyze, costs off, timing off, summary off) create materialized view exv_view as select k from exv_a where k = 3;
explain (analyze, costs off, timing off, summary off) create materialized view exv_empty as select k from exv_a where k = 3 with no data;
select count(*) from exv_made;
select count(*) from exv_view;
select count(*) from exv_empty;
prepare exv_p (int) as select k from exv_a where k = $1;
set plan_cache_mode = force_generic_plan;
explain (analyze, costs off, timing off, summary off) create table exv_third as execute exv_p (4);
select count(*), min(k) from exv_third;
begin;
explain (analyze, costs off, timing off, summary off) create table exv_not as select 1 as a;
rollback;
select to_regclass('exv_not');
explain (analyze, costs off) create table exv_not as select 1 / 0 as a;
select to_regclass('exv_not');
-- Parameters.
explain (verbose, costs off) execute exv_p (3);
deallocate exv_p;
reset plan_cache_mode;
-- Who may not see the rows does not see what they are read by.
create role exv_nobody;
create view exv_some as select id, k from exv_a where k < 5;
grant select on exv_some to exv_nobody;
set role exv_nobody;
explain (verbose, costs off) select * from exv_a;
explain (verbose, costs off) select * from exv_s."Odd t";
explain (costs off) select id from exv_some;
explain (analyze, verbose, buffers, wal, costs off) delete from exv_some;
explain (analyze, costs off) create temp table exv_a2 as select * from exv_a;
reset role;
drop view exv_some;
drop role exv_nobody;
drop materialized view exv_view, exv_empty;
drop table exv_of, exv_made, exv_third, exv_a;
drop function exv_fire;
drop schema exv_s cascade;
