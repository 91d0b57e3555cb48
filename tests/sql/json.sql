-- names: leaves
-- json: kept as it was written, checked once; its operators, functions and aggregates.
select '{"a": 1, "a": 2 , "b":[1.0,null]}'::json, ' [1] '::json, '"\u00e4\ud83d\ude00"'::json;
select ''::json;
select '{"a":1'::json;
select '{"a" 1}'::json;
select '[1,]'::json;
select '{1:2}'::json;
select '[01]'::json;
select '"\x"'::json;
select '"a
b"'::json;
select 'nul'::json;
select E'{\n"a": 1,\n"b" 2}'::json;
select '{"averyveryverylongkeythatislongerthanfiftybytes": 1, "b" : , "c": 3}'::json;
select '"\u00"'::json;
select '{"a": {"b": [1, "x", null]}}'::json -> 'a' -> 'b' -> 1, '{"a": "\u00e4"}'::json ->> 'a', '[1, 2]'::json -> -1, '[1]'::json -> 1;
select '{"a": {"b": [1, "x", null]}}'::json #> '{a,b,-2}', '{"a": null}'::json #>> '{a}', '{"a": 1}'::json #>> '{}', '"x"'::json #>> '{}';
select '{"a": "\u0000"}'::json ->> 'a';
select '{"a": "\ud83d"}'::json ->> 'a';
select * from json_each('{"a": [1, 2], "b": null}'), json_each_text('{"c": "x", "d": null}');
select * from json_array_elements('[1, {"a": 2}, "x", null]'), json_array_elements_text('["x", null]');
select e, e.value from json_array_elements('[1, 2]') as e;
select json_object_keys('{"a": 1, "a": 2, "b": 3}');
select json_array_length('[1, [2, 3]]'), json_typeof('null'), json_typeof(' {"a": 1}'), json_strip_nulls('{"a": null, "b": {"c": null, "d": [null, 1]}}');
select json_array_length('{}');
select json_array_length('1');
select json_array_elements('{}');
select json_array_elements('1');
select json_each('[]');
select json_object_keys('[]');
select to_json(1.50), to_json('a"b'::text), to_json(true), to_json(array[[1, 2], [3, null]]), to_json(null::int), to_json('NaN'::float8), to_json('{"a":1}'::json);
select to_json('2024-02-29'::date), to_json('2024-02-29 12:34:56.78'::timestamp), to_json('12:34:56+00'::timetz), to_json('infinity'::date), to_json('1 day'::interval);
set time zone 'Asia/Kolkata';
select to_json('2024-02-29 12:34:56+00'::timestamptz), to_json('0044-03-15 BC'::date);
reset time zone;
select row_to_json(row(1, 'x', null, array[1])), row_to_json(row(1, row(2, 3)), true), array_to_json(array[1, 2], true), array_to_json('{}'::int[]);
select json_build_object('a', 1, 'b', array[1, 2], 'c', null), json_build_object(), json_build_array(1, 'x', null, true), json_build_array();
select json_build_object('a');
select json_build_object(null, 1);
select json_build_object('{"a":1}'::json, 1);
select json_object('{a,1,b,null,c,NULL}'), json_object('{{a,1},{b,2}}'), json_object('{a,b}', '{1,NULL}');
select json_object('{a,b,c}');
select json_object('{{a,b,c}}');
select json_object('{a,NULL}', '{1,2}');
select json_object('{a}', '{1,2}');
create table leaves (id int primary key, doc json, docs json[]);
insert into leaves values (1, '{"a":  1}', array['1', '{"b": 2}']::json[]), (2, null, null), (3, '[1]', '{}');
insert into leaves values (4, '{', null);
select * from leaves order by id;
copy leaves to stdout;
copy leaves from stdin;
5	{"x": "\\n"}	{"{\\"a\\": 1}"}
6	nope	\N
\.
copy leaves from stdin;
5	{"x": "\\n"}	{"{\\"a\\": 1}"}
\.
select id, doc ->> 'x', docs[1] from leaves where id = 5;
select json_agg(doc order by id), json_agg(id order by id desc), json_agg(array[id, id] order by id), json_object_agg(id, doc order by id) from leaves;
select json_agg(id), json_object_agg(id, id) from leaves where id > 99;
select json_object_agg(null, 1);
select doc = doc from leaves;
select distinct doc from leaves;
select 1 from leaves order by doc;
select doc from leaves union select doc from leaves;
select count(distinct doc) from leaves;
create index on leaves (doc);
select '{"a": 1}'::json::jsonb, '{"a": 1}'::jsonb::json, '{"a":1}'::text::json, '{"a":1}'::json::text, '[1]'::varchar::json;
select '{'::text::json;
select * from json_to_record('{"a": 1, "b": "x", "c": [1, 2], "d": {"e": 1}, "f": "2024-02-29"}') as t (a int, b text, c int[], d json, f date, g text);
select * from json_to_recordset('[{"a": 1, "b": "x"}, {"a": "2", "b": null}]') as t (a int, b varchar(3));
select * from json_to_record('[1]') as t (a int);
select * from json_to_recordset('{"a": 1}') as t (a int);
select * from json_to_record('{"a": "x"}') as t (a int);
select * from json_to_record('{"a": 1}');
select * from json_object_keys('{"a": 1}') as t (a text);
select id, x.a from leaves, json_to_record(doc) as x (a text) where id = 1;
drop table leaves;
