-- names: rxt
create schema rxt_s;
create table rxt_rows (a int, b text);
create type rxt_mood as enum ('sad', 'happy');
create function rxt_plain() returns int language sql as 'select 1';
create function rxt_all(a int, "B c" text default 'x''y', variadic d rxt_mood[] default '{sad}') returns setof rxt_rows language plpgsql stable strict security definer leakproof cost 5.5 rows 7 parallel restricted set search_path = rxt_s, "Odd one", pg_temp set datestyle = 'German' set work_mem to '2MB' as $_$ begin return query select 1, 'x'; end $_$;
create function rxt_s.rxt_table(a numeric(5, 2), out b varchar(3)) language sql immutable parallel safe as $$ select '$function$ '' \ '::varchar $$;
create function rxt_columns(i int) returns table ("I x" int, m rxt_mood) language sql as $$ select 1, 'sad'::rxt_mood $$;
create procedure rxt_p(a int, inout b int default 3, out c text) language plpgsql as 'begin c := 1; end';
create procedure rxt_p(a int, inout b int, out c text) language plpgsql as 'begin c := 1; end';
select p.oid::regprocedure, pg_get_function_arguments(oid), pg_get_function_identity_arguments(oid), pg_get_function_result(oid) from pg_proc p where proname like 'rxt\_%' order by proname;
select pg_get_functiondef(oid) from pg_proc p where proname like 'rxt\_%' order by proname;
select proname, prokind, prosecdef, proleakproof, proisstrict, proretset, provolatile, proparallel, pronargs, pronargdefaults, proargmodes, proargnames, prosrc, proconfig, procost, prorows, provariadic::regtype, proacl from pg_proc where proname like 'rxt\_%' order by proname;
select 'rxt_plain'::regproc, 'rxt_plain()'::regprocedure, to_regproc('rxt_nowhere'), to_regprocedure('rxt_plain(int)'), 'rxt_s.rxt_table'::regproc;
select 'rxt_nowhere'::regproc;
select 'rxt_plain(int)'::regprocedure;
select pg_function_is_visible('rxt_plain'::regproc), pg_function_is_visible('rxt_s.rxt_table'::regproc);
\df rxt_*
\df rxt_s.*
\sf rxt_plain
\sf rxt_s.rxt_table
select routine_name, routine_type, external_language, security_type from information_schema.routines where routine_name like 'rxt\_%' order by 1;
set search_path = rxt_s, public;
select p.oid::regprocedure, pg_get_function_arguments(oid) from pg_proc p where proname like 'rxt\_%' order by proname;
reset search_path;
set client_min_messages = warning;
drop schema rxt_s cascade;
drop table rxt_rows cascade;
drop type rxt_mood cascade;
drop function rxt_plain();
drop procedure rxt_p(int, int);
select count(*) from pg_proc where proname like 'rxt\_%';
