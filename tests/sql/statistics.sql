-- names: stkinds stpart strenamed stempty stread stseen stview sttemp stsecret streader ststranger
-- Tables that are sampled whole have the same statistics everywhere.
create table stkinds (id int primary key, few int, label text, flag bool, price numeric(8, 2), day date,
  gone int, odd text, wide text, j json, list int[], at timestamptz, f float8, b bytea, u uuid, c char(6));
insert into stkinds select g, g % 7, 'name ' || (g * g) % 113, g % 10 = 0, (g % 40) * 1.25,
  date '2024-01-01' + g % 365, null, case when g % 3 = 0 then 'x' || g end,
  repeat('w', case when g % 50 = 0 then 3000 else 10 + g % 5 end), '{"a": 1}', array[g % 3, g],
  timestamptz '2024-01-01 00:00:00+00' + g * interval '1 hour', sqrt(g % 11), decode(lpad(to_hex(g % 256), 2, '0'), 'hex'),
  ('00000000-0000-0000-0000-' || lpad(to_hex(g % 90), 12, '0'))::uuid, 'c' || g % 5
  from generate_series(1, 1000) g;
select count(*) from pg_stats where tablename = 'stkinds';
analyze stkinds;
set extra_float_digits = 0;
select attname, inherited, null_frac, avg_width, n_distinct, correlation from pg_stats
  where tablename = 'stkinds' and attname not in ('wide', 'j') order by attname;
select attname, null_frac, n_distinct from pg_stats where tablename = 'stkinds' and attname in ('wide', 'j') order by 1;
select attname, most_common_vals, most_common_freqs from pg_stats
  where tablename = 'stkinds' and attname <> 'wide' order by attname;
select attname, histogram_bounds from pg_stats where tablename = 'stkinds' and attname <> 'wide' order by attname;
-- A target for a column.
alter table stkinds alter column price set statistics 5, alter label set statistics 3, alter column flag set statistics 0;
select attname, attstattarget from pg_attribute where attrelid = 'stkinds'::regclass and attnum in (3, 4, 5, 6) order by attnum;
analyze stkinds;
select attname, n_distinct, most_common_vals, most_common_freqs, histogram_bounds from pg_stats
  where tablename = 'stkinds' and attname in ('label', 'price', 'flag') order by attname;
alter table stkinds alter price set statistics -2;
alter table stkinds alter price set statistics 10001;
select attstattarget from pg_attribute where attrelid = 'stkinds'::regclass and attname = 'price';
alter table stkinds alter nosuch set statistics 10;
alter table stkinds alter price set statistics -1;
-- Fewer by the setting.
set default_statistics_target = 4;
analyze stkinds (price, id);
reset default_statistics_target;
select attname, most_common_vals, histogram_bounds from pg_stats
  where tablename = 'stkinds' and attname in ('id', 'price') order by attname;
analyze stkinds (nosuch);
analyze stkinds (price, price);
analyze nosuch;
-- It is part of the transaction.
create table stpart (i int, t text);
insert into stpart select g % 4, 'a' from generate_series(1, 20) g;
begin;
analyze stpart;
select attname, n_distinct, most_common_vals, most_common_freqs from pg_stats where tablename = 'stpart' order by 1;
rollback;
select count(*) from pg_stats where tablename = 'stpart';
begin;
insert into stpart values (9, 'b');
analyze stpart (i);
savepoint s;
update stpart set i = 1;
analyze stpart;
rollback to s;
commit;
select attname, n_distinct, most_common_vals from pg_stats where tablename = 'stpart' order by 1;
-- What was found goes with the column, the table, and the type.
analyze stpart;
alter table stpart alter i type bigint;
select attname from pg_stats where tablename = 'stpart' order by 1;
analyze stpart;
alter table stpart rename i to number;
alter table stpart rename to strenamed;
select tablename, attname from pg_stats where tablename like 'strenamed' order by 1, 2;
alter table strenamed drop column t;
select tablename, attname from pg_stats where tablename like 'strenamed' order by 1, 2;
drop table strenamed;
select count(*) from pg_stats where tablename = 'strenamed';
-- Nothing, nothing but NULLs, one row.
create table stempty (i int);
analyze stempty;
select * from pg_stats where tablename = 'stempty';
insert into stempty values (null), (null);
analyze stempty;
select attname, null_frac, avg_width, n_distinct, most_common_vals, histogram_bounds, correlation from pg_stats where tablename = 'stempty';
drop table stempty;
-- In a transaction that only reads, and with VACUUM.
create table stread (i int);
insert into stread values (1), (1), (2);
begin read only;
analyze stread;
commit;
select most_common_vals::text from pg_stats where tablename = 'stread';
truncate stread;
insert into stread values (3), (3);
vacuum analyze stread;
select most_common_vals from pg_stats where tablename = 'stread';
vacuum (analyze false) stread;
create materialized view stseen as select i % 2 as m from generate_series(1, 10) i;
analyze stseen;
select attname, most_common_vals from pg_stats where tablename = 'stseen';
create view stview as select 1;
analyze stview;
create temp table sttemp (i int);
insert into sttemp values (1), (1);
analyze sttemp;
select most_common_vals from pg_stats where tablename = 'sttemp';
-- pg_statistic itself.
select staattnum, stainherit, stakind1, stakind2, stakind3, stakind4, staop1, staop2, staop3, stacoll1, stacoll3,
  stanumbers1, stavalues1 from pg_statistic where starelid = 'stread'::regclass;
select pg_typeof(most_common_vals), most_common_vals::text::int[] from pg_stats where tablename = 'stread';
-- Who may, and who sees what.
create role streader;
create role ststranger;
create table stsecret (a int, b int);
insert into stsecret values (1, 2), (1, 2);
analyze stsecret;
grant select (a) on stsecret to streader;
set role ststranger;
analyze stsecret;
analyze pg_class;
analyze pg_authid;
select attname from pg_stats where tablename = 'stsecret';
select count(*) from pg_statistic;
set role streader;
analyze stsecret;
select attname from pg_stats where tablename = 'stsecret';
reset role;
alter table stsecret enable row level security;
set role streader;
select attname from pg_stats where tablename = 'stsecret';
reset role;
select attname from pg_stats where tablename = 'stsecret' order by 1;
drop role ststranger;
revoke all on stsecret from streader;
drop role streader;
