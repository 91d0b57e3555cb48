-- names: rnd
-- What the defaults of arguments need, and what information_schema says of routines.
create schema rnd;
set search_path = rnd;
create sequence rnd_seq;
create function rnd_one() returns int language sql as 'select 1';
create function rnd_two(int default rnd_one()) returns int language sql as 'select $1';
create function rnd_three(int default nextval('rnd_seq')) returns int language sql as 'select $1';
create table rnd_table (a int, b int);
create function rnd_four() returns int begin atomic select count(a) from rnd_table; end;
create function rnd_five() returns int begin atomic select nextval('rnd_seq'); end;
create function rnd_six(a int, out b text, inout c rnd_table, d text default 'foo', variadic e int[] default '{1}') language sql as $$select 'x', c$$;
create function rnd_seven() returns table (x int, y rnd_table) language sql as 'select 1, null::rnd_table';
create procedure rnd_eight(a int default 1 + 1) language sql as '';
select split_part(specific_name, '_', 2) as routine, ordinal_position, parameter_mode, is_result, as_locator, parameter_name, data_type, udt_schema, udt_name, dtd_identifier, parameter_default
from information_schema.parameters where specific_schema = 'rnd' order by specific_name, ordinal_position;
select split_part(specific_name, '_', 2), routine_schema, split_part(routine_name, '_', 2) from information_schema.routine_routine_usage where specific_schema = 'rnd' order by 1, 3;
select routine_schema, routine_name, sequence_schema, sequence_name from information_schema.routine_sequence_usage where routine_schema = 'rnd' order by 2;
select routine_schema, routine_name, table_schema, table_name, column_name from information_schema.routine_column_usage where routine_schema = 'rnd' order by 2, 5;
select routine_schema, routine_name, table_schema, table_name from information_schema.routine_table_usage where routine_schema = 'rnd' order by 2;
select pg_get_function_arg_default('rnd_six'::regproc, n) from generate_series(0, 6) n;
drop function rnd_one();
drop sequence rnd_seq;
create or replace function rnd_two(int default 5) returns int language sql as 'select $1';
drop function rnd_one();
drop sequence rnd_seq cascade;
drop schema rnd cascade;
