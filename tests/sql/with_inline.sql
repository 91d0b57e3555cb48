-- names: wti
-- Queries of WITH that are read where they are named, and those that run once.
create table wti_a (id int primary key, k int, t text);
create table wti_log (n int);
insert into wti_a select i, i % 4, 'a' || i from generate_series(1, 20) as i;
analyze wti_a;
create sequence wti_seq;
-- Named once: conditions go into it.
with w as (select id, k + 1 as n, t from wti_a where k > 0) select * from w where id = 7;
with w(x, y) as (select id, k from wti_a) select x, y from w where y = 2 order by x;
with w as (select k, count(*) as n from wti_a group by k) select * from w where k = 1;
with w as (select distinct k from wti_a) select * from w where k > 1 order by 1;
with w as (select k from wti_a union select id from wti_a) select * from w where k < 3 order by 1;
with w as (select id, k from wti_a order by id desc limit 3) select * from w where k = 3 order by 1;
with w as (select 'x' as a, null as b, 1.50 as c) select a || 'y', b, c, pg_typeof(a), pg_typeof(b) from w;
with v as (select id, k from wti_a), w as (select k, max(id) as m from v group by k) select * from w order by 1;
with v as (select id from wti_a where k = 1), w as (select id from wti_a where id in (select id from v)) select count(*), max(id) from w;
-- Beside others, and in outer joins.
with w as (select id, k, 1 as one from wti_a where k = 2) select a.id, w.id, w.one from wti_a as a left join w on w.id = a.id where a.id < 8 order by 1;
with w as (select id, k, 1 as one from wti_a where k = 2) select a.id, w.id, w.one from wti_a as a full join w on w.id = a.id + 15 order by 1, 2;
with w as (select id, k from wti_a) select a.id, l.m from wti_a as a, lateral (select max(w.id) as m from w where w.k = a.k) as l where a.id < 4 order by 1;
with w as (select id, k from wti_a where k < 2) select a.id, (select count(*) from w where w.k = a.k) from wti_a as a where a.id < 5 order by 1;
with w as (select id from wti_a where k = 3) select id from wti_a where id not in (select id from w) order by 1 limit 5;
-- Named twice, or as told.
with w as (select k, count(*) as n from wti_a group by k) select a.k, b.n from w as a, w as b where a.k = b.k + 1 order by 1;
with w as not materialized (select id, k from wti_a) select a.id, b.id from w as a join w as b on b.id = a.id + 1 where a.k = 2 order by 1;
with w as not materialized (select k, count(*) as n from wti_a group by k) select (select n from w where k = 1), (select max(n) from w), exists (select 1 from w where k = 9);
with w as materialized (select id, k from wti_a) select * from w where id = 5;
with v as not materialized (select id from wti_a where k = 1), w as (select a.id from v as a join v as b using (id)) select count(*) from w;
-- A name may hide another.
with wti_a as (select 1 as id) select * from wti_a;
with w as (select id from wti_a where id = 1) select * from w, (with w as (select 2 as two) select * from w) as d;
with w as (select id from wti_a where id = 3), v as (with w as (select id + 1 as id from w) select * from w) select * from v;
with w as (select 1 as id), v as not materialized (select id from w), x as (with w as (select 2 as id) select v.id as a, w.id as b, u.id as c from v, w, v as u) select * from x;
-- What differs each time, fails or writes runs once.
with w as (select nextval('wti_seq') as n from wti_a) select max(n) from w where n < 5;
select nextval('wti_seq');
with w as not materialized (select nextval('wti_seq') as n) select a.n = b.n from w as a, w as b;
with w as not materialized (select random() as r) select a.r = b.r from w as a, w as b;
with w as (insert into wti_log values (1), (2) returning n) select sum(n) from w;
with w as (select id from wti_a where id < 3) insert into wti_log select id + 10 from w returning n;
with w as (select k, max(id) as m from wti_a group by k) update wti_a as a set t = 'max' from w where w.m = a.id and w.k < 2 returning a.id, a.t;
with w as (select id from wti_a where k = 0) delete from wti_a using w where wti_a.id = w.id and w.id > 10 returning wti_a.id;
with w as (select 1 / 0 as x) select 1;
with w as (select 1 / (id - id) as x from wti_a) select x from w where false;
with w as (select id from missing) select 1;
-- Recursion.
with recursive w as (select 1 as n) select * from w;
with recursive w as (select 1 as n union all select n + 1 from w where n < 4), v as (select n * 2 as m from w) select * from v where m > 2 order by 1;
with recursive v as (select id from wti_a where id < 4), w(n) as (select id from v where id = 1 union all select n + 1 from w where n + 1 in (select id from v)) select * from w order by 1;
with recursive w(n) as (select 1 union all (with v as (select n from w) select n + 1 from v where n < 3)) select * from w order by 1;
-- Within subqueries that look around them.
select a.id, (with w as (select count(*) as n from wti_a as b where b.k = a.k) select n from w) from wti_a as a where a.id < 4 order by 1;
select a.id, (with w as (select id, k from wti_a) select max(w.id) from w where w.k = a.k) from wti_a as a where a.id < 4 order by 1;
-- Locks, parameters, views, cursors.
with w as (select id, k from wti_a) select w.id from w join wti_a as a on a.id = w.id where a.k = 1 order by 1 for update of a;
with w as (select id from wti_a where id = 2 for update) select * from w;
prepare wti_p(int) as with w as (select id, k from wti_a where k = $1) select count(*), max(id) from w where id > $1;
execute wti_p(1);
execute wti_p(2);
create view wti_view as with w as (select id, k from wti_a) select * from w where k = 1;
select * from wti_view where id < 10 order by 1;
begin;
declare wti_c cursor for with w as (select id from wti_a) select * from w where id < 5 order by 1;
fetch 2 from wti_c;
fetch 5 from wti_c;
rollback;
-- Rights and policies are those of whoever asks.
create role wti_role;
alter table wti_a enable row level security;
create policy wti_policy on wti_a to wti_role using (id < 4);
set role wti_role;
with w as (select id from wti_a) select * from w;
reset role;
grant select on wti_a to wti_role;
set role wti_role;
with w as (select id from wti_a) select * from w where id > 1 order by 1;
with w as not materialized (select id from wti_a) select count(*) from w as a, w as b;
reset role;
drop view wti_view;
drop table wti_a, wti_log;
drop sequence wti_seq;
drop role wti_role;
