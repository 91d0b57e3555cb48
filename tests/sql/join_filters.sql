-- names: jfact jdim jleaf jpart jwide jcount
-- Scans that leave out rows for which a join above finds no pair: whatever stands in between, the answers
-- are those of the joins alone.
create table jdim (id int primary key, grp int, name text, note char(8));
insert into jdim select i, i % 10, 'name ' || i, 'n' || i % 7 from generate_series(1, 400) i;
create table jfact (id int primary key, dim int, other int, name text, note char(8), amount numeric(10, 2));
insert into jfact
select i, case when i % 11 = 0 then null else i % 500 end, i % 37, 'name ' || i % 600,
    case when i % 13 = 0 then null else 'n' || i % 9 end, i * 1.25
from generate_series(1, 6000) i;
create table jleaf (fact int, part int, weight int, primary key (fact, part));
insert into jleaf select i, j, i * j % 100 from generate_series(1, 3000) i, generate_series(1, 3) j;
analyze jdim, jfact, jleaf;
-- By every kind of join, with few right rows.
select count(*), sum(f.amount) from jfact f join jdim d on f.dim = d.id where d.grp = 3;
select count(*), count(d.id), sum(f.amount) from jfact f left join jdim d on f.dim = d.id and d.grp = 3;
select count(*), count(f.id), sum(d.id) from jfact f right join jdim d on f.dim = d.id where d.grp = 3;
select count(*), count(f.id), count(d.id) from jfact f full join (select * from jdim where grp = 3) d on f.dim = d.id;
select count(*) from jfact f where exists (select from jdim d where d.id = f.dim and d.grp = 3);
select count(*) from jfact f where not exists (select from jdim d where d.id = f.dim and d.grp = 3);
select count(*) from jfact f where f.dim in (select d.id from jdim d where d.grp = 3 and d.id <> f.other);
-- No right row.
select count(*), sum(f.amount) from jfact f join jdim d on f.dim = d.id where d.name = 'none';
select count(*), count(d.id) from jfact f left join jdim d on f.dim = d.id and d.name = 'none';
select count(*), count(f.id) from jfact f right join jdim d on f.dim = d.id where d.name = 'none';
select count(*) from jfact f full join (select * from jdim where name = 'none') d on f.dim = d.id;
-- By several columns, texts, blanks, and what is computed.
select count(*) from jfact f join jdim d on f.name = d.name where d.grp = 4;
select count(*) from jfact f join jdim d on f.note = d.note where d.id < 5;
select count(*) from jfact f join jdim d on f.dim = d.id and f.note = d.note where d.grp in (1, 2);
select count(*) from jfact f join jdim d on f.dim + 1 = d.id where d.grp = 5;
select count(*) from jfact f join jdim d on f.dim = d.id + 1 where d.grp = 5;
select count(*) from jfact f join jdim d on f.dim = d.id::bigint where d.grp = 5;
select count(*) from jfact f join jdim d on f.amount = d.id * 2.5 where d.grp = 5;
-- Past joins, on either side of them.
select count(*), sum(l.weight) from jleaf l join jfact f on l.fact = f.id join jdim d on f.dim = d.id where d.grp = 7;
select count(*), sum(l.weight) from jleaf l join jfact f on l.fact = f.id join jdim d on l.weight = d.id where d.grp = 7;
select count(*), count(f.id), count(d.id) from jleaf l left join jfact f on l.fact = f.id and f.other < 5 join jdim d on l.weight = d.id where d.grp = 7;
select count(*), count(l.fact), count(f.id) from jleaf l right join jfact f on l.fact = f.id join jdim d on f.dim = d.id where d.grp = 7;
select count(*), count(l.fact) from (jleaf l right join jfact f on l.fact = f.id and l.part = 2) join jdim d on coalesce(l.weight, 7) = d.id where d.grp = 7;
select count(*), count(l.fact), count(f.id) from (jleaf l full join jfact f on l.fact = f.id + 1000) join jdim d on l.weight = d.id where d.grp = 7;
select count(*) from jfact f join jdim d on f.dim = d.id where d.grp = 7 and not exists (select from jleaf l where l.fact = f.id and l.weight > 50);
select count(*) from jfact f join jdim d on f.dim = d.id where d.grp = 7 and exists (select from jleaf l where l.fact = f.id and l.weight > f.other);
-- Past what only hands rows on, and what does not.
select count(*), sum(u.v) from (select dim as k, amount as v from jfact union all select other, 1 from jfact) u join jdim d on u.k = d.id where d.grp = 2;
select count(*) from (select dim as k, row_number() over (order by id) as n from jfact) u join jdim d on u.k = d.id where d.grp = 2 and n > 3000;
select count(*), sum(c) from (select dim as k, count(*) as c from jfact group by dim) u join jdim d on u.k = d.id where d.grp = 2;
select count(*) from (select dim as k from jfact order by id limit 3000) u join jdim d on u.k = d.id where d.grp = 2;
select count(*), sum(x.n) from jdim d, lateral (select count(*) as n from jfact f join jdim e on f.dim = e.id where e.grp = d.grp) x where d.id < 6;
select d.id, (select count(*) from jfact f join jdim e on f.dim = e.id where e.grp = d.grp) from jdim d where d.id <= 3 order by 1;
create sequence jcount;
select max(n) > 5000 from (select dim as k, nextval('jcount') as n from jfact) u join jdim d on u.k = d.id where d.grp = 2;
select last_value from jcount;
select count(*) from (select dim as k from jfact offset 0) u join jdim d on u.k = d.id where d.grp = 2 and nextval('jcount') > 0;
drop sequence jcount;
with w as (select dim as k, amount as v from jfact) select count(*), sum(a.v) from w a join jdim d on a.k = d.id where d.grp = 6;
-- Rows of partitions, and those of older tables.
create table jpart (id int, k int) partition by range (id);
create table jpart_a partition of jpart for values from (1) to (2000);
create table jpart_b partition of jpart for values from (2000) to (9000);
insert into jpart select id, dim from jfact;
select count(*) from jpart p join jdim d on p.k = d.id where d.grp = 8;
alter table jfact add column late int default 33;
insert into jfact (id, dim, late) select i, i % 500, i % 50 from generate_series(7001, 8000) i;
select count(*), count(distinct f.late) from jfact f join jdim d on f.late = d.id where d.grp in (3, 4);
-- Long keys.
create table jwide (id int primary key, k text);
insert into jwide select i, repeat(md5((i % 300)::text), 200) from generate_series(1, 600) i;
select count(*) from jwide a join (select k from jwide where id < 10) b on a.k = b.k;
-- What writes and locks.
begin;
update jfact f set other = -1 from jdim d where f.dim = d.id and d.grp = 9;
select count(*) from jfact where other = -1;
delete from jfact f using jdim d where f.dim = d.id and d.grp = 8;
select count(*) from jfact;
select count(*) from (select f.id from jfact f join jdim d on f.dim = d.id where d.grp = 1 for update of f) x;
rollback;
-- In scratch space.
set work_mem = '64kB';
select count(*), sum(f.amount) from jfact f join jdim d on f.dim = d.id where d.grp < 9;
select count(*), sum(l.weight) from jleaf l join jfact f on l.fact = f.id join jdim d on f.dim = d.id where d.grp = 7;
reset work_mem;
-- Groups whose rows are neighbours.
select count(*), sum(n), sum(w), max(m) from (select fact, count(*) as n, sum(weight) as w, max(part) as m from jleaf group by fact) x;
select fact, sum(weight), array_agg(part order by weight, part) from jleaf where fact in (1, 2, 2999) group by fact order by fact;
select count(*) from (select fact from jleaf group by fact having sum(weight) > 150) x;
select fact, part, count(*) from jleaf where fact < 3 group by part, fact order by 1, 2;
select fact, weight, count(*) from jleaf where fact = 50 group by weight, fact order by 1, 2;
select fact, weight, grouping(fact), count(distinct part) from jleaf where fact < 4 group by fact, weight order by 1, 2;
select fact, part, weight, count(*) filter (where part > 1) from jleaf where fact = 7 group by fact, part, weight order by 2;
select count(*) from (select distinct fact from jleaf) x;
create index jfact_dim on jfact (dim, other);
select dim, count(*), min(other) from jfact where dim is null or dim < 3 group by dim order by dim;
select other, count(*) from jfact where dim = 5 group by other order by other limit 3;
select dim, sum(amount) from jfact where dim between 10 and 12 group by dim order by dim;
select count(*), sum(n) from (select dim as k, count(*) as n from jfact where dim > 490 group by 1 offset 1) x;
select fact, count(*) from jleaf where fact > 5000 group by fact;
-- Lookups one after the other, for other rows each.
select count(*), sum(l.weight) from jdim d join jleaf l on l.fact = d.id where d.grp = 0;
select count(*), sum(s) from jdim d, lateral (select weight as s from jleaf l where l.fact = d.id and l.part < d.grp) x where d.id < 50;
select count(*) from jdim d where d.id < 60 and exists (select from jleaf l where l.fact = d.id and l.weight > d.grp * 10);
select count(*) from jdim d where d.id < 60 and not exists (select from jleaf l where l.fact = d.id and l.weight > d.grp * 10);
-- A left join by either side.
select count(*), count(f.id), count(distinct d.id) from jdim d left join jfact f on f.dim = d.id and f.other < 3;
select d.id, count(f.id) from jdim d left join jfact f on f.dim = d.id and f.name like '%5' group by d.id having count(f.id) > 5 order by 1;
select count(*) from (values (1), (null), (450), (9999)) v(k) left join jfact f on f.dim = v.k;
-- A subquery's value beside stored columns.
select count(*) from jfact where amount > (select avg(amount) from jfact);
select count(*) from jfact where dim = (select id from jdim where name = 'name 7');
select count(*) from jfact where dim = (select id from jdim where name = 'none');
select count(*) from jfact where dim = (select id from jdim where grp = 1);
drop table jfact, jdim, jleaf, jpart, jwide;
