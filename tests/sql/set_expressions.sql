-- names: qsetw tags
-- Set-returning functions inside expressions of the select list, of ORDER BY and of GROUP BY.
create table qsetw (id int primary key, label_q text, tags int[]);
insert into qsetw values (1, 'a,b', '{10,20,30}'), (2, 'c', '{}'), (3, 'd,e', '{40}'), (4, null, null);

-- At the top, and inside of operators, functions, casts, rows, arrays and tests.
select generate_series(1, 3) + 1 as x;
select upper(regexp_split_to_table('a b c', ' ')) as word;
select generate_series(1, 2)::text || '!' as x;
select row(generate_series(1, 2), 'x'::text) as r;
select array[generate_series(1, 3), 0] as a;
select generate_series(1, 3) between 2 and 3 as b, generate_series(1, 3) in (1, 3) as i;
select not (generate_series(1, 2) = 1) as n, generate_series(1, 2) is null as isnull;
select nullif(generate_series(1, 3), 2) as n, greatest(generate_series(1, 3), 2) as g;
select generate_series(1, 3) is distinct from 2 as d;
select (regexp_matches('ab12cd34', '[a-z]+(\d+)', 'g'))[1] as digits;
select id, (string_to_array(regexp_split_to_table(label_q, ','), ','))[1] as part from qsetw order by id, part;
select id, unnest(tags) * 2 as twice, unnest(tags) as once from qsetw order by id, once;

-- Sets of one depth go on in step, the shorter ones with NULL; deeper ones come first.
select generate_series(1, 2) as a, generate_series(1, 4) + 0 as b;
select generate_series(1, 2) as a, generate_series(1, generate_series(1, 3)) as b;
select generate_series(1, generate_series(1, 3)) * 10 as b;
select generate_series(1, generate_series(1, generate_series(1, 2))) as c, generate_series(5, 6) as d;
select id, abs(unnest(array[-id, id + generate_series(0, 1)])) as x from qsetw where id < 3 order by 1, 2;
select generate_series(1, 3) + generate_series(10, 11) as mixed;

-- Rows without elements give no row.
select id, unnest(tags) + 1 from qsetw where id in (2, 4);
select count(*) from (select unnest(tags) + 1 from qsetw) s;

-- Rows of functions.
select (json_each('{"a":1,"b":2}')).key || '=' as k;
select (json_each_text('{"a":1,"b":2}')).* ;
select id, (jsonb_each(jsonb_build_object('n', id, 'm', id + 1))).value from qsetw where id < 3 order by 1, 2;
select (jsonb_array_elements('[{"x":1},{"x":2}]') ->> 'x')::int + 1 as x;

-- ORDER BY, LIMIT, OFFSET, DISTINCT.
select generate_series(1, 5) % 3 as m order by m, 1 limit 3;
select distinct generate_series(1, 6) % 3 as m order by m desc;
select id from qsetw where id = 1 order by unnest(tags) desc, id;
select id, unnest(tags) / 10 as t from qsetw order by unnest(tags) desc limit 2 offset 1;
select distinct on (unnest(tags) % 20) unnest(tags) % 20 as k, id from qsetw order by unnest(tags) % 20, id desc;
select generate_series(1, 3) + 1 as x union all select 9 order by x desc;
select generate_series(1, 3) * 1.5 as x fetch first 2 rows only;

-- Groups and windows, below and above.
select unnest(tags) % 20 as k, count(*), sum(id) from qsetw group by 1 order by 1;
select generate_series(1, 2) as g, count(*) from qsetw group by g order by g;
select generate_series(1, 2) + 1 as g, count(*) from qsetw group by generate_series(1, 2) order by g;
select generate_series(1, count(*)) * 2 as n from qsetw;
select id % 2 as odd, generate_series(1, count(*)::int) + max(id) as n from qsetw group by 1 order by 1, 2;
select generate_series(1, 2) + count(*) as n, sum(id) from qsetw having count(*) > 3;
select generate_series(1, 2) as g, id % 2 as o, count(*) from qsetw group by rollup (1, 2) order by 1, 2;
select id, generate_series(1, 2) * row_number() over (order by id) as n from qsetw order by 1, 2;

-- What is NULL whatever the set gives makes no rows.
select null::int + generate_series(1, 3) as n;
select abs(null + generate_series(1, 2)) as n, generate_series(1, 2) as g;
select 'a' || (null::text || generate_series(1, 3)) as t;
select generate_series(1, null::int) + 1 as none;

select (r).f1, (r).f2 from (select row(generate_series(1, 2), 'x'::text) as r) s;
select grouping(g), g, count(*) from (values (1)) v(x), lateral (select generate_series(1, 2) as g) s group by rollup (g) order by 1, 2;

-- Within other queries, and in INSERT.
select * from (select unnest(tags) / 10 as x from qsetw) s where x > 1 order by x;
select id, array(select unnest(tags) + id) as more from qsetw order by id;
select id in (select unnest(tags) / 10 from qsetw) as found from qsetw order by id;
with w as (select unnest(tags) + 1 as x from qsetw) select sum(x) from w;
create table qsetw2 (a int, b text default 'dflt');
insert into qsetw2 values (generate_series(1, 3) * 10);
insert into qsetw2 select generate_series(4, 5) + 1, 'sel';
insert into qsetw2 (b, a) values ('both', generate_series(7, 8)) returning a, b;
insert into qsetw2 values (generate_series(1, 2), 'a' || generate_series(3, 5)) returning *;
insert into qsetw2 values (1, 'x'), (generate_series(1, 3), 'y');
select * from qsetw2 order by a, b;
create view qsetw3 as select id, unnest(tags) + 1 as x from qsetw;
select * from qsetw3 order by x;
update qsetw3 set x = 1;
create function qsetw_f(int) returns setof int language sql as 'select generate_series(1, $1) + $1';
select qsetw_f(2) * 10 as f;
select qsetw_f(id) + generate_series(0, 1) as f, id from qsetw where id < 3 order by id, f;
select qsetw_f(qsetw_f(1)) as f;
prepare qsetw_p (int) as select generate_series(1, $1) * $1 as x;
execute qsetw_p(2);
execute qsetw_p(3);
deallocate qsetw_p;

select generate_series(1, 3) in (select 1);
select generate_series(1, 3) = any (select 1);
select (generate_series(1, 3), 1) = (select 1, 1);
select (generate_series(1, 3), 1) in (select 1, 1);
select (generate_series(1, 3), 1) < (2, 1) as less;
select (1, 2) in ((generate_series(1, 3), 1));
select (array[4, 5, 6])[generate_series(1, 3)] as e;
select ('{"a":[7,8]}'::jsonb)['a'][generate_series(0, 1)] as e;
select generate_series(1, 2) + 1 as x for update;
select unnest(tags) from qsetw for share;
begin;
declare qsetw_p cursor for select generate_series(1, 5) * 2 as x;
fetch 2 from qsetw_p;
fetch 2 from qsetw_p;
commit;
do $$ declare r int; begin for r in select generate_series(1, 3) + 1 loop raise notice '%', r; end loop; end $$;
do $$ declare r int; begin r := generate_series(1, 3) + 1; end $$;

-- Where they cannot stand.
select case when true then generate_series(1, 3) end;
select case generate_series(1, 3) when 1 then 2 end;
select coalesce(generate_series(1, 3), 0);
select coalesce(1, abs(case when true then unnest(array[1]) end));
select sum(generate_series(1, 3));
select count(*) filter (where generate_series(1, 3) > 0);
select sum(id order by generate_series(1, 2)) from qsetw;
select sum(generate_series(1, 3)) over ();
select lag(generate_series(1, 3)) over ();
select 1 from qsetw where generate_series(1, 2) > 0;
select 1 from qsetw where coalesce(generate_series(1, 2), 0) > 0;
select 1 from qsetw having generate_series(1, 2) > 0;
select 1 limit generate_series(1, 2);
select * from generate_series(1, generate_series(1, 2)) g;
values (generate_series(1, 2));
update qsetw set id = generate_series(1, 2);
insert into qsetw2 values (1) returning generate_series(1, 2);
select 1 from qsetw join qsetw2 on generate_series(1, 2) > 0;
create table qsetw4 (a int default generate_series(1, 2));
create table qsetw4 (a int check (generate_series(1, 2) > a));
create index on qsetw (generate_series(1, id));

drop function qsetw_f;
drop view qsetw3;
drop table qsetw, qsetw2;
