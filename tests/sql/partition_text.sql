-- names: ptx
-- What bounds mean as conditions, and indexes of a table that not all partitions have.
create table ptx_m (a int, b text, c numeric, d bigint, e date) partition by range (a, b, c);
create table ptx_m1 partition of ptx_m for values from (1, 'x', minvalue) to (1, 'z', 2.5);
create table ptx_m2 partition of ptx_m for values from (2, minvalue, minvalue) to (maxvalue, maxvalue, maxvalue);
create table ptx_m3 partition of ptx_m default;
create table ptx_e (a bigint, e date) partition by range (e);
create table ptx_e1 partition of ptx_e for values from ('2024-01-01') to ('2025-01-01') partition by list (a);
create table ptx_e1a partition of ptx_e1 for values in (1, 2, null);
create table ptx_e1b partition of ptx_e1 for values in (3);
create table ptx_e1d partition of ptx_e1 default;
create table ptx_ed partition of ptx_e default;
create table ptx_h (a bigint, e date) partition by hash (e, a);
create table ptx_h1 partition of ptx_h for values with (modulus 2, remainder 1);
create table ptx_l (t text) partition by list (lower(t));
create table ptx_l1 partition of ptx_l for values in ('a', 'b');
create table ptx_l2 partition of ptx_l for values in (null);
create table ptx_l3 partition of ptx_l default;
create table ptx_b (t boolean) partition by list (t);
create table ptx_b1 partition of ptx_b for values in (true);
create table ptx_b2 partition of ptx_b default;
create table ptx_v (v varchar(10), s smallint, k int) partition by range (v, k);
create table ptx_v1 partition of ptx_v for values from ('a', -5) to ('b', 7);
create table ptx_v2 partition of ptx_v for values from ('b', 7) to ('b', 9);
create table ptx_a (a int) partition by range (a);
create table ptx_a1 partition of ptx_a for values from (minvalue) to (maxvalue);
create table ptx_ad partition of ptx_a default;
select relname, regexp_replace(pg_get_partition_constraintdef(oid), '''[0-9]+''::oid', 'oid') from pg_class
  where relname like 'ptx\_%' and relkind in ('r', 'p') order by relname;
\d+ ptx_e1a
\d ptx_e
create index ptx_on_only on only ptx_b (t);
select indexrelid::regclass, indisvalid from pg_index where indrelid::regclass::text like 'ptx\_b%' order by 1;
create index ptx_b1_i on ptx_b1 (t);
alter index ptx_on_only attach partition ptx_b1_i;
select indexrelid::regclass, indisvalid from pg_index where indrelid::regclass::text like 'ptx\_b%' order by 1;
create index ptx_b2_i on ptx_b2 (t);
alter index ptx_on_only attach partition ptx_b2_i;
select indexrelid::regclass, indisvalid from pg_index where indrelid::regclass::text like 'ptx\_b%' order by 1;
drop table ptx_m, ptx_e, ptx_h, ptx_l, ptx_b, ptx_v, ptx_a;
