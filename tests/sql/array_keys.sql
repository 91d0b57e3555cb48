-- names: zak
-- Arrays as keys: of tables, of indexes of every method that takes them, and of what joins and sorts by them.
\set SHOW_CONTEXT never
create table zak (id int primary key, a int[], t text[], n numeric[]);
create index zak_a on zak (a);
create unique index zak_t on zak (t);
create index zak_n on zak (n desc nulls first);
create index zak_hash on zak using hash (a);
insert into zak values
  (1, '{1,2}', '{a,b}', '{1.0,2}'), (2, '{}', '{}', '{}'), (3, null, null, null), (4, '{1}', '{a}', '{NaN}'),
  (5, '{1,null}', '{a,NULL}', '{1,NULL}'), (6, '{{1,2}}', '{{a,b}}', '{{1,2}}'), (7, '[0:1]={1,2}', '[0:1]={a,b}', '{-1}'),
  (8, '{-5,7}', '{"a\\b",""}', '{Infinity}'), (9, '{1,2,3}', '{ab}', '{1.00,2.000}'), (10, null, null, null);
insert into zak values (11, null, '{a,b}', null);
insert into zak values (11, null, '{{a,b}}', null);
insert into zak values (11, null, '{a,b,}', null);
insert into zak values (11, null, '{a,NULL}', null) on conflict (t) do nothing;
insert into zak values (11, null, '{a}', null) on conflict (t) do update set n = '{42}' returning id, n;
select id, a from zak order by a, id;
select id, t from zak order by t desc, id;
select id, n from zak order by n desc nulls first, id;
set enable_seqscan = off;
select id from zak where a = '{1,2}';
select id from zak where a = '{1,2}'::bigint[];
select id from zak where n = '{1,2}' order by id;
select id from zak where a > '{1}' and a < '{1,2,3}' order by a, id;
select id from zak where a >= '{1,2}' order by a, id;
select id from zak where t = any (array['{}'::text[]]) order by id;
select id from zak where a is null order by id;
prepare zakp(int[]) as select id from zak where a = $1 order by id;
execute zakp('{1,NULL}');
execute zakp('{}');
execute zakp(null);
select x.id, y.id from zak x join zak y on x.a = y.a where x.id < y.id order by 1, 2;
reset enable_seqscan;
\d zak
select c.relname, o.opcname from pg_index i join pg_class c on c.oid = i.indexrelid, unnest(i.indclass) u join pg_opclass o on o.oid = u
  where i.indrelid = 'zak'::regclass order by 1;
update zak set a = a || 9 where id = 1 returning a;
delete from zak where a = '{1,2,9}' returning id;
create table zak_pk (k text[] primary key, v int, unique nulls not distinct (k, v));
insert into zak_pk select array[i::text, (i % 3)::text], i from generate_series(1, 2000) i;
insert into zak_pk values ('{7,1}', 0);
insert into zak_pk values (null, 0);
select v from zak_pk where k = '{1234,1}';
select count(*) from zak_pk where k >= '{15}' and k < '{16}';
select k from zak_pk order by k limit 3;
select k from zak_pk order by k desc limit 3;
create table zak_fk (k text[] references zak_pk on update cascade on delete cascade);
insert into zak_fk values ('{7,1}'), ('{8,2}'), (null);
insert into zak_fk values ('{7}');
update zak_pk set k = '{seven}' where v = 7;
delete from zak_pk where v = 8;
select * from zak_fk order by k;
create type zak_mood as enum ('sad', 'ok', 'happy');
create table zak_more (m zak_mood[], d date[], r int4range[], j jsonb[], c char(3)[], b bool[], f float8[], i interval[], u uuid[]);
create index on zak_more (m); create index on zak_more (d); create index on zak_more (r); create index on zak_more (j);
create index on zak_more (c); create index on zak_more (b); create index on zak_more (f); create index on zak_more (i); create index on zak_more (u);
insert into zak_more values
  ('{ok,happy}', '{2020-01-01}', '{"[1,5)"}', '{"[1]"}', '{a}', '{t}', '{-0}', '{1 mon}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'),
  ('{sad}', '{infinity,NULL}', '{empty}', '{"{\"a\": 1}"}', '{"b  "}', '{f}', '{0}', '{30 days}', '{}');
set enable_seqscan = off;
select m from zak_more where m < '{ok}';
select d from zak_more where d > '{2020-01-01}';
select r from zak_more where r = '{empty}';
select j from zak_more where j > '{[]}' order by j;
select c from zak_more where c = '{"a "}';
select f from zak_more where f = '{0}' order by f;
select count(*) from zak_more where i = '{30 days}';
select u from zak_more where u = '{}';
reset enable_seqscan;
-- Arrays out of subqueries that give arrays.
select array(select array[i, i + 1] from generate_series(1, 3) i);
select array(select array[1] where false), pg_typeof(array(select array[1] where false));
select array(select null::int[]);
select array(select '{}'::int[]);
select array(select a from (values ('{1}'::int[]), ('{1,2}')) v(a));
select array(select '{{{{{{1}}}}}}'::int[]);
select array(select a from (values ('{{1,2}}'::int[]), ('{{3,4}}')) v(a));
select '{1,2}'::int[] <@ array(select array[i, 2] from generate_series(1, 3) i);
-- Types by quoted names.
select to_regtype('"text"'), to_regtype('"int4"'), to_regtype('"integer"'), to_regtype('"char"'), to_regtype('"Text"'), to_regtype('"_text"');
select '"text"'::regtype, '"timestamptz"[]'::regtype;
drop table zak, zak_fk, zak_pk, zak_more;
drop type zak_mood;
