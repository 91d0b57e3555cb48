-- names: arct
-- An array constructor under a cast takes its elements' type from there.
select array['a', 1]::text[], cast(array['k', null, 2.50, true] as text[]);
select array[1, 2.5]::int[], array['1', 2]::bigint[], array[]::int[], array[null]::int[];
select array[array['a', 1], array[2, 'b']]::text[], array[[1, 2], ['3', '4']]::int[];
select array['abcd', 12345]::varchar(3)[], array[1.25, '2.35']::numeric(3, 1)[], array[array['abc', 7]]::char(2)[];
select array['abcd']::varchar(3)[] as a, array[array['abcd']]::varchar(3)[] as b, array['a', 'b']::varchar(3)[]::text[] as c, array[]::varchar(3)[] as d \gdesc
select array['2020-01-01', now()]::date[] = array['2020-01-01'::date, now()::date];
select '{"k":{"r":[1,{"s":2}]}}'::jsonb #- cast(array['k', 'r', 1] as text[]);
select array[1, 'x']::int[];
select array[true, 'x']::date[];
select array[array[1], 2]::int[];
select array[array[1], array['x']]::int[];
select array[1, 2]::int;
create type arct_color as enum ('red', 'green');
create domain arct_small as int check (value < 10);
select array['red', 'green']::arct_color[], array[array['red'], array[null]]::arct_color[], array[1, '2']::arct_small[];
select array['blue']::arct_color[];
select array[1, 12]::arct_small[];
select array[array[3], array[12]]::arct_small[];
create table arct_table (a text, b int[], c varchar(3)[]);
insert into arct_table values ('x', array[1, 2], array['abc']);
create view arct_view as
  select a, array[a, 1, 'z']::text[] as d, array[array[1, 2], array[3, 4]]::bigint[] as e, array['ab', a]::varchar(3)[] as f,
    array[b, b]::bigint[] as g, array[]::int[] as h
  from arct_table where a = any (array['x', 'y']::text[]) and c = array['abc']::varchar(3)[];
select * from arct_view;
\d+ arct_view
prepare arct_statement as select array[$1, $2]::int[], array[array[$3]]::date[];
select parameter_types from pg_prepared_statements where name = 'arct_statement';
execute arct_statement(1, 2, '2024-02-29');
deallocate arct_statement;
drop view arct_view;
drop table arct_table;
drop domain arct_small;
drop type arct_color;
select array[array[]::int[]], array[null::int[]], array[null::int[], '{}'], array[null::int[]]::text[];
select array_ndims(array[array[]::int[]]) is null as flat, cardinality(array[null::int[]]);
select array[null::int[], array[1]];
select array[array[1], null::int[]];
select array[array[1], array[]::int[]];
select array[array[null]::int[], array[2]];
select array['1 2'::int2vector, null];
select array[array[array[array[array[array[1]]]]]];
select array[array[array[array[array[array[array[1]]]]]]];
