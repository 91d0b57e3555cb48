-- names: zoa zob zoc zod zoe zof zog zoh zoi zoj zok zol zom zon zoda zodb zodc
-- What is refused although it could be done.

-- A key of a partition that is partitioned by another column holds nowhere.
create table zoa (a int, b int, primary key (a)) partition by range (a);
create table zob partition of zoa for values from (0) to (1000) partition by range (b);
create table zob partition of zoa for values from (0) to (1000) partition by range (a);
create table zoc (a int not null, b int) partition by range (b);
alter table zoa attach partition zoc for values from (1000) to (2000);
create table zod (a int, b int) partition by range (a);
create table zoe partition of zod for values from (0) to (1000) partition by range (b);
create unique index on zod (a);
alter table zod add primary key (a);
alter table zod add primary key (a, b);

-- Constraints of all kinds share their names.
create table zof (c int not null, constraint tall check (c > 3));
alter table zof add constraint tall unique (c);
alter table zof add constraint tall primary key (c);
alter table zof add constraint tall exclude using btree (c with =);
alter table zof add constraint wide unique (c);
alter table zof add constraint tall foreign key (c) references zof (c);
alter table zof rename constraint tall to wide;
alter table zof rename constraint wide to tall;
alter table zof rename constraint tall to high;
alter table zof rename constraint wide to high;
create table zog (c int, constraint tall check (c > 3), constraint tall unique (c));

-- A column is computed once, whatever a view says.
create table zoh (a int primary key, b int generated always as (a * 2) stored
  generated always as (a * 3) stored);
create table zoh (a int primary key, b int generated always as (a * 3) stored);
create view zoi as select * from zoh;
insert into zoi values (7, default);
alter view zoi alter column b set default 100;
insert into zoi values (8, default);
insert into zoi (a) values (9);
create view zoj as select * from zoi;
insert into zoj (a) values (9);
alter view zoi alter column b drop default;
insert into zoj (a) values (9);
select * from zoh;

-- What is changed is no item of FROM for others there.
create table zok (k int, v int);
insert into zok values (1, 2);
update zok set v = w from lateral (select * from (values (1)) t(w) where w = k) s;
update zok set v = w from lateral (select * from (values (1)) t(w) where w = zok.k) s;
update zok set v = w from (values (1)) t(w), lateral (select w + k from (values (1)) u(x)) s;
update zok set v = t.w + s.y from (values (1)) t(w), lateral (select w + 1 as y) s where k = w returning *;
delete from zok using lateral (select * from (values (1)) t(w) where w = k) s;
delete from zok using lateral generate_series(1, k) s;

-- Rows of a materialized view are not locked.
create materialized view zol as select 1 as a;
select * from zol for share;
select * from zol for update of zol;
select * from zok, zol for update of zok;

-- A literal in the parentheses of a type's name is of that type.
select cidr('192.168.1.2/30');
select cidr(inet '192.168.1.2/30');
select cidr('10.0.0.0/8'), pg_typeof(date('2024-02-29')), text(3), pg_typeof(int8('3'));
select int4('5.5');

-- The rows of a recursion keep the type of the first.
create table zom (id int, parent int, name varchar(10), amount numeric(8, 2));
insert into zom values (1, null, 'a', 1.5), (2, 1, 'b', 2.5), (3, 2, 'c', 3.5);
with recursive r(i) as (
  select i::numeric(3, 0) from (values (1), (2)) t(i)
  union all select (i + 1)::numeric(10, 0) from r where i < 10)
select * from r;
with recursive r(i) as (
  select i::varchar(3) from (values ('a'), ('b')) t(i)
  union all select (i || 'x')::varchar(5) from r where length(i) < 4)
select * from r;
with recursive r(n) as (select 1.0::numeric(10, 2) union all select n * 2 from r where n < 10)
select * from r;
with recursive r as (
  select id, array[name] as path from zom where parent is null
  union all select t.id, r.path || t.name from zom t join r on t.parent = r.id)
select * from r;
with recursive r as (
  select id, name, amount, array[name::text] as path, row(id, name) as own from zom where parent is null
  union all
  select t.id, coalesce(t.name, r.name), t.amount, path || t.name, row(t.id, t.name)
  from zom t join r on t.parent = r.id)
select * from r order by id;
with recursive r as (
  select id, (select max(name) from zom)::varchar(10) as p, null::varchar(10) as q from zom where parent is null
  union all
  select t.id, (select name from zom order by id limit 1), (array[t.name])[1] from zom t join r on t.parent = r.id)
select * from r order by id;

-- What keeps its length and precision.
create view zon as
  select coalesce(name, name) a, case when true then name else name end b, nullif(name, 'x') c,
    greatest(name, name) d, (select name from zom limit 1) e, max(name) over () f, array[name, name] g,
    name || 'x' h, (array[name])[1] i, array(select amount from zom) j, coalesce(amount, 0) k,
    (array[[amount]])[1][1] l, (array[amount])[1:1] m, array[name, 'x'] n
  from zom;
select attname, format_type(atttypid, atttypmod) from pg_attribute
  where attrelid = 'zon'::regclass order by attnum;
drop view zon, zoj, zoi;
drop table zoa, zoc, zod, zof, zoh, zok, zom cascade;
drop materialized view zol;

-- VARIADIC comes last, and a procedure may be meant by all its arguments or by what goes in.
create procedure zoda(a variadic int[], b out int) language sql as $$ select a[1] $$;
create procedure zoda(variadic a int[], inout b int) language sql as $$ select a[1] $$;
create function zoda(variadic a int[], b int) returns int language sql as $$ select a[1] $$;
create function zoda(variadic a int[], b out int) language sql as $$ select a[1] $$;
create procedure zoda(b out int, variadic a int[]) language sql as $$ select a[1] $$;
drop function zoda;
create procedure zodb(out a int, in b int, in c int) language sql as $$ select b - c $$;
drop procedure zodb(int, int, int);
create procedure zodb(out a int, in b int, in c int) language sql as $$ select b - c $$;
create procedure zodb(in a int, in b int, in c int) language sql as $$ select a + b - c $$;
drop procedure zodb;
drop procedure zodb(int, int, int);
drop routine zodb(int, int, int);
drop function zodb(int, int, int);
drop procedure zodb(out int, int, int);
drop procedure zodb(int, int);
drop procedure zodb(int, int, int);

-- Nor is it as a whole row, by a system column, or beside a join.
create table zodc (k int, v int);
insert into zodc values (1, 2);
update zodc set v = 3 from lateral (select zodc) s;
update zodc set v = 3 from lateral (select * from (values (1)) t(w) where zodc is not null) s;
update zodc set v = 3 from lateral (select zodc.tableoid) s;
update zodc set v = 3 from lateral (select tableoid) s;
update zodc set v = 3 from lateral unnest(array[zodc]) s;
update zodc set v = 3 from (values (1)) t(w) join lateral (select k) s on true;
update zodc as z set v = 3 from lateral (select z.k) s;
delete from zodc using lateral (select zodc) s;
update zodc set v = (select y from (values (1)) t(w), lateral (select zodc.k + w as y) s) returning zodc.*;
update zodc set v = 3 where exists (select 1 from lateral (select k) s);
drop table zodc;
