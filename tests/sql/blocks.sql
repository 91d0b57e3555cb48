-- names: counts number square
-- DO blocks: variables, branches, loops, queries.
create table counts (number int primary key, square int);
do $$ begin end $$;
do $$ begin null; end; $$;
do $$ declare x int := 2; y int; begin y := x * 3; raise notice 'x % y %', x, y; end $$;
do $$ declare x int = 1; begin x = x + 1; raise notice '%', x; end $$;
do $$ declare x constant int := 5; begin x := 6; end $$;
do $$ declare x int not null := 1; begin x := null; end $$;
do $$ declare x int not null; begin null; end $$;
do $$ declare x int; begin raise notice '%', x; end $$;
do $$ declare x int := 'abc'; begin null; end $$;
do $$ declare x numeric(4, 1) := 12.345; y varchar(3) := 'ab'; z text default 'dflt'; b bool := true; d date := '2024-02-29'; begin raise notice '% % % % %', x, y, z, b, d + 1; end $$;
do $$ declare y varchar(3); begin y := 'abcd'; end $$;
do $$ declare x int; begin x := 2147483647; x := x + 1; end $$;
do $$ begin x := 1; end $$;
do $$ begin raise notice '%', nosuch; end $$;
-- IF and CASE.
do $$ declare x int := 5; begin
  if x > 3 then raise notice 'big'; end if;
  if x > 9 then raise notice 'huge'; else raise notice 'not huge'; end if;
  if x = 1 then raise notice 'one'; elsif x = 5 then raise notice 'five'; elseif true then raise notice 'no'; else raise notice 'other'; end if;
  if null then raise notice 'null is true'; else raise notice 'null is not true'; end if;
end $$;
do $$ declare x int := 2; begin
  case x when 1, 2 then raise notice 'few'; else raise notice 'many'; end case;
  case when x > 1 then raise notice 'more'; end case;
end $$;
do $$ begin case 3 when 1 then null; end case; end $$;
-- Loops.
do $$ begin for i in 1..3 loop raise notice 'i %', i; end loop; end $$;
do $$ begin for i in reverse 3..1 loop raise notice 'i %', i; end loop; end $$;
do $$ begin for i in 1..10 by 4 loop raise notice 'i %', i; end loop; end $$;
do $$ begin for i in 5..1 loop raise notice 'never'; end loop; raise notice 'done'; end $$;
do $$ begin for i in 1..1e1 loop insert into counts values (i, i * i); end loop; end $$;
select count(*), sum(square) from counts;
do $$ begin for i in 1..10 by 0 loop null; end loop; end $$;
do $$ begin for i in null..3 loop null; end loop; end $$;
do $$ declare n int := 0; begin
  while n < 3 loop n := n + 1; end loop;
  raise notice 'n %', n;
  loop n := n + 1; exit when n >= 10; continue when n < 8; raise notice 'in %', n; end loop;
  raise notice 'n %', n;
end $$;
do $$ begin
  <<rows>> for i in 1..3 loop
    for j in 1..3 loop
      continue rows when j = 2;
      exit rows when i = 3;
      raise notice '% %', i, j;
    end loop;
  end loop;
end $$;
do $$ declare r record; begin for r in select number, square from counts where number <= 3 order by number loop raise notice '% squared is %', r.number, r.square; end loop; end $$;
do $$ declare a int; b int; begin for a, b in select number, square from counts where number > 9 loop raise notice '% %', a, b; end loop; end $$;
do $$ declare r record; begin for r in execute 'select 1 as one' loop raise notice '%', r.one; end loop; end $$;
do $$ declare x int; begin foreach x in array array[3, 1, 2] loop raise notice '%', x; end loop; end $$;
do $$ begin exit; end $$;
do $$ begin for i in 1..2 loop for i in 5..6 loop raise notice '%', i; end loop; raise notice 'outer %', i; end loop; end $$;
-- Queries.
do $$ declare x int; y int; begin select number, square into x, y from counts where number = 4; raise notice '% %', x, y; end $$;
do $$ declare x int; begin select number into x from counts where number = 400; raise notice 'x % found %', x, found; end $$;
do $$ declare x int; begin select number into strict x from counts where number = 400; end $$;
do $$ declare x int; begin select number into strict x from counts; end $$;
do $$ declare x int; begin x := (select max(square) from counts); raise notice '%', x; x := count(*) from counts; raise notice '%', x; end $$;
do $$ declare x int; begin x := number from counts; end $$;
do $$ begin select 1; end $$;
do $$ begin perform 1; perform number from counts where number = 1; raise notice 'found %', found; perform 1 where false; raise notice 'found %', found; end $$;
do $$ declare n int; begin update counts set square = 0 where number < 4; get diagnostics n = row_count; raise notice 'n % found %', n, found; delete from counts where number > 1000; get diagnostics n = row_count; raise notice 'n % found %', n, found; end $$;
do $$ declare x int; begin insert into counts values (50, 5) returning square into x; raise notice '%', x; update counts set square = square + 1 where number = 50 returning square into x; raise notice '%', x; end $$;
do $$ declare x int; begin execute 'select $1 + $2' into x using 3, 4; raise notice '%', x; execute 'delete from counts where number = 50'; end $$;
do $$ begin execute 'nonsense'; end $$;
do $$ declare number int := 1; begin update counts set square = 9 where number = 1; end $$;
do $$ declare r record; begin select * into r from counts where number = 5; raise notice '%', r.nosuch; end $$;
do $$ declare r record; begin raise notice '%', r.x; end $$;
do $$ declare n counts.number%type := 3; begin raise notice '%', n; end $$;
-- Blocks in blocks, return.
do $$ declare x int := 1; begin declare x int := 2; begin raise notice 'inner %', x; end; raise notice 'outer %', x; end $$;
do $$ <<b>> declare x int := 1; begin declare x int := 2; begin raise notice '% %', x, b.x; end; end $$;
do $$ begin raise notice 'before'; return; raise notice 'after'; end $$;
do $$ begin return 1; end $$;
do $$ begin assert 1 = 1; assert 1 = 2, 'one is not two'; end $$;
-- What does not compile.
do $$ begin if true then end $$;
do $$ begin for i in 1..3 end loop; end $$;
do $$ declare x nosuchtype; begin null; end $$;
do $$ nonsense $$;
do $$ begin selec 1; end $$;
do $$ begin insert into nosuch values (1); end $$;
do $$ begin insert into counts values (1, 1); end $$;
do language nosuch $$ begin end $$;
select number, square from counts order by number;
drop table counts;
