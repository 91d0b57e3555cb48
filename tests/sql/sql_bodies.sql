-- names: sbo item ware label stock shelf depot porter keeper goods moved
\pset null '(null)'
create schema depot;
create role porter;
create role keeper;
create table sbo_item(ware int primary key, label text, stock int default 5);
create table depot.shelf(ware int, stock int);
insert into sbo_item values (1, 'a', 10), (2, 'b', 20);

-- RETURN, and a block.
create function sbo_add(x int, y int) returns int language sql return x + y;
create function sbo_twice(x int) returns int return sbo_twice.x * 2;
create function sbo_label(x int) returns text language sql stable begin atomic select label from sbo_item where ware = x; end;
create function sbo_number(int) returns int return $1 + 1;
create function sbo_rows(x int) returns setof int begin atomic select 0; select ware from sbo_item where ware >= x order by ware; end;
create function sbo_table(x int) returns table(ware int, label text) begin atomic select ware, label from sbo_item where sbo_item.ware > x order by 1; end;
create function sbo_out(x int, out p int, out q text) begin atomic select ware, label from sbo_item where ware = x; end;
create function sbo_whole(x int) returns sbo_item begin atomic select * from sbo_item where ware = x; end;
create function sbo_none() returns void begin atomic end;
create function sbo_inside(x int) returns int begin atomic select 1; return x + 100; end;
select sbo_add(1, 2), sbo_twice(4), sbo_label(2), sbo_number(4), sbo_inside(1), sbo_none();
select * from sbo_rows(1), sbo_table(1);
select * from sbo_out(1);
select sbo_whole(2), (sbo_whole(2)).label;
select sbo_add(y => ware, x => 1) from sbo_item order by 1;
create function sbo_set(x int) returns setof int return x;
select sbo_set(7);
create function sbo_literal() returns text return 'it''s \ "x"';
select sbo_literal();

-- What is refused.
create function sbo_wrong(x anyelement) returns anyelement language sql return x;
create function sbo_wrong(x int, variadic y anyarray) returns int language sql return x;
create function sbo_wrong(x int) returns int language plpgsql return x;
create function sbo_wrong(x int) returns int language plpgsql as 'begin' return x;
create function sbo_wrong(x int) returns int language sql as 'select 1' return x;
create function sbo_wrong(x int) returns int language sql;
create function sbo_wrong(x int) returns int begin atomic create table moved(a int); select 1; end;
create function sbo_wrong(x int) returns int begin atomic commit; end;
create function sbo_wrong(x int) returns int begin atomic select 1; set search_path = 'a'; end;
create function sbo_wrong(x int) returns int begin atomic explain select 1; end;
create function sbo_wrong(x int) returns int begin atomic end;
create function sbo_wrong(x text) returns int return x;
create function sbo_wrong(x int) returns table(p int, q text) return x;
create function sbo_wrong(x int) returns int begin atomic select nosuch; end;
create function sbo_wrong(x int) returns int begin atomic select ware from sbo_item; select ware from nosuch; end;
create function sbo_wrong(x int) returns int return nosuch(x);
create function sbo_wrong(x int) returns int
  return (select ware from nosuch);
create function sbo_wrong(x int) returns int return x + $2;
create function sbo_wrong(x int) returns nosuch return x;
create function sbo_wrong(x int) returns int begin atomic select ware from sbo_item; insert into sbo_item values (x); end;
create function sbo_wrong(x int) returns int begin atomic insert into sbo_item values (x) returning label; end;
create function sbo_wrong(x int) returns int begin atomic select 1, 2; end;
create function sbo_wrong(x int) returns trigger return 1;
create function sbo_wrong(x int) returns int begin atomic insert into sbo_item(nosuch) values (1); select 1; end;
create function sbo_wrong(x int) returns int begin atomic update sbo_item set label = nosuch; select 1; end;
create function sbo_wrong(x int) returns int begin atomic select 1; end as 'select 2';
do $$ begin atomic select 1; end $$;
set check_function_bodies = off;
create function sbo_late() returns int begin atomic select ware from nosuch; end;
create function sbo_late() returns int return 'x'::text;
reset check_function_bodies;
drop function sbo_late;

-- Procedures, and statements that write.
create procedure sbo_put(x int, y text) language sql begin atomic
  insert into sbo_item values (x, y);
  insert into sbo_item(ware, label) select i.ware + 100, y from sbo_item i where i.ware = x
    on conflict (ware) do update set label = excluded.label, stock = sbo_item.stock + 1 where sbo_item.ware > 3;
  update sbo_item set (label, stock) = (select upper(y), x) from depot.shelf s where s.ware = sbo_item.ware;
  delete from sbo_item using depot.shelf s where s.ware = sbo_item.ware and s.stock = 0;
end;
insert into depot.shelf values (50, 1), (51, 0);
call sbo_put(50, 'm');
call sbo_put(51, 'n');
select * from sbo_item order by ware;
call sbo_put(50, 'm');
create procedure sbo_inout(inout x int, y int default 3) begin atomic select x * y; end;
call sbo_inout(5);
call sbo_inout(5, 6);
create function sbo_written(x int) returns table(ware int, label text) begin atomic
  with gone as (delete from sbo_item where sbo_item.ware = x returning *), made as (insert into depot.shelf select g.ware, g.stock from gone g returning shelf.ware)
  select gone.ware, gone.label from gone join made on gone.ware = made.ware;
end;
select * from sbo_written(150);
select * from depot.shelf order by 1;
create procedure sbo_merged(x int) begin atomic
  merge into sbo_item as i using (values (1, 'one'), (77, 'new')) v(k, w) on i.ware = v.k
    when matched and v.k > x then update set label = w || x
    when matched then do nothing
    when not matched then insert (ware, label) values (v.k, v.w);
end;
call sbo_merged(0);
select * from sbo_item order by ware;
create function sbo_fixed(x int) returns int stable begin atomic insert into sbo_item values (x); select 1; end;
select sbo_fixed(1000);
drop function sbo_fixed;

-- The layout in which they are shown.
\sf sbo_add
\sf sbo_twice
\sf sbo_label
\sf sbo_number
\sf sbo_rows
\sf sbo_table
\sf sbo_whole
\sf sbo_none
\sf sbo_inside
\sf sbo_literal
\sf sbo_put
\sf sbo_inout
\sf sbo_written
\sf sbo_merged
create function sbo_shown(x int, y text[]) returns bool return x = any (y::int[]) or case when x > 1 then true else false end;
\sf sbo_shown
create function sbo_deep(x int) returns int return (select max(ware) from sbo_item where ware < x and exists (select 1 from sbo_item t2 where t2.ware = sbo_item.ware limit 1));
\sf sbo_deep
create procedure sbo_many(x int) begin atomic
  values (x), (2);
  select x union all select 2;
  insert into sbo_item as q (ware) values (1), (x) on conflict on constraint sbo_item_pkey do nothing returning q.ware + x;
  update only sbo_item as z set stock = default, label = (select label from sbo_item where ware = x) where z.ware = (select max(ware) from sbo_item) returning *;
  with w as (select 1 as one) delete from sbo_item where ware in (select one from w);
  insert into sbo_item select 1;
  insert into sbo_item (ware, stock) overriding user value values (1, default);
  with w as (select 1 as one) insert into sbo_item select one from w;
  insert into sbo_item default values;
  with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select sum(n) from r;
  select sum(ware) over w + x from sbo_item window w as (partition by stock order by ware);
  select distinct on (stock) stock, count(*) from sbo_item group by stock having count(*) > x order by stock limit 3;
  select i.ware, s.stock from sbo_item i left join depot.shelf s on i.ware = s.ware, generate_series(1, x) g(n) where g.n = i.ware;
end;
\sf sbo_many
create type sbo_pair as (p int, q text);
create table sbo_goods(k int, pair sbo_pair, list int[]);
create function sbo_parts(c sbo_pair, list int[]) returns int begin atomic
  insert into sbo_goods values (1, c, list);
  update sbo_goods set pair.p = c.p + 1, list[2] = list[1], pair.q = sbo_parts.c.q || '!' where k = c.p;
  select (pair).p + sbo_parts.list[1] from sbo_goods where (pair).q = (c).q || '!';
end;
\sf sbo_parts
select sbo_parts(row(1, 'x'), '{5,6}');
select * from sbo_goods;
create function sbo_row(sbo_item) returns int return $1.ware + ($1).stock;
\sf sbo_row
select sbo_row(i), i.sbo_row from sbo_item i where ware = 2;
create function sbo_options(x int default 3) returns int immutable strict parallel safe security definer cost 5 set search_path = pg_catalog return x + 1;
\sf sbo_options
select sbo_options();

-- The catalog.
select proname, prosrc = '' as empty, prosqlbody is not null as has_body, probin from pg_proc where proname in ('sbo_add', 'sbo_label') order by 1;
\df+ sbo_add
select pg_get_function_sqlbody('sbo_label'::regproc);
select pg_get_function_sqlbody('sbo_none'::regproc), pg_get_function_sqlbody(0), pg_get_function_sqlbody('now'::regproc);
select pg_describe_object(classid, objid, objsubid) as one, pg_describe_object(refclassid, refobjid, refobjsubid) as other, deptype from (
  select distinct classid, objid, objsubid, refclassid, refobjid, refobjsubid, deptype from pg_depend
  where classid = 'pg_proc'::regclass and objid in ('sbo_label'::regproc, 'sbo_put'::regproc, 'sbo_whole'::regproc, 'sbo_row'::regproc)) as d
  order by objid, refclassid, refobjid, refobjsubid;
comment on function sbo_add(int, int) is 'adds';
select obj_description('sbo_add'::regproc);

-- What it names stays the same, whatever that is called and wherever it is.
create function sbo_uses(x int) returns text stable begin atomic select label || sbo_add(x, stock) from sbo_item where ware = x; end;
create sequence sbo_numbers;
create function sbo_next() returns bigint return nextval('sbo_numbers');
create type sbo_mood as enum ('sad', 'glad');
create function sbo_mood(x sbo_mood) returns sbo_mood return case when x = 'sad' then 'glad'::sbo_mood else x end;
alter function sbo_add(int, int) rename to sbo_sum;
alter table sbo_item rename column label to moved_label;
alter table sbo_item rename column stock to label;
alter table sbo_item add column x text;
alter sequence sbo_numbers set schema depot;
alter type sbo_mood rename value 'glad' to 'happy';
alter type sbo_mood set schema depot;
alter function sbo_label(int) rename to sbo_named;
alter function sbo_named(int) set schema depot;
alter table depot.shelf rename to sbo_shelf;
create function sbo_add(int, int) returns int return -1;
select sbo_uses(2), depot.sbo_named(1), sbo_next(), sbo_mood('sad'), sbo_row(i) from sbo_item i where ware = 1;
\sf depot.sbo_named
\sf sbo_next
\sf sbo_mood
\sf sbo_row
call sbo_put(60, 'p');
call sbo_merged(1);
select * from sbo_item order by ware;
set search_path = depot;
select public.sbo_uses(1), sbo_named(2);
reset search_path;
create temporary table sbo_item(ware int, label text, stock int);
select sbo_uses(1);
drop table pg_temp.sbo_item;
alter table sbo_item rename column label to stock;
alter table sbo_item rename column moved_label to label;
alter table sbo_item drop column x;
alter table depot.sbo_shelf rename to shelf;

-- What depends on what.
drop function sbo_sum(int, int);
drop sequence depot.sbo_numbers;
drop type depot.sbo_mood;
drop table sbo_goods;
alter table depot.shelf drop column ware;
alter table depot.shelf alter column stock type bigint;
begin;
drop function sbo_sum(int, int) cascade;
select sbo_uses(1);
rollback;
select sbo_uses(1);
begin;
alter table depot.shelf drop column stock cascade;
rollback;
create view sbo_view as select sbo_uses(ware) as used from sbo_item;
drop function sbo_uses(int);
drop function sbo_sum(int, int) cascade;
create function sbo_self(n int) returns int return 1;
create or replace function sbo_self(n int) returns int return case when n <= 1 then 1 else n * sbo_self(n - 1) end;
select sbo_self(5);
drop function sbo_self;
create function sbo_below(n int) returns int return n;
create function sbo_above(n int) returns int return sbo_below(n) + 1;
create or replace function sbo_below(n int) returns int return n * 10;
select sbo_above(1);
create or replace function sbo_above(n int) returns int return 5;
drop function sbo_below(int);
create or replace function sbo_above(n int) returns int language sql as 'select 6';
select sbo_above(1), prosqlbody is null as plain from pg_proc where proname = 'sbo_above';
create or replace function sbo_above(m int) returns int return 5;
create or replace function sbo_above(n int) returns text return 'x';
begin;
create function sbo_open() returns int return 1;
select sbo_open();
rollback;
select sbo_open();

-- Prepared, and renewed when what it uses changes.
create function sbo_count() returns bigint stable begin atomic select count(*) from sbo_item; end;
prepare sbo_prepared as select sbo_count(), sbo_above(1);
execute sbo_prepared;
create index on sbo_item(stock);
insert into sbo_item values (500, 'z');
create or replace function sbo_above(n int) returns int return 7;
execute sbo_prepared;
deallocate sbo_prepared;

-- Where a value is computed for good.
create function sbo_lower(t text) returns text immutable strict return lower(t);
create index sbo_item_lower on sbo_item(sbo_lower(label));
select ware from sbo_item where sbo_lower(label) = 'z';
create table sbo_uses_all(a int default sbo_twice(21), b text check (sbo_lower(b) = b), c text generated always as (sbo_lower(b) || '!') stored);
insert into sbo_uses_all(b) values ('q');
insert into sbo_uses_all(b) values ('Q');
select * from sbo_uses_all;
drop function sbo_lower(text);
\d sbo_uses_all
create function sbo_changed(a sbo_uses_all, b sbo_uses_all) returns bool return (a).a <> (b).a;
create function sbo_tell() returns trigger language plpgsql as $$ begin raise notice '% %', old.a, new.a; return new; end $$;
create trigger sbo_trigger before update on sbo_uses_all for each row when (sbo_twice(new.a) > 100) execute function sbo_tell();
update sbo_uses_all set a = 50;
update sbo_uses_all set a = 51;
drop table sbo_uses_all cascade;

-- Rights: the caller's, the owner's where it says so, and those of neither at definition.
grant usage, create on schema depot to porter;
set role porter;
create function depot.sbo_read() returns bigint begin atomic select count(*) from public.sbo_item; end;
select depot.sbo_read();
create function depot.sbo_hidden() returns bigint begin atomic select count(*) from sbo_secret.t; end;
reset role;
grant select on sbo_item to porter;
set role porter;
select depot.sbo_read() > 1;
reset role;
create function sbo_definer() returns bigint security definer begin atomic select count(*) from depot.shelf; end;
create function sbo_invoker() returns bigint begin atomic select count(*) from depot.shelf; end;
set role keeper;
select sbo_definer() > 1;
select sbo_invoker();
select sbo_add(1, 2);
create or replace function sbo_definer() returns bigint return 1;
drop function sbo_definer();
alter function sbo_definer() rename to sbo_mine;
reset role;
revoke execute on function sbo_twice(int) from public;
create function sbo_calls() returns int return sbo_twice(3);
set role keeper;
select sbo_calls();
reset role;

drop table sbo_item, sbo_goods cascade;
drop schema depot cascade;
drop function sbo_add, sbo_twice, sbo_number, sbo_none, sbo_inside, sbo_set, sbo_literal, sbo_shown, sbo_options, sbo_above, sbo_calls, sbo_lower, sbo_tell;
drop procedure sbo_inout;
drop type sbo_pair;
drop role porter, keeper;
