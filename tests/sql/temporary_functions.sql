-- names: ztf ztg
-- Functions and aggregates that one session has to itself.
create table ztf (a int);
create function pg_temp.ztf_next(int) returns int language sql as 'select $1 + 1';
select pg_temp.ztf_next(1);
-- Their schema alone finds them.
select ztf_next(1);
create or replace function pg_temp.ztf_next(int) returns int language sql as 'select $1 + 2';
select pg_temp.ztf_next(1);
create function pg_temp.ztf_next(int) returns int language sql as 'select 1';
create temp table ztg (a int default pg_temp.ztf_next(2));
create function pg_temp.ztf_row() returns trigger language plpgsql as $$ begin new.a := new.a * 10; return new; end $$;
create trigger ztf_before before insert on ztg for each row execute function pg_temp.ztf_row();
create trigger ztf_other before insert on ztg for each row execute function ztf_row();
insert into ztg values (default), (1);
select * from ztg order by a;
drop function ztf_next(int);
drop function pg_temp.ztf_none(int);
drop function if exists pg_temp.ztf_none(int);
create procedure pg_temp.ztf_twice(inout a int) language plpgsql as $$ begin a := a * 2; end $$;
call pg_temp.ztf_twice(4);
create aggregate pg_temp.ztf_total(int) (sfunc = int4pl, stype = int, initcond = '0');
select pg_temp.ztf_total(x) from generate_series(1, 4) x;
select ztf_total(x) from generate_series(1, 4) x;
-- As transactions end.
begin;
create function pg_temp.ztf_gone() returns int language sql as 'select 1';
select pg_temp.ztf_gone();
savepoint one;
drop function pg_temp.ztf_gone();
select pg_temp.ztf_gone();
rollback to one;
select pg_temp.ztf_gone();
rollback;
select pg_temp.ztf_gone();
create function pg_temp.ztf_rows() returns setof ztg language sql as 'select * from ztg';
select * from pg_temp.ztf_rows() order by a;
do $$ begin execute 'create function pg_temp.ztf_made(x text) returns text language sql as ''select x || x'''; end $$;
prepare ztf_say as select pg_temp.ztf_made('x');
execute ztf_say;
drop function pg_temp.ztf_made(text);
execute ztf_say;
-- What others call it.
create function pg_temp.ztf_hidden() returns int language sql as 'select 7';
create function ztf_perm() returns int language sql as 'select pg_temp.ztf_hidden()';
select ztf_perm();
alter function pg_temp.ztf_hidden() rename to ztf_shown;
select ztf_perm();
select pg_temp.ztf_shown();
alter function pg_temp.ztf_shown() set schema public;
alter function ztf_perm() set schema pg_temp;
alter function pg_temp.ztf_shown() stable;
comment on function pg_temp.ztf_shown() is 'said';
select obj_description('pg_temp.ztf_shown'::regproc), obj_description('pg_temp.ztf_shown'::regproc, 'pg_proc');
select proname, provolatile, pg_function_is_visible(oid) from pg_proc where pronamespace = pg_my_temp_schema() order by 1;
-- Rights.
create role ztf_role;
set role ztf_role;
create function pg_temp.ztf_mine() returns int language sql as 'select 1';
select pg_temp.ztf_mine();
drop function pg_temp.ztf_shown();
alter function pg_temp.ztf_shown() volatile;
reset role;
revoke execute on function pg_temp.ztf_shown() from public;
set role ztf_role;
select pg_temp.ztf_shown();
reset role;
-- DISCARD takes them.
discard temp;
select count(*) from pg_proc where pronamespace = pg_my_temp_schema();
select pg_temp.ztf_shown();
drop function ztf_perm();
drop role ztf_role;
drop table ztf;
