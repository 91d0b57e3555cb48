-- names: fnc prc kept reader
create function fnc_add(a int, b int default 10) returns int language sql as 'select a + b';
select fnc_add(1, 2), fnc_add(1), fnc_add(b => 5, a => 1), fnc_add(1, b => 7);
select fnc_add('1');
select fnc_add();
select fnc_add(1, c => 2);
select fnc_add(a => 1, 2);
select fnc_add(1, a => 2);
create function fnc_add(a int, b int) returns int language sql as 'select 1';
create or replace function fnc_add(a int, b int default 10) returns int language sql as $$ select $1 + $2 * 100 $$;
select fnc_add(1, 2);
create or replace function fnc_add(a int, b int default 10) returns text language sql as $$ select 'x' $$;
create or replace function fnc_add(x int, b int default 10) returns int language sql as $$ select 1 $$;
create function fnc_add(a text, b text) returns text language sql immutable as $$ select a || '-' || b $$;
select fnc_add('x', 'y'), fnc_add('x'::text, 'y'), fnc_add(1, 2);
create function fnc_wrong() returns int language sql as $$ select 'x'::text $$;
create function fnc_wrong() returns int language sql as $$ select 1, 2 $$;
create function fnc_wrong() returns int language sql as $$ create table kept_none (i int) $$;
create function fnc_wrong() returns int language sql as $$ selec 1 $$;
create function fnc_wrong() returns int language nowhere as $$ select 1 $$;
create function fnc_wrong() returns int as $$ select 1 $$;
create function fnc_wrong(a int default 1, b int) returns int language sql as $$ select 1 $$;
create function fnc_nothing() returns void language sql as $$ select 1 $$;
select fnc_nothing();
create function fnc_strict(a int) returns int language sql strict as $$ select coalesce(a, 7) $$;
select fnc_strict(null), fnc_strict(1);
create table kept_rows (id int primary key, t text);
create function fnc_put(i int, t text) returns int language sql as $$ insert into kept_rows values (i, t) returning id $$;
select fnc_put(1, 'one'), fnc_put(2, 'two');
select fnc_put(1, 'again');
select * from kept_rows order by id;
create function fnc_count() returns bigint language sql stable as $$ select count(*) from kept_rows $$;
select fnc_put(3, 'three'), fnc_count();
select fnc_count();
create function fnc_stable_put() returns void language sql stable as $$ insert into kept_rows values (9, 'no') $$;
select fnc_stable_put();
create function fnc_names(id int) returns text language sql as $$ select t from kept_rows where kept_rows.id = fnc_names.id $$;
select fnc_names(2);
create function fnc_out(a int, out b int, out c text) language sql as $$ select a * 2, 'c' || a $$;
select fnc_out(1), * from fnc_out(3);
select b from fnc_out(4) where c = 'c4';
create function fnc_one_out(a int, out b int) language sql as $$ select a + 1 $$;
select fnc_one_out(1);
create function fnc_all() returns setof int language sql as $$ select id from kept_rows order by id $$;
select fnc_all();
select * from fnc_all() as f(x) where x > 1;
select * from fnc_all() with ordinality;
create function fnc_table(lowest int) returns table (i int, s text) language sql as $$ select id, t from kept_rows where id >= lowest order by id $$;
select * from fnc_table(2);
select s, i + 1 from fnc_table(1) limit 1;
select k.id, f.s from kept_rows k, lateral fnc_table(k.id) f order by 1, 2;
create function fnc_setof_rows() returns setof kept_rows language sql as $$ select * from kept_rows order by id desc $$;
select * from fnc_setof_rows();
create function fnc_record() returns record language sql as $$ select 1, 'a'::text $$;
select * from fnc_record() as (a int, b text);
select * from fnc_record();
select fnc_record();
create function fnc_poly(a anyelement, b anyelement) returns anyarray language sql as $$ select array[a, b] $$;
select fnc_poly(1, 2), fnc_poly('a'::text, 'b');
select fnc_poly('a', 'b');
create function fnc_first(a anyarray) returns anyelement language sql as $$ select a[1] $$;
select fnc_first(array[3, 4]), fnc_first(array['x']);
create function fnc_sum(variadic a int[]) returns bigint language sql as $$ select sum(x) from unnest(a) x $$;
select fnc_sum(1, 2, 3), fnc_sum(variadic array[4, 5]), fnc_sum(6);
create function fnc_zero(a int) returns int language sql as $$ select 1 / a $$;
select fnc_zero(id - id) from kept_rows;
create function fnc_fact(n int) returns numeric language plpgsql as $$
begin
  if n <= 1 then
    return 1;
  end if;
  return n * fnc_fact(n - 1);
end $$;
select fnc_fact(10);
create function fnc_end(a int) returns int language plpgsql as $$
begin
  if a > 0 then return a; end if;
end $$;
select fnc_end(1);
select fnc_end(0);
create function fnc_raise(a int) returns int language plpgsql as $$
begin
  raise notice 'given %', a;
  if a > 1 then
    raise exception 'too much: %', a using hint = 'less';
  end if;
  return a;
end $$;
select fnc_raise(1);
select fnc_raise(2);
create function fnc_outer(a int) returns int language plpgsql as $$
declare r int;
begin
  r := fnc_raise(a);
  return r;
exception when raise_exception then
  return -1;
end $$;
select fnc_outer(1), fnc_outer(5);
create function fnc_rows(n int) returns setof int language plpgsql as $$
begin
  for i in 1..n loop
    return next i * i;
  end loop;
  return query select 100 union all select 200;
  return query execute 'select $1' using 300;
end $$;
select * from fnc_rows(3);
select fnc_rows(2);
create function fnc_rec(out a int, out b text) returns setof record language plpgsql as $$
begin
  a := 1; b := 'x'; return next;
  a := 2; b := 'y'; return next;
end $$;
select * from fnc_rec();
create function fnc_typed(i kept_rows.id%type) returns kept_rows.t%type language plpgsql as $$
declare
  r kept_rows%rowtype;
  v kept_rows.t%type;
begin
  select * into r from kept_rows where id = i;
  v := r.t;
  return v || r.id;
end $$;
select fnc_typed(2);
create function fnc_conflict(id int) returns text language plpgsql as $$
begin
  return (select t from kept_rows where id = id);
end $$;
select fnc_conflict(1);
create function fnc_no_conflict(id int) returns bigint language plpgsql as $$
#variable_conflict use_column
begin
  return (select count(*) from kept_rows where id = id);
end $$;
select fnc_no_conflict(1);
create function fnc_atomic() returns void language plpgsql as $$ begin commit; end $$;
select fnc_atomic();
create procedure prc_commit(n int) language plpgsql as $$
begin
  for i in 1..n loop
    insert into kept_rows values (100 + i, 'p');
    if i % 2 = 0 then rollback; else commit; end if;
  end loop;
end $$;
call prc_commit(4);
select id from kept_rows where id > 100 order by id;
begin;
call prc_commit(1);
rollback;
create procedure prc_out(a int, inout b int, out c text) language plpgsql as $$ begin b := a + b; c := 'c' || b; end $$;
call prc_out(1, 2, null);
do $$ declare x int := 5; y text; begin call prc_out(1, x, y); raise notice '% %', x, y; end $$;
do $$ begin call prc_out(1, 2, null); end $$;
select prc_out(1, 2);
call fnc_add(1, 2);
call prc_nowhere(1);
create procedure prc_sql(a int) language sql as $$ insert into kept_rows values (a, 'sql'); insert into kept_rows values (a + 1, 'sql') $$;
call prc_sql(50);
select * from kept_rows where t = 'sql' order by id;
create role reader_one;
revoke execute on function fnc_add(int, int) from public;
set role reader_one;
select fnc_add(1, 2);
select fnc_count();
reset role;
create function fnc_definer() returns text language sql security definer as $$ select current_user || (select count(*) from kept_rows)::text $$;
create function fnc_definer_pl() returns bool language plpgsql security definer as $$ begin return current_user <> session_user or (select count(*) from kept_rows) > 0; end $$;
set role reader_one;
select fnc_definer_pl();
select count(*) from kept_rows;
reset role;
create function fnc_set() returns text language sql set datestyle = 'German' as $$ select date '2024-02-29'::text $$;
select fnc_set(), date '2024-02-29'::text;
alter function fnc_set() reset datestyle;
alter function fnc_set() rename to fnc_unset;
select fnc_unset();
alter function fnc_unset() immutable strict;
select provolatile, proisstrict, proname from pg_proc where proname = 'fnc_unset';
select pg_get_function_arguments(oid), pg_get_function_result(oid) from pg_proc where proname in ('fnc_out', 'fnc_table', 'fnc_sum', 'prc_out') order by oid;
select pg_get_functiondef('fnc_fact'::regproc);
create function fnc_trigger() returns trigger language plpgsql as $$
begin
  new.t := upper(new.t) || tg_op;
  if tg_argv[0] = 'x' then return null; end if;
  return new;
end $$;
create function fnc_trigger_wrong(a int) returns trigger language plpgsql as $$ begin return new; end $$;
create function fnc_trigger_wrong() returns trigger language sql as $$ select 1 $$;
drop function fnc_trigger;
drop function fnc_add;
drop function fnc_add(text, text);
drop function if exists fnc_nowhere(int), fnc_nowhere;
drop procedure fnc_count();
drop function prc_sql(int);
drop function fnc_nowhere();
select proname, prokind, pronargs, proretset, proargnames, proargmodes from pg_proc where proname like 'fnc\_s%' order by 1;
create view kept_view as select fnc_count() as n, id from kept_rows;
drop function fnc_count();
select count(*) > 0 from kept_view;
drop table kept_rows cascade;
drop role reader_one;
set client_min_messages = warning;
do $$
declare
  r record;
begin
  for r in select oid::regprocedure as it from pg_proc where proname like 'fnc\_%' or proname like 'prc\_%' order by oid desc loop
    execute format('drop routine %s cascade', r.it);
  end loop;
end $$;
select count(*) from pg_proc where proname like 'fnc\_%' or proname like 'prc\_%';
