-- names: rpl
create table rpl_t (id int primary key, v text);
insert into rpl_t values (1, 'one'), (2, 'two');
create function rpl_f(i int) returns text language sql as 'select v from rpl_t where id = i';
create function rpl_pl(i int) returns text language plpgsql as 'begin return rpl_f(i) || 1; end';
prepare rpl_p(int) as select rpl_f($1), rpl_pl($1);
execute rpl_p(1);
create or replace function rpl_f(i int) returns text language sql as $$ select v || '!' from rpl_t where id = i $$;
execute rpl_p(1);
select rpl_f(1), rpl_pl(1);
drop function rpl_f(int);
execute rpl_p(1);
select rpl_pl(1);
create function rpl_f(i bigint) returns text language sql as $$ select 'big' || i $$;
execute rpl_p(1);
create function rpl_f(i int) returns text language sql as $$ select 'small' || i $$;
select rpl_f(1);
deallocate rpl_p;
create function rpl_f(i int, j int default 1) returns text language sql as $$ select 'two' || i $$;
select rpl_f(1);
drop function rpl_f(int, int);
prepare rpl_p(int) as select rpl_f($1);
execute rpl_p(1);
-- A transaction that is taken back.
begin;
create or replace function rpl_f(i int) returns text language sql as $$ select 'changed' || i $$;
execute rpl_p(1);
select rpl_f(1);
rollback;
execute rpl_p(1);
select rpl_f(1);
begin;
savepoint a;
create function rpl_g() returns int language sql as 'select 1';
select rpl_g();
rollback to a;
select rpl_g();
rollback;
-- The path decides.
create schema rpl_s;
create function rpl_s.rpl_f(i int) returns text language sql as $$ select 'other' || i $$;
set search_path = rpl_s, public;
execute rpl_p(1);
select rpl_f(1), rpl_pl(1);
reset search_path;
execute rpl_p(1);
set search_path = public, rpl_s;
select rpl_f(1), rpl_pl(1);
create function rpl_s.rpl_f(i text) returns text language sql as $$ select 'text' || i $$;
select rpl_f('1'), rpl_f('1'::text), rpl_f(1::smallint);
reset search_path;
-- Those of the system come first, unless the path says otherwise.
create function lower(t text) returns text language sql as $$ select 'mine' $$;
select lower('X'), public.lower('X'), pg_catalog.lower('X');
set search_path = public, pg_catalog;
select lower('X');
reset search_path;
create function lower(i int) returns text language sql as $$ select 'of an int' $$;
select lower(1);
drop function public.lower(text), public.lower(int);
-- Volatility: what a function sees.
create function rpl_put(i int) returns int language plpgsql as $$ begin insert into rpl_t values (i, 'put'); return i; end $$;
create function rpl_count_v() returns bigint language sql volatile as 'select count(*) from rpl_t';
create function rpl_count_s() returns bigint language sql stable as 'select count(*) from rpl_t';
create function rpl_count_vp() returns bigint language plpgsql volatile as 'begin return (select count(*) from rpl_t); end';
create function rpl_count_sp() returns bigint language plpgsql stable as 'begin return (select count(*) from rpl_t); end';
select rpl_put(10), rpl_count_v(), rpl_count_s(), rpl_count_vp(), rpl_count_sp(), (select count(*) from rpl_t);
select id, rpl_put(id + 100) from rpl_t order by id;
insert into rpl_t select 1000 + rpl_count_v(), 'n' from generate_series(1, 3);
update rpl_t set v = rpl_count_vp()::text where id > 1000 returning id, v;
delete from rpl_t where id > 1000 returning rpl_count_v(), rpl_count_s();
with a as (insert into rpl_t values (2000, 'cte') returning id) select id, rpl_count_v(), rpl_count_s() from a;
delete from rpl_t where id >= 10;
-- A stable one must not write, and not by what it calls in SQL either.
create function rpl_stable_writes() returns int language sql stable as 'insert into rpl_t values (5) returning id';
create function rpl_stable_writes_pl() returns int language plpgsql stable as 'begin insert into rpl_t values (5); return 1; end';
create function rpl_stable_calls() returns int language sql stable as 'select rpl_put(5)';
select rpl_stable_writes();
select rpl_stable_writes_pl();
select rpl_stable_calls();
select count(*) from rpl_t;
create function rpl_immutable_locks() returns int language plpgsql immutable as 'begin perform 1 from rpl_t for update; return 1; end';
select rpl_immutable_locks();
create function rpl_stable_ddl() returns int language plpgsql stable as 'begin create table rpl_never (i int); return 1; end';
select rpl_stable_ddl();
create function rpl_stable_catalog() returns int language plpgsql stable as $$ begin execute 'truncate rpl_t'; return 1; end $$;
select rpl_stable_catalog();
-- Transactions that only read.
begin read only;
select rpl_count_v();
select rpl_put(20);
rollback;
set default_transaction_read_only = on;
select rpl_put(20);
create function rpl_never() returns int language sql as 'select 1';
call rpl_nothing();
reset default_transaction_read_only;
-- Without end.
create function rpl_endless(i int) returns int language sql as 'select 1';
create or replace function rpl_endless(i int) returns int language sql as 'select rpl_endless(i + 1)';
create function rpl_endless_pl(i int) returns int language plpgsql as 'begin return rpl_endless_pl(i + 1); end';
create procedure rpl_endless_call() language plpgsql as 'begin call rpl_endless_call(); end';
\set VERBOSITY terse
select rpl_endless(1);
select rpl_endless_pl(1);
call rpl_endless_call();
select rpl_f(1);
do $$ begin perform rpl_endless_pl(1); exception when statement_too_complex then raise notice 'too deep'; end $$;
create function rpl_deep(i int) returns int language plpgsql as 'begin if i = 0 then return 0; end if; return 1 + rpl_deep(i - 1); end';
select rpl_deep(100);
select rpl_deep(700);
create view rpl_v as select rpl_endless_pl(1) as e;
select * from rpl_v;
\set VERBOSITY verbose
-- Time.
create function rpl_loops() returns int language plpgsql as 'begin loop null; end loop; end';
create function rpl_loops_handled() returns int language plpgsql as 'begin loop begin perform pg_sleep(10); exception when others then null; end; end loop; end';
create function rpl_sql_loops() returns bigint language sql as 'select count(*) from generate_series(1, 100000000000)';
set statement_timeout = 200;
select rpl_loops();
select rpl_loops_handled();
select rpl_sql_loops();
select rpl_loops() from rpl_t;
do 'begin perform rpl_loops(); exception when others then null; end';
reset statement_timeout;
-- Cursors and what is between.
begin;
declare rpl_c cursor for select id, rpl_put(id + 500) from generate_series(1, 3) id;
fetch 1 from rpl_c;
select count(*) from rpl_t;
fetch 1 from rpl_c;
select count(*) from rpl_t;
close rpl_c;
rollback;
begin;
declare rpl_c cursor for select id, rpl_count_v(), rpl_count_s() from generate_series(1, 3) id;
fetch 1 from rpl_c;
insert into rpl_t values (600);
fetch 1 from rpl_c;
close rpl_c;
rollback;
begin;
declare rpl_c cursor with hold for select rpl_f(id) from rpl_t where id < 3 order by id;
drop function rpl_f(int);
fetch rpl_c;
commit;
fetch rpl_c;
close rpl_c;
drop table rpl_t cascade;
drop schema rpl_s cascade;
set client_min_messages = warning;
do $$
declare
  r record;
begin
  for r in select oid::regprocedure as it from pg_proc where proname like 'rpl\_%' order by oid desc loop
    execute format('drop routine %s cascade', r.it);
  end loop;
end $$;
