-- names: smpl
-- TABLESAMPLE: what it takes and refuses, how views and plans show it; which rows a sample has is each system's own.
create table smpl_t (a int primary key, b text);
insert into smpl_t select g, 'x' || g % 10 from generate_series(1, 1000) g;
create table smpl_plain (b text);
insert into smpl_plain select 'same' from generate_series(1, 1000) g;
analyze smpl_t;
-- all, none, and about as many as were asked for
select count(*) from smpl_t tablesample bernoulli (100);
select count(*) from smpl_t tablesample system (100);
select count(*) from smpl_t tablesample bernoulli (0);
select count(*) from smpl_t tablesample system (0) where a > 3;
select count(*) between 400 and 600 from smpl_t tablesample bernoulli (50) repeatable (1);
select count(*) between 400 and 600 from smpl_plain tablesample bernoulli (50);
select count(*) from smpl_t s tablesample pg_catalog.system (100.0) where s.a < 5;
select count(*) from smpl_t as s (x, y) tablesample bernoulli ('100') where x < 5;
select count(*) from only smpl_t tablesample bernoulli (100);
-- the same rows for the same seed, however they are found
create table smpl_one (a int);
create table smpl_two (a int);
do $$ begin
  insert into smpl_one select a from smpl_t tablesample bernoulli (30) repeatable (42);
  insert into smpl_two select a from smpl_t tablesample bernoulli (30) repeatable (42.0) order by b, a desc;
end $$;
select count(*) from (table smpl_one except table smpl_two) x;
select count(*) from (table smpl_two except table smpl_one) x;
select count(*) = (select count(*) from smpl_one) from smpl_one o join (select a from smpl_t tablesample bernoulli (30) repeatable (42)) s using (a);
select count(*) = (select count(*) from smpl_one) from smpl_t s tablesample bernoulli (30) repeatable (42) join smpl_t t on t.a = s.a;
select bool_and(exists (select from smpl_one o where o.a = s.a)) from smpl_t s tablesample bernoulli (30) repeatable (42) where s.a < 500;
select count(*) <> 0 from (select a from smpl_t tablesample bernoulli (30) repeatable (7) except table smpl_one) x;
insert into smpl_t select g, 'later' from generate_series(1001, 1100) g;
select count(*) from (table smpl_one except select a from smpl_t tablesample bernoulli (30) repeatable (42)) x;
-- outer joins, subqueries, parameters
select count(*), count(s.a) from smpl_one o left join smpl_t s tablesample bernoulli (0) on s.a = o.a having count(*) > 0 and count(s.a) = 0 and false;
select count(s.a) from smpl_t t left join smpl_t s tablesample bernoulli (0) on s.a = t.a;
select (select count(*) from smpl_t tablesample bernoulli (p)) from (values (100.0), (0)) v (p);
select count(*) from smpl_t tablesample bernoulli ((select 100));
prepare smpl_p (real) as select count(*) from smpl_t tablesample bernoulli ($1);
execute smpl_p (100);
execute smpl_p (0);
execute smpl_p (101);
execute smpl_p (null);
prepare smpl_q as select count(*) from smpl_t tablesample system ($1) repeatable ($2);
select name, parameter_types from pg_prepared_statements order by 1;
execute smpl_q (100, 3);
-- refusals
select * from smpl_t tablesample nosuch (10);
select * from smpl_t tablesample smpl.nosuch (10);
select * from smpl_t tablesample bernoulli (10, 20);
select * from smpl_t tablesample bernoulli ();
select * from smpl_t tablesample bernoulli (-1);
select * from smpl_t tablesample system (100.1);
select * from smpl_t tablesample bernoulli ('NaN');
select * from smpl_t tablesample bernoulli (null);
select * from smpl_t tablesample bernoulli ('a');
select * from smpl_t tablesample bernoulli (10) repeatable (null);
select * from smpl_t tablesample bernoulli (10) repeatable ('x');
select * from smpl_t tablesample bernoulli (date '2020-01-01');
select * from smpl_t tablesample bernoulli (10) repeatable (true);
select * from smpl_t tablesample bernoulli (count(*));
select * from smpl_nowhere tablesample bernoulli (10);
with smpl_with as (select 1) select * from smpl_with tablesample bernoulli (10);
update smpl_t tablesample system (1) set b = 'x';
delete from smpl_t tablesample system (1);
-- writing by a sample
update smpl_t t set b = 'taken' from smpl_t s tablesample bernoulli (100) repeatable (1) where s.a = t.a and s.a <= 3;
select count(*) from smpl_t where b = 'taken';
begin;
select count(*) from (select a from smpl_t tablesample bernoulli (100) where a < 5 for update) x;
rollback;
-- views, materialized views, partitions, heirs
create view smpl_v as select * from smpl_t tablesample bernoulli (10) repeatable (5) where a > 3;
create view smpl_w as select s.a, v.x from smpl_t s tablesample system (1 + 1), (values (1)) v (x);
select pg_get_viewdef('smpl_v');
select pg_get_viewdef('smpl_w');
select * from smpl_v tablesample bernoulli (10);
select count(*) = (select count(*) from smpl_t tablesample bernoulli (10) repeatable (5) where a > 3) from smpl_v;
create materialized view smpl_m as select a from smpl_t where a <= 100;
select count(*) from smpl_m tablesample bernoulli (100);
create table smpl_p (a int primary key, b text) partition by range (a);
create table smpl_p1 partition of smpl_p for values from (0) to (100);
create table smpl_p2 partition of smpl_p for values from (100) to (1000);
insert into smpl_p select g, 'p' from generate_series(0, 999) g;
select count(*) from smpl_p tablesample bernoulli (100);
select count(*) between 300 and 700 from smpl_p tablesample bernoulli (50) repeatable (0);
select count(*) from smpl_p tablesample bernoulli (100) where a < 50;
create table smpl_h (a int, b text);
create table smpl_h1 () inherits (smpl_h);
insert into smpl_h select g from generate_series(1, 100) g;
insert into smpl_h1 select g from generate_series(1, 100) g;
select count(*) from smpl_h tablesample bernoulli (100);
select count(*) from only smpl_h tablesample bernoulli (100);
select tableoid::regclass, count(*) from smpl_h tablesample bernoulli (100) group by 1 order by 1;
select tableoid::regclass, count(*), min(a) from smpl_p tablesample system (100) group by 1 order by 1;
-- who may not read it may not take a sample
create role smpl_none;
set role smpl_none;
select * from smpl_t tablesample bernoulli (10);
reset role;
grant select (a) on smpl_t to smpl_none;
set role smpl_none;
select count(a) from smpl_t tablesample bernoulli (100) where a < 5;
select count(b) from smpl_t tablesample bernoulli (100);
reset role;
-- policies come first
alter table smpl_t enable row level security;
create policy smpl_few on smpl_t for select to smpl_none using (a < 8);
set role smpl_none;
select count(a) from smpl_t tablesample bernoulli (100);
reset role;
-- plans
explain (costs off) select * from smpl_t tablesample bernoulli (10) repeatable (5) where b = 'x1';
explain (costs off) select * from smpl_t s tablesample system (10);
explain (costs off, format json) select * from smpl_t s tablesample system (10) repeatable (3);
drop view smpl_v, smpl_w;
drop materialized view smpl_m;
drop table smpl_t, smpl_plain, smpl_one, smpl_two, smpl_p, smpl_h1, smpl_h;
drop role smpl_none;
