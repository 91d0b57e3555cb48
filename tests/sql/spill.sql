-- names: spill
-- What does not fit into work_mem goes to scratch space, and answers the same.
set work_mem = '64kB';
create table spill_t (id int primary key, k int, grp int, s text, n numeric(12, 2));
insert into spill_t
  select i, (i * 7919) % 13007, i % 1000, 'row ' || (i * 31 % 8009), i / 7.0
  from generate_series(1, 9000) i;
create table spill_u (k int, v text);
insert into spill_u select (i * 3) % 20011, 'value ' || i from generate_series(1, 7000) i;
insert into spill_u select null, 'null ' || i from generate_series(1, 20) i;

-- Sorts: a run is as large as memory, and rows that are equal keep their order.
select count(*), sum(a.r * (id % 97)) from (select id, row_number() over () r from (select * from spill_t order by k, id) x) a;
select id, k, s from spill_t order by k desc, id limit 3;
select id, k, s from spill_t order by s, id offset 8997;
select id, n from spill_t order by n desc nulls last, id offset 4999 limit 2;
select md5(string_agg(id::text, ',')) from (select id from spill_t order by s desc, k nulls first) x;
select v, k from spill_u order by k nulls first, v limit 3;
select v, k from spill_u order by k, v offset 7017;
select count(*) from (select * from (select repeat('x', 3000) || i as long, i from generate_series(1, 500) i) x order by long) y;
select length(long), i from (select repeat('y', 200000) as long, i from generate_series(1, 6) i) x order by long, i desc;
-- Values of all kinds come back as they were.
select md5(string_agg(x::text, ';')) from (
  select i, i::numeric / 3 as q, 'NaN'::numeric as nan, array[i, null, i + 1] as a, row(i, 'a') as r, null::text as e,
    ('{"a": ' || i || '}')::jsonb as j, int4range(i, i + 3) as g, (i || ' days')::interval as d, date '2020-01-01' + i as day,
    decode(to_hex(i + 4096), 'hex') as b, '10.0.0.1/8'::inet + i as net, (i % 2 = 0) as flag, i::float8 / 7 as f, i::bit(12) as bits,
    'a b'::char(5) as c
  from generate_series(1, 1500) i order by i % 7, i desc) x;
-- A whole row of a table keeps the names of its fields.
select to_json(x) from (select t from spill_t t order by k desc, id limit 1) x;

-- Groups.
select count(*), sum(c), min(c), max(c), sum(g % 13 * c) from (select k as g, count(*) as c from spill_t group by k) x;
select count(*), md5(string_agg(g || ':' || c || ':' || m, ',' order by g)) from (select s as g, count(*) as c, max(id) as m from spill_t group by s) x;
select grp, count(*), sum(n), array_agg(id order by id) from spill_t where id < 3000 group by grp order by grp limit 2;
select count(*), sum(length(a)) from (select k, string_agg(s, ',' order by id) a from spill_t group by k) x;
select count(*), sum(c) from (select k, grp, count(*) c from spill_t group by grouping sets ((k, grp), (k), (grp), ())) x;
select count(*), sum(c), sum(coalesce(k, 0)), sum(coalesce(grp, 0)) from (select k, grp, count(*) c from spill_t group by rollup (k, grp)) x;
select k, count(*) from spill_t group by k having count(*) > 1 order by k limit 3;
select count(*) from (select v, count(distinct k) from spill_u group by v) x;
select count(*), count(k), sum(k) from (select k from spill_u group by k) x;

-- DISTINCT, and set operations.
select count(*), sum(k) from (select distinct k from spill_t) x;
select count(*), count(k) from (select distinct k from spill_u) x;
select count(*), sum(length(s)) from (select distinct s, grp % 5 from spill_t) x;
select count(*), sum(id) from (select distinct on (s) s, id from spill_t order by s, id desc) x;
select s, id from (select distinct on (s) s, id from spill_t order by s, id desc) x limit 3;
select count(*), sum(k) from (select k from spill_t union select k from spill_u) x;
select count(*), sum(k) from (select k from spill_t intersect select k from spill_u) x;
select count(*), sum(k) from (select k from spill_t except select k from spill_u) x;
select count(*), sum(k) from (select k from spill_u except select k from spill_t) x;
select count(*), sum(k) from (select k % 6000 as k from spill_t intersect all select k % 6000 from spill_u) x;
select count(*), sum(k) from (select k % 6000 as k from spill_t except all select k % 6000 from spill_u) x;
select count(*), sum(k) from (select k from spill_t union all select k from spill_u) x;

-- Joins, of every kind.
select count(*), sum(t.id), sum(length(u.v)) from spill_t t join spill_u u on u.k = t.k;
select count(*), sum(t.id), count(u.v) from spill_t t left join spill_u u on u.k = t.k;
select count(*), sum(t.id), count(u.v) from spill_t t right join spill_u u on u.k = t.k;
select count(*), sum(t.id), count(u.v) from spill_t t full join spill_u u on u.k = t.k;
select count(*), sum(t.id) from spill_t t where exists (select from spill_u u where u.k = t.k);
select count(*), sum(t.id) from spill_t t where not exists (select from spill_u u where u.k = t.k);
select count(*) from spill_u u where exists (select from spill_t t where u.k = t.k and t.id % 3 = 0);
select count(*) from spill_u u where not exists (select from spill_t t where u.k = t.k and t.id % 3 = 0);
select count(*), sum(t.id) from spill_t t join spill_u u on u.k = t.k and length(u.v) > t.grp % 12;
select count(*), sum(t.id), count(u.v) from spill_t t left join spill_u u on u.k = t.k and length(u.v) > t.grp % 12;
select count(*), sum(t.id), count(u.v) from spill_t t full join spill_u u on u.k = t.k and u.k > 0;
select count(*), sum(a.id), sum(b.id) from spill_t a join spill_t b on a.s = b.s and a.grp = b.grp;
-- One key has everything.
select count(*), sum(b.id) from (select id from spill_t where id <= 8) a join (select 1 as one, id from spill_t) b on b.one = a.id / a.id;
create table spill_one (k int, id int);
insert into spill_one select 7, i from generate_series(1, 4000) i;
insert into spill_one select i, i from generate_series(8, 20) i;
select count(*), sum(a.id % 10) from spill_one a join (select * from spill_one where id <= 40 or k <> 7) b on a.k = b.k;
select count(*), count(a.id), count(b.id) from (select * from spill_one where id <= 30) a full join spill_one b on a.k = b.k and b.id % 2 = a.id % 2;
select count(*), count(a.id), count(b.id) from (select * from spill_one where id <= 30) a left join spill_one b on a.k = b.k and b.id > 3990;
select count(*), count(a.id), count(b.id) from (select * from spill_one where id <= 30) a right join spill_one b on a.k = b.k and b.id > 3990;
select count(*) from spill_one a where exists (select from spill_one b where a.k = b.k and b.id = a.id + 3000);
select count(*) from spill_one a where not exists (select from spill_one b where a.k = b.k and b.id = a.id + 3000);
-- Without anything that can be hashed.
select count(*), sum(a.id) from (select * from spill_t where id <= 20) a join spill_u u on u.k < a.id;
select count(*), sum(a.id), count(u.v) from (select * from spill_t where id <= 20) a left join spill_u u on u.k < a.id - 5;
set enable_hashjoin = off;
set enable_mergejoin = off;
select count(*), count(a.id), count(b.id) from (select * from spill_one where id <= 10) a left join spill_one b on a.k = b.k;
reset enable_hashjoin;
reset enable_mergejoin;
select count(*), sum(x.id) from (select * from spill_t where id <= 3) a, lateral (select * from spill_t b where b.id > a.id order by b.k) x;

-- Windows.
select count(*), sum(c), max(r) from (select count(*) over () c, rank() over (order by grp) r from spill_t) x;
select sum(f), sum(l), sum(p) from (select first_value(id) over w f, last_value(id) over w l, lag(id, 900) over w p from spill_t where id <= 5000 window w as (order by k, id rows between unbounded preceding and unbounded following)) x;
select sum(a), sum(b) from (select sum(id) over (partition by grp % 3 order by id rows between 1000 preceding and 10 following) a, ntile(7) over (partition by grp % 2 order by id) b from spill_t where id <= 4000) x;
select sum(a), sum(b) from (select count(*) over (order by id range between 900 preceding and 20 following) a, count(*) over (order by id / 50 groups between 2 preceding and 1 following exclude group) b from spill_t where id <= 3000) x;
select max(c), min(c), count(*) from (select cume_dist() over (order by id) c from spill_t) x;

-- WITH.
with w as materialized (select * from spill_t) select count(*), sum(a.id) from w a join w b on a.id = b.id + 1;
with recursive r(i, t) as (select 1, 'some text' union all select i + 1, t || '' from r where i < 8000) select count(*), sum(i), max(length(t)) from r;
with recursive r(i) as (select i from generate_series(1, 3000) i union select i + 3000 from r where i < 9000) select count(*), sum(i) from r;
with recursive r(i, j) as (select i, 1 from generate_series(1, 5000) i union all select i, j + 1 from r where j < 4) select count(*), sum(i), sum(j) from r;

-- Cursors go back to what they have kept, and outlive their transaction.
begin;
declare spill_c scroll cursor for select id, k from spill_t order by k, id;
move forward 8998 in spill_c;
fetch 2 from spill_c;
fetch backward 3 from spill_c;
fetch absolute 7 from spill_c;
move backward all in spill_c;
fetch 2 from spill_c;
declare spill_h cursor with hold for select id, s from spill_t order by s, id;
commit;
fetch absolute 7000 from spill_h;
fetch 2 from spill_h;
fetch absolute 3 from spill_h;
fetch last from spill_h;
fetch prior from spill_h;
close spill_h;

-- What writes, from what was sorted or joined in scratch space.
create table spill_w (n int, k int);
insert into spill_w select row_number() over (order by k, id), k from spill_t;
select count(*), sum(n * (k % 11)::bigint) from spill_w;
update spill_w set k = x.v from (select k, max(length(v)) v from spill_u group by k) x where x.k = spill_w.k;
select count(*), sum(k) from spill_w;
delete from spill_w using spill_t t where t.id = spill_w.n and t.grp > 300;
select count(*), sum(n) from spill_w;

-- temp_file_limit, and what follows an error.
show temp_file_limit;
set temp_file_limit = '40kB';
select count(*) from (select * from spill_t order by s offset 1) x;
select count(*) from (select k, count(*) from spill_t group by k) x;
reset temp_file_limit;
select count(*) from (select * from spill_t order by s offset 1) x;
select max(q) from (select id / (id - 7000) as q, s from spill_t order by s, id offset 1) x;
begin;
declare spill_e cursor for select s, id / (5000 - id) as q from spill_t order by q;
fetch 1 from spill_e;
rollback;
create role spill_role;
set role spill_role;
set temp_file_limit = '1kB';
reset role;
drop role spill_role;
set hash_mem_multiplier = 1;
select count(*), sum(k) from (select k from spill_t group by k) x;
set hash_mem_multiplier = 0.5;
set hash_mem_multiplier = 1001;
show hash_mem_multiplier;
set work_mem = '63kB';
drop table spill_t, spill_u, spill_one, spill_w;
