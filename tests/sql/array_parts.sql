-- names: zap
-- Parts of arrays: slices, assignment to elements and slices in UPDATE, INSERT and PL/pgSQL.
\set SHOW_CONTEXT never
create table zapt (id int primary key, a int, b text, arr int[], m int[][]);
insert into zapt values (1, 10, 'x', '{1,2,3}', '{{1,2},{3,4}}'), (2, 20, null, null, null), (3, null, null, '{}', null);
select arr[1:2], arr[2:], arr[:2], arr[:], arr[2], m[1:1], m[1:2][2:2], m[1][2], m[2:2][1], m[5:6] from zapt order by id;
select ('{1,2,3,4}'::int[])[2:3], ('[0:2]={1,2,3}'::int[])[0:1], ('[0:2]={1,2,3}'::int[])[:];
select ('{1,2,3}'::int[])[null:2], ('{1,2,3}'::int[])[1:'2'], ('{1,2,3}'::int[])['1'], ('{1,2,3}'::int[])[1.6];
select ('{1,2,3}'::int[])[true];
select ('{1,2,3}'::int[])[1][1][1][1][1][1][1];
select ('abc'::text)[1:2];
select ('abc'::name)[1:2];
select indkey[0:0] from pg_index limit 1;
begin;
with u as (update zapt set arr[2] = 20, arr[5] = 50 returning id, arr) select * from u order by id;
with u as (update zapt set arr[0] = 7 returning id, arr) select * from u order by id;
with u as (update zapt set arr[2:3] = '{8,9}' returning id, arr) select * from u order by id;
update zapt set arr[:] = '{1}' where id = 1 returning arr;
update zapt set arr[1:2] = array[5,6,7] where id = 1 returning arr;
update zapt set arr[1:2] = null where id = 1 returning arr;
update zapt set arr = null where id = 1;
update zapt set arr[3:4] = array[5,6,7] where id = 1 returning arr;
rollback;
update zapt set arr[1] = 'x';
update zapt set arr[1] = true;
update zapt set arr[null] = 1;
update zapt set arr[1:2] = '{1}' where id = 1;
update zapt set arr[2:1] = '{1}' where id = 1;
update zapt set arr[:] = '{1}' where id = 2;
update zapt set m[1][1] = 5, m[2][2] = 9 where id = 1 returning m;
update zapt set m[3][1] = 5 where id = 1;
update zapt set m[1] = 5 where id = 1;
update zapt set m[1:1][1:2] = '{{7,8}}' where id = 1 returning m;
update zapt set arr[1] = default;
update zapt set a[1] = 2;
update zapt set arr[1] = 2, arr = '{1}';
update zapt set arr[2000000000] = 1 where id = 1;
update zapt set arr[-2147483648] = 1 where id = 1;
insert into zapt (id, arr[1], arr[3], m[1][1]) values (9, 1, 3, 4) returning arr, m;
insert into zapt (id, arr[1:2]) select 10, '{4,5}' returning arr;
insert into zapt (id, arr[1], arr) values (11, 1, '{}');
insert into zapt (id, arr[1]) values (11, default);
do $$
declare a int[] := '{1,2}'; b int[]; m int[] := '{{1,2},{3,4}}'; r record; t zapt%rowtype;
begin
  a[4] := 9; raise notice '%', a;
  a[2:3] := array[7, 8]; raise notice '%', a;
  b[3] := 1; raise notice '%', b;
  m[2][1] := 30; raise notice '%', m;
  a[array_length(a, 1) + 1] = a[1] + 100; raise notice '%', a;
  t.arr[2] := 5; t.m := m; t.m[1][1] := 0; raise notice '% %', t.arr, t.m;
  select array[1, 2, 3] as x into r; r.x[2] := 20; raise notice '%', r.x;
end $$;
do $$ declare a int[]; begin a[1] := 'x'; end $$;
do $$ declare a int[] := '{1}'; begin a[null] := 1; end $$;
do $$ declare a constant int[] := '{1}'; begin a[1] := 2; end $$;
do $$ declare a int[] := '{{1,2}}'; begin a[1] := 2; end $$;
do $$ declare a varchar(2)[]; begin a[1] := 'abc'; end $$;
drop table zapt;
