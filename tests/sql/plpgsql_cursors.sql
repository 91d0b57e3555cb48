-- names: zpc
-- PL/pgSQL's cursors: declared, opened, moved, looped over, returned, closed.
create table zpc (a int primary key, b text);
insert into zpc select n, 'row ' || n from generate_series(1, 6) n;

-- Bound, with arguments by place and by name.
do $$
declare
  all_rows cursor for select a, b from zpc order by a;
  part cursor (low int, high int) is select a from zpc where a between low and high order by a;
  r record;
  n int;
  t text;
begin
  raise notice 'names: % %', all_rows, part;
  open all_rows;
  fetch all_rows into n, t;
  raise notice '% % found %', n, t, found;
  fetch next from all_rows into r;
  raise notice '%', r;
  move all_rows;
  get diagnostics n = row_count;
  raise notice 'moved % found %', n, found;
  fetch last from all_rows into r;
  raise notice 'last %', r;
  fetch prior in all_rows into r;
  raise notice 'prior %', r;
  fetch first from all_rows into r;
  raise notice 'first %', r.b;
  fetch absolute 3 from all_rows into r;
  raise notice 'third %', r.b;
  fetch relative -2 from all_rows into r;
  raise notice 'first again %', r.b;
  fetch backward from all_rows into r;
  raise notice 'before % found %', r, found;
  move forward 2 from all_rows;
  move forward all from all_rows;
  get diagnostics n = row_count;
  raise notice 'all the rest: %', n;
  fetch all_rows into n, t;
  raise notice 'behind: % % found %', n, t, found;
  move backward all in all_rows;
  move 2 in all_rows;
  fetch all_rows into n;
  raise notice 'third: %', n;
  close all_rows;
  open part(2, 3);
  fetch part into n;
  raise notice 'part: %', n;
  close part;
  open part(high := 5, low := 4);
  loop
    fetch part into n;
    exit when not found;
    raise notice 'named: %', n;
  end loop;
  close part;
end $$;

-- Loops, whose row is their own.
do $$
declare
  c cursor (k int) for select a, b from zpc where a % k = 0 order by a;
  d cursor for select a from zpc order by a desc;
  r text := 'outside';
begin
  for r in c(2) loop
    raise notice '% %', r.a, r.b;
  end loop;
  raise notice '% found %', r, found;
  for r in c(k := 10) loop
    raise notice 'none';
  end loop;
  raise notice 'found %', found;
  <<outer>>
  for r in d loop
    for s in c(3) loop
      continue outer when s.a > r.a;
      exit outer when r.a < 4;
      raise notice '% over %', r.a, s.a;
    end loop;
  end loop outer;
  -- closed again
  open c(1);
  open d;
end $$;

-- Without a query: opened for one, or for a text.
create function zpc_open(low int) returns refcursor language plpgsql as $$
declare c refcursor;
begin
  open c for select a, b from zpc where a >= low order by a;
  return c;
end $$;
create function zpc_named(c refcursor, query text, k int) returns refcursor language plpgsql as $$
begin
  open c scroll for execute query using k, 'x';
  return c;
end $$;
begin;
select zpc_open(5) is not null as open;
select count(*) from pg_cursors where name like '<unnamed portal%' and not is_holdable;
select zpc_named('mine', 'select a * $1 as times, $2 as x from zpc order by a', 10);
fetch 2 from mine;
fetch backward 1 from mine;
select name, statement, is_scrollable from pg_cursors where name = 'mine';
select zpc_named('mine', 'select $1, $2', 10);
rollback;
begin;
declare sql_made cursor for select a from zpc order by a;
do $$
declare c refcursor := 'sql_made'; n int;
begin
  fetch c into n;
  raise notice 'first of SQL: %', n;
  move c;
end $$;
fetch sql_made;
do $$ declare c refcursor := 'sql_made'; begin close c; end $$;
fetch sql_made;
rollback;

-- The row that a cursor is on.
do $$
declare
  c cursor for select a, b from zpc where a < 4 order by a for update;
  r record;
begin
  for r in c loop
    if r.a = 2 then
      delete from zpc where current of c;
    else
      update zpc set b = b || '!' where current of c;
    end if;
  end loop;
  raise notice 'done';
end $$;
select * from zpc order by a;
create function zpc_touch(c refcursor) returns void language plpgsql as $$
begin
  update zpc set b = 'touched' where current of c;
end $$;
begin;
declare here cursor for select a from zpc where a > 4 for update;
fetch here;
select zpc_touch('here');
select * from zpc where b = 'touched';
select zpc_touch(null);
rollback;

-- What a cursor's query sees: variables as they are when it is opened, the rows of that time.
do $$
declare
  low int := 5;
  c cursor for select a from zpc where a >= low order by a;
  n int;
begin
  low := 6;
  open c;
  low := 1;
  insert into zpc values (100, 'late');
  loop
    fetch c into n;
    exit when n is null;
    raise notice 'sees %', n;
  end loop;
  delete from zpc where a = 100;
end $$;

-- A block that fails takes the cursors with it that were opened in it.
begin;
do $$
declare
  before_it cursor for select a from zpc order by a;
  inside cursor for select a from zpc order by a;
  n int;
begin
  open before_it;
  begin
    open inside;
    fetch before_it into n;
    fetch inside into n;
    perform 1 / 0;
  exception when division_by_zero then
    raise notice 'caught %', n;
  end;
  fetch before_it into n;
  raise notice 'goes on: %', n;
  begin
    fetch inside into n;
  exception when invalid_cursor_name then
    raise notice '%', sqlerrm;
  end;
  begin
    open inside;
  exception when others then
    raise notice 'not reached';
  end;
  fetch inside into n;
  raise notice 'released: %', n;
end $$;
fetch before_it;
fetch inside;
rollback;

-- Transactions that end in a loop over a cursor.
create procedure zpc_commits() language plpgsql as $$
declare
  c cursor for select a from zpc order by a;
  d cursor for select a from zpc order by a;
  n int;
begin
  open d;
  for r in c loop
    insert into zpc values (r.a + 1000, 'copy');
    if r.a % 2 = 0 then commit; else rollback; end if;
  end loop;
  fetch d into n;
end $$;
call zpc_commits();
select count(*), min(a), max(a) from zpc where b = 'copy';
delete from zpc where b = 'copy';

-- What is refused.
do $$ declare c refcursor; n int; begin fetch c into n; end $$;
do $$ declare c refcursor := 'nowhere'; n int; begin fetch c into n; end $$;
do $$ declare c refcursor := 'nowhere'; begin close c; end $$;
do $$ declare c refcursor; begin close c; end $$;
do $$ declare c cursor for select 1; begin open c; open c; end $$;
do $$ declare c cursor for select 1; begin for r in c loop close c; end loop; end $$;
do $$ declare c refcursor; begin open c for insert into zpc values (7, 'x'); end $$;
do $$ declare c refcursor; begin open c for execute 'create table zpc_no (a int)'; end $$;
do $$ declare c refcursor; begin open c for execute 'select 1; select 2'; end $$;
do $$ declare c refcursor; begin open c for execute null; end $$;
do $$ declare c refcursor; begin open c scroll for select a from zpc for update; end $$;
do $$ declare c no scroll cursor for select a from zpc order by a; n int; begin open c; fetch c into n; fetch prior from c into n; end $$;
do $$ declare c cursor for select 1 / (a - a) from zpc order by a; n int; begin open c; fetch c into n; end $$;
do $$ declare c cursor for select a from zpc order by a; n int; begin open c; fetch absolute null from c into n; end $$;
do $$ declare c cursor for select a from zpc order by a; r zpc; begin open c; fetch c into r; raise notice '%', r; end $$;
do $$ declare c cursor for select b from zpc order by a; n int; begin open c; fetch c into n; end $$;
do $$ declare n int; begin open n for select 1; end $$;
do $$ declare r record; begin open r for select 1; end $$;
do $$ begin open nothing for select 1; end $$;
do $$ declare c refcursor; begin open c; end $$;
do $$ declare c cursor for select 1; begin open c for select 2; end $$;
do $$ declare c cursor for select 1; begin open c(1); end $$;
do $$ declare c cursor (a int) for select a; begin open c; end $$;
do $$ declare c cursor (a int) for select a; begin open c(1, 2); end $$;
do $$ declare c cursor (a int, b int) for select a; begin open c(1); end $$;
do $$ declare c cursor (a int, b int) for select a; begin open c(a := 1, a := 2); end $$;
do $$ declare c cursor (a int) for select a; begin open c(z := 1); end $$;
do $$ declare c refcursor; begin for r in c loop null; end loop; end $$;
do $$ declare c cursor for select 1, 2; n int; m int; begin for n, m in c loop null; end loop; end $$;
do $$ declare c cursor for select 1; n int; begin open c; fetch all from c into n; end $$;
do $$ declare c cursor for select 1; n int; begin open c; fetch 2 from c into n; end $$;
do $$ declare c cursor for select 1; n int; begin open c; fetch forward 2 from c into n; end $$;
do $$ declare c cursor for select 1; begin open c; fetch c; end $$;

-- The type.
select 'c'::refcursor, pg_typeof('c'::refcursor), array['a', 'b']::refcursor[], null::refcursor;
select 'c'::text::refcursor, 'c'::refcursor::text, 'c'::refcursor || 'd';
select 'c'::refcursor = 'c';
create table zpc_types (c refcursor);
insert into zpc_types values ('x'), (null);
select * from zpc_types;
\d zpc_types
\df zpc_*

-- Slices of an array.
do $$
declare part int[]; n int; a int[] := array[[1, 2], [3, 4]];
begin
  foreach part slice 1 in array a loop raise notice '%', part; end loop;
  foreach part slice 2 in array a loop raise notice '%', part; end loop;
  foreach n in array a loop raise notice '%', n; end loop;
  foreach part slice 3 in array a loop raise notice '%', part; end loop;
end $$;
do $$ declare n int; begin foreach n slice 1 in array array[1, 2] loop null; end loop; end $$;
do $$ declare n int[]; begin foreach n in array array[1, 2] loop null; end loop; end $$;
do $$ declare n int; begin foreach n in array 5 loop null; end loop; end $$;

drop function zpc_open, zpc_named, zpc_touch;
drop procedure zpc_commits;
drop table zpc, zpc_types;
