-- names: pal
-- ALTER TABLE of partitioned tables goes down to all that is below; partitions keep what they have from their parents.
create table pal_m (k int not null, v text, w int) partition by range (k);
create table pal_m1 partition of pal_m for values from (0) to (10);
create table pal_m2 (w int, gone int, v text, k int not null);
alter table pal_m2 drop column gone;
insert into pal_m2 values (22, 'twelve', 12);
alter table pal_m attach partition pal_m2 for values from (10) to (20) ;
create table pal_ms partition of pal_m for values from (20) to (40) partition by list (w);
create table pal_ms1 partition of pal_ms for values in (1, null);
insert into pal_m values (1, 'one', 1), (25, 'deep', 1);
-- columns
alter table only pal_m add column c int;
alter table pal_m add column c int default 7, add column d text;
alter table pal_m add column c int;
alter table pal_m add column if not exists c int;
alter table pal_m add column e int generated always as (k * 2) stored;
alter table pal_m add column f serial;
alter table pal_m add column g int generated always as identity;
alter table pal_m add column h int check (h > 0) default 5;
alter table pal_m1 add column z int;
select tableoid::regclass, k, v, w, c, d, e, h from pal_m order by k;
insert into pal_m (k, v, h) values (2, 'bad', 0);
insert into pal_m2 (k, v, h) values (13, 'bad', 0);
insert into pal_m (k, v) values (3, 'three'), (14, 'fourteen') returning tableoid::regclass, *;
alter table pal_m drop column k;
alter table pal_m drop column w;
alter table only pal_m drop column d;
alter table pal_m1 drop column d;
alter table pal_m1 drop column nothing;
alter table pal_m drop column d, drop column f;
alter table pal_m rename column v to name;
alter table only pal_m rename column name to v;
alter table pal_m1 rename column name to v;
alter table pal_ms1 rename column nothing to v;
alter table pal_m rename column w to w2;
alter table pal_ms rename column name to v;
select tableoid::regclass, * from pal_m order by k;
insert into pal_m values (30, 'w2', 2);
alter table pal_m rename column w2 to w;
select column_name, data_type, column_default from information_schema.columns where table_name = 'pal_ms1' order by 1;
-- types
alter table pal_m alter column k type bigint;
alter table pal_m alter column w type bigint;
alter table only pal_m alter column c type bigint;
alter table pal_m2 alter column c type bigint;
alter table pal_m alter column c type numeric(8, 2) using c / 2.0, alter column h type bigint;
select tableoid::regclass, k, c, h from pal_m order by k;
alter table pal_m alter column c type int using 'x'::text::int;
-- defaults
alter table pal_m alter column c set default 1.25;
alter table only pal_m alter column h set default 99;
alter table pal_m1 alter column name set default 'own';
insert into pal_m (k) values (4), (15) returning tableoid::regclass, k, name, c, h;
insert into pal_m1 (k) values (5) returning *;
alter table pal_m alter column c drop default;
insert into pal_m1 (k) values (6) returning *;
-- NOT NULL
alter table pal_m alter column name set not null;
delete from pal_m where name is null;
alter table only pal_m alter column name set not null;
alter table pal_m alter column name set not null;
insert into pal_m (k) values (7);
insert into pal_m2 (k) values (17);
alter table pal_m2 alter column name drop not null;
alter table only pal_m alter column name drop not null;
alter table pal_m alter column name drop not null;
insert into pal_m (k) values (7), (17) returning tableoid::regclass, k, name;
alter table pal_ms1 alter column name set not null;
alter table only pal_m alter column name set not null;
-- CHECK
alter table only pal_m add constraint pal_small check (k < 100);
alter table pal_m add constraint pal_few check (k < 17);
alter table pal_m2 add constraint pal_small check (k < 100);
alter table pal_m add constraint pal_small check (k < 100);
alter table pal_m1 add constraint pal_named check (name <> 'x');
alter table pal_m add constraint pal_named check (name <> 'y');
alter table pal_m add constraint pal_later check (name <> 'z') not valid;
alter table pal_m add constraint pal_none check (k > 0) no inherit;
alter table only pal_m validate constraint pal_later;
alter table pal_m validate constraint pal_later;
insert into pal_m (k, name) values (18, 'z');
insert into pal_m1 (k, name) values (8, 'x');
select conrelid::regclass, conname, convalidated, conislocal, coninhcount, pg_get_constraintdef(oid) from pg_constraint
  where conrelid::regclass::text like 'pal\_m%' and contype = 'c' order by conname, conrelid::regclass::text collate "C";
alter table pal_m1 drop constraint pal_small;
alter table pal_m1 rename constraint pal_small to pal_little;
alter table only pal_m rename constraint pal_small to pal_little;
alter table pal_m rename constraint pal_small to pal_little;
alter table only pal_m drop constraint pal_little;
alter table pal_m drop constraint pal_little;
alter table pal_m1 drop constraint pal_named;
alter table pal_m drop constraint nothing;
alter table pal_m drop constraint if exists nothing;
select conrelid::regclass, conname from pg_constraint
  where conrelid::regclass::text like 'pal\_m%' and contype = 'c' order by conname, conrelid::regclass::text collate "C";
-- columns and constraints of its own for a partition that is made
create table pal_m4 partition of pal_m (name default 'four' not null, h with options check (h < 7), constraint pal_m4_c check (c is null or c > 1))
  for values from (40) to (50);
create table pal_m5 partition of pal_m (nothing default 3) for values from (50) to (60);
create table pal_m5 partition of pal_m (name default 'a', name default 'b') for values from (50) to (60);
insert into pal_m4 (k) values (41) returning *;
insert into pal_m4 (k, h) values (41, 7);
insert into pal_m (k, name) values (41, null);
select attname, attislocal, attinhcount, attnotnull from pg_attribute where attrelid = 'pal_m4'::regclass and attnum > 0 order by attnum;
-- a key's columns have other names
create table pal_x (a int, b text) partition by range (lower(b), a);
create table pal_x1 partition of pal_x for values from ('a', 1) to ('m', 1);
alter table pal_x rename column b to label;
alter table pal_x rename to pal_y;
select pg_get_partkeydef('pal_y'::regclass);
insert into pal_y values (3, 'Blue') returning tableoid::regclass, *;
alter table pal_y drop column label;
-- the conflicting row where columns stand elsewhere
create table pal_c (id int, part int, n int default 0, s text, primary key (id, part)) partition by list (part);
create table pal_c1 partition of pal_c for values in (1);
create table pal_c2 (s text, gone text, n int default 0, part int not null, id int not null, primary key (id, part));
alter table pal_c2 drop column gone;
alter table pal_c attach partition pal_c2 for values in (2);
insert into pal_c values (1, 1, 1, 'a'), (1, 2, 1, 'a');
insert into pal_c as c values (1, 1, 10, 'b'), (1, 2, 10, 'b'), (2, 2, 20, 'c')
  on conflict (id, part) do update set n = c.n + excluded.n, s = c.s || excluded.s where c.n < 100 returning tableoid::regclass, *;
insert into pal_c values (1, 2) on conflict (id, part) do update set part = 1;
insert into pal_c values (1, 2) on conflict (id, part) do update set id = 7, s = excluded.n || '!' returning *;
insert into pal_c2 (id, part) values (7, 2) on conflict (id, part) do update set part = 1;
insert into pal_c2 (id, part) values (7, 2) on conflict (id, part) do update set part = excluded.part returning *;
-- what works on the whole
lock table pal_m in access exclusive mode;
begin;
lock table only pal_m in share mode;
lock table pal_m in access exclusive mode;
select relation::regclass, mode from pg_locks where relation::regclass::text like 'pal\_m%' and granted order by relation::regclass::text collate "C", mode;
rollback;
analyze pal_m;
select relname, reltuples >= 0 from pg_class where relname in ('pal_m1', 'pal_ms1') order by 1;
truncate only pal_m;
truncate pal_m, pal_c;
select count(*) from pal_m;
drop table pal_m, pal_c;
drop table pal_y;
select relname from pg_class where relname like 'pal\_%';
