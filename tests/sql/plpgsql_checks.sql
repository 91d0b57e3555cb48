-- names: zpk zpl
-- What PL/pgSQL looks at beyond its statements: snapshots, second rows, settings, where it is.
create table zpk (a int, b text);
insert into zpk values (1, 'x');

-- A function that an expression calls sees what has been written before.
create function zpk_count() returns bigint language sql stable as 'select count(*) from zpk limit 1';
create function zpk_find(k int) returns int language plpgsql stable as $$
declare n int;
begin
  select a into n from zpk where a = k;
  return coalesce(n, 0);
end $$;
create function zpk_add(k int) returns text language plpgsql as $$
declare
  before int := zpk_find(k);
  n int;
begin
  insert into zpk values (k, 'added');
  n := zpk_find(k);
  if zpk_find(k) = 0 then
    return 'lost';
  end if;
  return format('%s %s %s', before, n, zpk_count());
end $$;
select zpk_add(1), zpk_add(2), zpk_add(3);
-- The statement around goes on seeing what it saw.
select a, zpk_add(a + 10) from zpk where b = 'x' or zpk_find(11) = 11;
select count(*) from zpk;
do $$
declare n int;
begin
  n := zpk_find(50);
  insert into zpk values (50, 'done');
  raise notice '% %', n, zpk_find(50);
end $$;
create function zpk_open(c refcursor) returns int language plpgsql as $$
declare n int;
begin
  insert into zpk values (60, 'before');
  open c for select count(*) from zpk where a = 60;
  insert into zpk values (60, 'after');
  fetch c into n;
  close c;
  return n;
end $$;
select zpk_open('z' || a), (select count(*) from zpk where a = 60) from zpk where a in (1, 2) and b = 'added' order by a;
delete from zpk where a > 1 or b = 'added';

-- One row where there are more.
do $$ declare n int; begin insert into zpk values (7, 'y'), (8, 'z') returning a into n; end $$;
do $$ declare n int; begin update zpk set b = b || '!' returning a into n; raise notice '%', n; end $$;
insert into zpk values (2, 'y');
do $$ declare n int; begin delete from zpk returning a into n; end $$;
do $$ declare n int; begin execute 'delete from zpk returning a' into n; raise notice '%', n is not null; rollback; end $$;
select * from zpk order by a;
do $$ declare n int; begin select a into strict n from zpk; end $$;
do $$ declare n int; begin select a into strict n from zpk where a = 100; end $$;
do $$ declare n int; begin execute 'select a from zpk' into strict n; end $$;

-- Errors with parameters.
create function zpk_strict(p int, q text) returns int language plpgsql as $$
#print_strict_params on
declare n int;
begin
  if q is null then
    execute 'select a from zpk where a > $1 or b = $2' into strict n using p, q;
  end if;
  select a into strict n from zpk where a > p or b = q;
  return n;
end $$;
select zpk_strict(0, 'it''s');
select zpk_strict(100, 'none');
select zpk_strict(0, null);
set plpgsql.print_strict_params = on;
do $$ declare n int := 0; r zpk; begin select a into strict n from zpk where a > n; end $$;
do $$ declare n int; begin select a into strict n from zpk; end $$;
reset plpgsql.print_strict_params;
show plpgsql.print_strict_params;

-- More checks, of those who ask for them.
set plpgsql.extra_warnings = 'shadowed_variables, too_many_rows';
create function zpk_shadow(a int) returns int language plpgsql as $$
declare
  a int := 1;
  c cursor (a int) for select 1;
begin
  select zpk.a into a from zpk;
  return a;
end $$;
select zpk_shadow(1) > 0;
set plpgsql.extra_errors = 'shadowed_variables';
create function zpk_shadow2(a int) returns int language plpgsql as $$
declare a int; begin return 1; end $$;
set plpgsql.extra_errors = 'too_many_rows';
select zpk_shadow(1);
set plpgsql.extra_errors = 'strict_multi_assignment';
set plpgsql.extra_warnings = 'none';
do $$ declare x int; y int; begin select 1 into x, y; end $$;
do $$ declare x int; y int; begin select 1, 2 into x, y; raise notice 'as many'; end $$;
do $$ declare r zpk; begin select 1 into r; end $$;
set plpgsql.extra_errors = 'all, none';
set plpgsql.extra_errors = 'some';
reset plpgsql.extra_errors;
reset plpgsql.extra_warnings;
set plpgsql.variable_conflict = use_column;
create function zpk_conflict(a int) returns bigint language plpgsql as $$
begin
  return (select count(*) from zpk where a = a);
end $$;
select zpk_conflict(100);
reset plpgsql.variable_conflict;
create function zpk_conflict2(a int) returns bigint language plpgsql as $$
begin
  return (select count(*) from zpk where a = a);
end $$;
select zpk_conflict2(100);
set plpgsql.check_asserts = off;
do $$ begin assert false, 'not looked at'; end $$;
reset plpgsql.check_asserts;
do $$ begin assert false, 'looked at'; end $$;

-- Where it is.
create function zpk_inner() returns text language plpgsql as $$
declare t text;
begin
  get diagnostics t = pg_context;
  return t;
end $$;
create function zpk_sql() returns text language sql as 'select 1; select zpk_inner() || $$$$ limit 1';
create function zpk_outer() returns text language plpgsql as $$
declare t text; r record;
begin
  t := zpk_inner();
  raise notice '%', t;
  select zpk_inner() into t;
  raise notice '%', t;
  execute 'select zpk_inner()' into t;
  raise notice '%', t;
  for r in select zpk_sql() loop
    raise notice '%', r.zpk_sql;
  end loop;
  begin
    perform 1 / 0;
  exception when others then
    t := zpk_inner();
  end;
  return t;
end $$;
select zpk_outer();

-- A result that does not fit fails behind the function's handlers.
create function zpk_cast() returns int language plpgsql as $$
begin
  return 'no number';
exception when others then
  return 0;
end $$;
select zpk_cast();
create function zpk_row() returns zpk language plpgsql as $$ begin return 1; end $$;
select zpk_row();

-- The only output names the column.
create function zpk_out(i int, out j int) language plpgsql as $$ begin j := i + 1; end $$;
select zpk_out(1);
select * from zpk_out(1);
select * from zpk_out(1) as t;
select * from zpk_out(1) as t(k);
create or replace function zpk_out(inout i int) language plpgsql as $$ begin i := i + 1; end $$;
select * from zpk_out(1);

-- Positional arguments, rows of an array, items of a record, RAISE's options.
create function zpk_first(int) returns int language plpgsql as $$ begin $1 := $1 * 2; return $1; end $$;
select zpk_first(21);
do $$
declare x int; y text; r zpk; d record;
begin
  foreach x, y in array array[(1, 'a'), (2, 'b')]::zpk[] loop raise notice '% %', x, y; end loop;
  foreach r in array array[(1, 'a'), null]::zpk[] loop raise notice '%', r; end loop;
  update zpk set a = a;
  r := (0, '');
  get diagnostics r.a = row_count;
  raise notice '%', r;
end $$;
do $$ declare r zpk; begin get diagnostics r = row_count; end $$;
do $$ begin raise division_by_zero using errcode = '22012'; end $$;
do $$ begin raise exception 'x' using detail = 'a', detail = 'b'; end $$;
do $$ begin raise; end $$;
do $$ begin perform 1 / 0; exception when others then raise; end $$;

-- The rows of a trigger's statement, in a text.
create function zpk_trigger() returns trigger language plpgsql as $$
declare n int; t text;
begin
  execute 'select count(*), string_agg(b, $1 order by b) from added' into n, t using '+';
  raise notice '% rows: %', n, t;
  for t in execute 'select b from added where a > $1 order by a' using 0 loop raise notice '%', t; end loop;
  return null;
end $$;
create trigger zpk_after after insert on zpk referencing new table as added for each statement execute function zpk_trigger();
insert into zpk values (100, 'p'), (200, 'q');

-- Schemas that are not there.
select 'zpk_none.x'::regclass;
select 'zpk_none.x'::regtype;
select 'zpk_none.x(int)'::regprocedure;
select to_regclass('zpk_none.x'), to_regtype('zpk_none.x'), to_regproc('zpk_none.x');

create function zpk_into() returns setof int language plpgsql as $$ begin return query select 1 into zpk_new; end $$;
select zpk_into();
drop table zpk cascade;
drop function zpk_count, zpk_find, zpk_add, zpk_open, zpk_strict, zpk_shadow, zpk_conflict, zpk_conflict2, zpk_inner, zpk_sql, zpk_outer, zpk_cast, zpk_out, zpk_first, zpk_trigger, zpk_into;

-- Statements that are no queries, where rows are wanted.
create function zpk_explain() returns setof text language plpgsql as $$
declare r record;
begin
  return query explain (costs off) select 1;
  return query execute 'explain (costs off) select 2';
  for r in show plpgsql.check_asserts loop return next r.plpgsql.check_asserts; end loop;
end $$;
create function zpk_explain() returns setof text language plpgsql as $$
declare r record;
begin
  return query explain (costs off) select 1;
  return query execute 'explain (costs off) select 2';
  for r in explain (costs off) select 3 loop return next r; end loop;
end $$;
select * from zpk_explain();
create function zpk_makes() returns setof text language plpgsql as $$ begin return query create table zpk_no (a int); end $$;
select * from zpk_makes();
create function zpk_makes2() returns setof text language plpgsql as $$ begin return query execute 'create table zpk_no (a int)'; end $$;
select * from zpk_makes2();
do $$ declare r record; begin for r in create table zpk_no (a int) loop null; end loop; end $$;
do $$ declare r record; begin for r in execute 'create table zpk_no (a int)' loop null; end loop; end $$;
do $$ declare r record; begin for r in execute 'select 1 into zpk_no' loop null; end loop; end $$;
do $$ declare r record; begin for r in execute 'select 1; select 2' loop null; end loop; end $$;
begin;
declare zpk_one cursor for select 1;
fetch zpk_one;
fetch prior zpk_one;
rollback;
drop function zpk_explain, zpk_makes, zpk_makes2;

-- As many columns as variables, wherever rows go into variables.
set plpgsql.extra_errors = 'strict_multi_assignment';
do $$ declare x int; y int; begin for x, y in select 1, 2 loop raise notice '% %', x, y; end loop; for x, y in select 1 loop null; end loop; end $$;
do $$ declare x int; y int; begin for x in execute 'select 1, 2' loop null; end loop; end $$;
do $$ declare c cursor for select 1, 2; x int; begin open c; fetch c into x; end $$;
do $$ declare c cursor for select 1, 2; x int; begin open c; move c; fetch c into x; raise notice 'none %', x; end $$;
do $$ declare c cursor for select 1, 2; begin for r in c loop raise notice '%', r; end loop; end $$;
reset plpgsql.extra_errors;

-- A cursor over the rows of a trigger's statement, opened for a text.
create table zpl (a int);
create function zpl_trigger() returns trigger language plpgsql as $$
declare c refcursor; n int;
begin
  open c for execute 'select sum(a) from added';
  fetch c into n;
  raise notice 'sum %', n;
  return null;
end $$;
create trigger zpl_after after insert on zpl referencing new table as added for each statement execute function zpl_trigger();
insert into zpl values (1), (2);
drop table zpl;
drop function zpl_trigger;
