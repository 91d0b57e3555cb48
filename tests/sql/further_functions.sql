-- names: ffacts xval yval
-- Regression aggregates, arrays of arrays, trigonometry in degrees and others.
create table ffacts (grp int, yval float8, xval float8);
insert into ffacts values (1, 1, 10), (1, 2, 20), (1, 4, 30), (1, null, 40), (1, 5, null),
  (2, 3, 3), (2, 3, 3), (3, 7, 1), (4, 1, 1), (4, 2, 1), (4, 3, 1), (5, 2, 5), (5, 2, 6), (6, null, 1);

-- Pairs with NULL do not count; too few, or all above one another, give NULL.
select grp, regr_count(yval, xval) as n, regr_sxx(yval, xval) as sxx, regr_syy(yval, xval) as syy,
  regr_sxy(yval, xval) as sxy, regr_avgx(yval, xval) as avgx, regr_avgy(yval, xval) as avgy
  from ffacts group by grp order by grp;
select grp, regr_r2(yval, xval) as r2, regr_slope(yval, xval) as slope, regr_intercept(yval, xval) as intercept,
  covar_pop(yval, xval) as pop, covar_samp(yval, xval) as samp, corr(yval, xval) as corr
  from ffacts group by grp order by grp;
select corr(yval, xval) as all_of_them, regr_count(yval, xval) filter (where grp > 2) as later from ffacts;
select regr_slope(x, x * 2) as slope, corr(x, -x) as c from generate_series(1, 10) x;
select regr_count(1, null), regr_count(null, null), corr(1, 2), covar_pop(1, 2), covar_samp(1, 2);
select grp, regr_count(yval, xval) over (order by grp, yval, xval rows 2 preceding) as n,
  covar_pop(yval, xval) over (partition by grp) as c from ffacts order by 1, 2, 3;
select covar_pop(y, x), corr(y, x), regr_sxx(y, x) from (values (1::float8, 'Infinity'::float8), (2, 1)) v(y, x);
select covar_pop(y, x), regr_syy(y, x), regr_sxx(y, x) from (values (1::float8, 'NaN'::float8), (2, 1)) v(y, x);
select regr_sxx(y, x) from (values (1::float8, 1e200::float8), (2, -1e200)) v(y, x);
select regr_avgx(y, x) from (values (1::float8, 1e308::float8), (2, 1e308)) v(y, x);
select regr_r2(1, 'x');
select corr('a'::text, 1);
select corr(1);
create view ffacts_v as select grp, corr(yval, xval) as c from ffacts group by grp;
select pg_get_viewdef('ffacts_v'::regclass);
drop view ffacts_v;

-- Arrays of arrays.
select array_agg(a) from (values (array[1, 2]), (array[3, 4])) v(a);
select array_agg(a order by a desc) from (values (array['x', null]), (array['y', 'z'])) v(a);
select array_agg(array_agg) from (select array_agg(g) from generate_series(1, 4) g group by g % 2 order by 1) s;
select array_agg(a) from (values (array[[1, 2], [3, 4]]), (array[[5, 6], [7, 8]])) v(a);
select array_agg(a) from (select array[1] where false) v(a);
select array_agg(a) from (values (array[1, 2]), (array[3])) v(a);
select array_agg(a) from (values (array[1, 2]), (null)) v(a);
select array_agg('{}'::int[]);
select array_agg(a) from (values ('[0:1]={1,2}'::int[]), (array[3, 4])) v(a);
select array_agg(distinct a) from (values (array[1, 2]), (array[1, 2]), (array[0, 9])) v(a);
select pg_typeof(array_agg(array[1.5]));

-- Shapes, places, buckets.
select array_dims(array[1, 2]), array_dims('[0:1][3:5]={{1,2,3},{4,5,6}}'::int[]), array_dims('{}'::int[]);
select generate_subscripts(array['a', 'b', 'c'], 1, true) as down;
select generate_subscripts('[4:6]={1,2,3}'::int[], 1, false) as up;
select array_position(array[1, 2, 1, 3, 1], 1, 2), array_position(array[1, 2], 1, 2), array_position('[3:5]={1,1,1}'::int[], 1, 4);
select array_position(array[1, 2, null], null, 2), array_position(null::int[], 1, 1), array_position(array[1], 1, -5);
select array_position(array[1, 2], 1, null);
select width_bucket(v, array[1, 3, 5]) from generate_series(0, 6) v;
select width_bucket('b'::text, array['a', 'b', 'c']), width_bucket(2.5, array[1, 2, 3.0]), width_bucket(1, '{}'::int[]);
select width_bucket(1, array[1, null]);
select width_bucket(1, array[[1, 2], [3, 4]]);
select width_bucket(now(), array['yesterday', 'tomorrow']::timestamptz[]);

-- Degrees.
select x, sind(x), cosd(x), tand(x), cotd(x) from unnest('{0, 30, 45, 60, 90, 120, 135, 150, 180, 270, 360, -30, -45, -90, 405}'::float8[]) x;
select x, asind(x), acosd(x), atand(x) from unnest('{-1, -0.5, 0, 0.5, 1}'::float8[]) x;
select atan2d(1, 1), atan2d(0, -1), atan2d(-1, 0), atand('Infinity'), sind('NaN'), acosd('NaN');
select sind(17.5), cosd(77.25), tand(12), asind(0.3), acosd(-0.7), atand(3);
select sind('Infinity');
select asind(1.5);

-- Names, escapes, bytes.
select parse_ident('foo.bar'), parse_ident(' "A ""b"" c" . D$1 '), parse_ident('ünï.ÜNÏ');
select parse_ident('foo.bar[]', strict => false), parse_ident('a.b c', false);
select parse_ident('foo.bar[]');
select parse_ident('.x');
select parse_ident('x.');
select parse_ident('"x');
select parse_ident('""');
select parse_ident('1x');
select parse_ident('');
select unistr('d\0061t\+000061'), unistr('\u0441\u043B\u043E\u043D'), unistr('\U0001F600 \\ x'), unistr('\D83D\DE00');
select unistr('wrong: \061');
select unistr('wrong: \d83dx');
select unistr('wrong: \+110000');
select bit_count('\x0fff00'::bytea), bit_count(''::bytea);
select ltrim('\x0001020100'::bytea, '\x0001'), rtrim('\x0001020100'::bytea, '\x0001'), ltrim('\x00'::bytea, '\x00');

-- What drivers and applications read of the catalog.
select word, catcode, barelabel, catdesc, baredesc from pg_get_keywords() where word in ('abort', 'between', 'left', 'select', 'year') order by word;
select count(*), count(*) filter (where catcode = 'R') as reserved from pg_get_keywords();
create table ffacts2 (xval int, yval text, grp int, primary key (grp, xval));
select a.attname, (i.keys).n from pg_attribute a join
  (select indexrelid, indrelid, information_schema._pg_expandarray(indkey) as keys from pg_index where indisprimary) i
  on a.attnum = (i.keys).x and a.attrelid = i.indrelid where a.attrelid = 'ffacts2'::regclass order by 2;
select (information_schema._pg_expandarray(conkey)).x, (information_schema._pg_expandarray(conkey)).n from pg_constraint where conrelid = 'ffacts2'::regclass order by 2;
select (r).f2, (r).f1 + 1 as f1 from (select row(grp, yval) as r from ffacts) s order by 2, 1 limit 3;
select (s.e).key, (s.e).value from (select json_each_text('{"a":1,"b":2}') as e) s order by 1;
with w as (select jsonb_each('{"k":[1]}') as pair) select (pair).*, pair from w;
select (pair).value from (select pair from (select jsonb_each('{"k":[1]}') as pair) a) b;
select (r).f3 from (select row(1, 2) as r) s;
select (r).f1 from (select row(1, 2) as r union all select row(3, 4)) s order by 1;
select * from information_schema._pg_expandarray(array['a', null, 'c']);
select * from information_schema._pg_expandarray('{}'::int[]);
select (information_schema._pg_expandarray('[3:4]={7,8}'::int[])).*;
select pronargs, proallargtypes, proargmodes, proargnames from pg_proc where proname in ('_pg_expandarray', 'concat', 'pg_get_keywords', 'make_date') order by proname;
drop table ffacts2;
drop table ffacts;
