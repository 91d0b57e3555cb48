-- names: jpm
-- Dates and times of a jsonpath in all forms that are taken, signs where only existence counts, rows in rows of JSON.
select t, (select jsonb_path_query_first(to_jsonb(t), '$.datetime()', silent => true)) from (values
  ('12345-01-01'), ('1-1-1'), ('2020-1-1 1:2:3'), (' 2020-01-01'), ('2020-01-01 '), ('-2020-01-01'), ('5874897-12-31'), ('5874898-01-01'),
  ('10:11:12.5'), ('10:11:12.5+1'), ('10:11:12 +01'), ('10:11:12+01:3'), ('2020-01-01T10:11:12.1234567'), ('2020-01-01 10:11:12+16'),
  ('2020-01-01  10:11:12'), ('2020-01-01 24:00:00'), ('10:11:60'), ('0000-01-01'), ('1-2-3T4:5:6-7'), ('2020-01-01 10:11:12 -03:30'),
  ('2020-001-01'), ('2020-13-01'), ('10:11'), ('10:11:12Z')) v(t);
select jsonb_path_query('"2020-11-111"', '$.datetime()');
select jsonb_path_query('"1000000-01-01"', '$.datetime() > "2020-01-01 12:00:00".datetime()');
select jsonb_path_query('"5874897-12-31"', '$.datetime() > "2020-01-01 12:00:00+00".datetime()');
select jsonb_path_query_tz('"5874897-12-31"', '$.datetime() > "2020-01-01 12:00:00+00".datetime()');
select jsonb_path_query_tz('"2020-01-01 12:00:00"', '$.datetime() < "5874897-12-31".datetime()');

select jsonb '["1", 2, 0, 3]' @? '-$[*]', jsonb '["1"]' @? '-$[*]', jsonb_path_exists('["a", 1]', '+$[*]');
select jsonb_path_exists('["a", 1]', '(-$[*]).abs()');
select jsonb_path_exists('["a", 1]', 'strict -$[*]');
select jsonb_path_query('["a", 1]', '$ ? (exists(-@[*]))');
select jsonb_path_query('["a", "b"]', '$ ? ((exists(-@[*])) is unknown)');
select jsonb_path_query('["a", "b"]', '$ ? ((-@[*] > 0) is unknown)');

create type jpm_in as (a int, b text);
create type jpm_of as (x int, y jpm_in, z jpm_in[]);
select json_populate_record(row(1, row(2, 'q')::jpm_in, null)::jpm_of, '{"y": {"a": 5}}');
select jsonb_populate_record(row(1, row(2, 'q')::jpm_in, null)::jpm_of, '{"y": {"a": 5}}');
select jsonb_populate_record(row(1, row(2, 'q')::jpm_in, array[row(3, 'w')::jpm_in])::jpm_of, '{"y": {}, "z": [{"a": 1}]}');
select jsonb_populate_record(row(1, row(2, 'q')::jpm_in, null)::jpm_of, '{"y": null}');
select jsonb_populate_record(row(1, row(2, 'q')::jpm_in, null)::jpm_of, '{"y": "(7,)"}');
select * from jsonb_populate_recordset(row(1, row(2, 'q')::jpm_in, null)::jpm_of, '[{"y": {"a": 5}}, {"y": {"b": "n"}}, {}]');
drop type jpm_of, jpm_in;
