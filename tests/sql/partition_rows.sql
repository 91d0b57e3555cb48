-- names: partrow
-- Rows as values, parts of values and whole rows, of partitioned tables whose partitions have their
-- columns elsewhere.
create type partrow_pair as (a int, b text);
create table partrow_t (id int, c partrow_pair, l int[], w text, primary key (id)) partition by range (id);
create table partrow_t1 (w text, gone int, l int[], c partrow_pair, id int not null);
alter table partrow_t1 drop column gone;
alter table partrow_t attach partition partrow_t1 for values from (0) to (10);
create table partrow_t2 partition of partrow_t for values from (10) to (20);
insert into partrow_t values (1, row(1, 'x'), '{1,2,3}', 'one'), (11, (2, 'y'), '{4,5,6}', 'eleven');
select t from partrow_t t order by id;
select t.tableoid::regclass, t, (t.c).b, t.l[2:] from partrow_t t order by id;
update partrow_t set (w, id) = (select w || '!', id + 1) where id in (1, 11) returning *;
update partrow_t t set (w, id) = row('moved', t.id + 10) where id = 2 returning t;
select tableoid::regclass, * from partrow_t order by id;
update partrow_t set c.a = (c).a + 100, l[2] = 0, l[5] = 9 returning id, c, l;
update partrow_t set (c, l) = (select row(7, 'z')::partrow_pair, array[id]) where id = 12 returning *;
insert into partrow_t (id, c.b, l[1]) values (3, 'part', 33) returning *;
insert into partrow_t values (3, null, null, 'again')
  on conflict (id) do update set (w, l) = (select excluded.w || partrow_t.w, partrow_t.l || 1),
    c.a = 5 returning *;
insert into partrow_t values (12, null, null, 'again')
  on conflict (id) do update set (w, l) = row(excluded.w, partrow_t.l || 2) where partrow_t is not null
  returning *;
select count(t), count(*) from partrow_t t where t is not null;
select (select p from partrow_t2 p order by id limit 1) from partrow_t1 order by id;
delete from partrow_t t where t.c = row(5, 'part')::partrow_pair returning t;
select row_to_json(t) from partrow_t t order by id;
alter type partrow_pair rename attribute b to bb;
select (c).bb from partrow_t order by id;
create table partrow_k (k partrow_pair, v int) partition by list (v);
create table partrow_k1 partition of partrow_k for values in (1, null);
insert into partrow_k values ((1, 'k'), 1), (null, null), ('(2,)', null);
select k, k is null, k is not null, (k).a from partrow_k order by k;
create view partrow_v as select t.w, (t.c).a as first from partrow_t t where t.l[1:1] <> '{7}';
select * from partrow_v order by first;
-- Rows that are left out by a policy are in no whole row either.
create role partrow_r;
grant select on partrow_t to partrow_r;
alter table partrow_t enable row level security;
create policy partrow_p on partrow_t using (id > 11);
set role partrow_r;
select t from partrow_t t;
select count(t) from partrow_t1 t;
reset role;
revoke select on partrow_t from partrow_r;
grant select (id, w) on partrow_t to partrow_r;
set role partrow_r;
select t from partrow_t t;
select id, w from partrow_t;
select count(t.w) from partrow_t t;
reset role;
drop view partrow_v;
drop table partrow_t, partrow_k;
drop type partrow_pair;
drop role partrow_r;
-- Indexes of partitioned tables are built anew in their partitions.
create table partrow_i (a int, b int) partition by range (a);
create table partrow_i1 partition of partrow_i for values from (0) to (10) partition by list (b);
create table partrow_i2 partition of partrow_i1 default;
create table partrow_i3 partition of partrow_i for values from (10) to (20);
create index partrow_ia on partrow_i ((a + b)) where b > 1;
create index partrow_ib on partrow_i (b);
insert into partrow_i select g % 20, g from generate_series(1, 60) g;
reindex table partrow_i;
reindex index partrow_ia;
reindex index concurrently partrow_ib;
reindex table partrow_i3;
select count(*) from partrow_i where a + b = 40 and b > 1;
select pg_partition_root('partrow_i2'), pg_partition_root('partrow_ib'), pg_partition_root('pg_class');
drop table partrow_i;
