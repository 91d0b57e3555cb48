-- names: figures
-- Aggregates that CREATE AGGREGATE makes: their parts, how they are called, who may call them, what
-- depends on them.

\pset format unaligned
\pset tuples_only on

create function add_up(text, text) returns text immutable language sql
  as $$ select case when $2 is null then $1 when $1 is null then $2 else $1 || ', ' || $2 end $$;
create aggregate add_up (text) (sfunc = add_up, stype = text);
select aggkind, aggnumdirectargs, aggtransfn, aggfinalfn, aggtranstype::regtype, agginitval from pg_aggregate
  where aggfnoid = 'add_up(text)'::regprocedure;
select proname, prokind, provolatile, proisstrict, pronargs, prorettype::regtype, prosrc from pg_proc
  where oid = 'add_up(text)'::regprocedure;
select pg_get_functiondef('add_up(text)'::regprocedure);
select pg_get_function_arguments('add_up(text)'::regprocedure), pg_get_function_result('add_up(text)'::regprocedure);
\da add_up
\df+ add_up
select add_up(x) from (values ('a'), (null), ('b')) v(x);
select add_up(x) from (values ('a')) v(x) where false;

-- Strict steps, first states, no arguments, the old syntax.
create aggregate from_five (int) (sfunc = int4pl, stype = int, initcond = '5');
create aggregate plain_sum (int) (sfunc = int4pl, stype = int);
create aggregate rows_there (*) (sfunc = int8inc, stype = int8, initcond = '0');
create aggregate rows_too (basetype = 'ANY', sfunc = int8inc, stype = int8, initcond = '0');
create aggregate old_sum (basetype = int, sfunc = int4pl, stype = int);
select from_five(x), plain_sum(x), rows_there(*), rows_too(*), old_sum(x) from (values (1), (null), (3)) v(x);
select from_five(x), plain_sum(x), rows_there(*) from (values (1)) v(x) where false;
select plain_sum(distinct x), plain_sum(x order by x desc) filter (where x > 1) from (values (1), (2), (2), (null)) v(x);
select x, plain_sum(x) over (order by x), from_five(x) over (rows between 1 preceding and current row)
  from (values (1), (2), (2), (null)) v(x);
select k, plain_sum(x) from (values (1, 1), (2, 5), (1, 2)) v(k, x) group by k order by k;
select k, plain_sum(x) from (values (1, 1), (2, 5), (1, 2)) v(k, x) group by rollup (k) having plain_sum(x) > 2 order by 1 nulls last;

-- A state that is not the result, also with arguments that have no type yet.
create function pair(int[], int) returns int[] language sql as 'select array[least($1[1], $2), greatest($1[2], $2)]';
create function distance(int[]) returns int language plpgsql as $$ begin return $1[2] - $1[1]; end $$;
create aggregate spread (int) (sfunc = pair, stype = int[], finalfunc = distance, initcond = '{}');
select spread(x), pg_typeof(spread(x)) from (values (4), (9), (6)) v(x);
create function last_of(anyelement, anyelement) returns anyelement immutable language sql as 'select $2';
create aggregate last_of (anyelement) (sfunc = last_of, stype = anyelement);
select last_of(x order by x), last_of(x::text), pg_typeof(last_of(x::text)) from generate_series(1, 3) x;
select last_of(null);
create function extra(int, text) returns text language sql as 'select coalesce($1::text, ''none'') || coalesce($2, '' and no row'')';
create function counted(int, text) returns int language sql as 'select coalesce($1, 0) + 1';
create aggregate with_extra (text) (sfunc = counted, stype = int, finalfunc = extra, finalfunc_extra);
select with_extra(x) from (values ('a'), ('b')) v(x);

-- What is refused.
create aggregate bad (int) (sfunc = int4pl);
create aggregate bad (int) (stype = int);
create aggregate bad (int) (sfunc = int4pl, stype = text);
create aggregate bad (int) (sfunc = nofunc, stype = int);
create aggregate bad (sfunc = int4pl, stype = int);
create aggregate bad (int) (sfunc = int4pl, stype = int, finalfunc = nofunc);
create aggregate bad (int) (basetype = int, sfunc = int4pl, stype = int);
create aggregate bad (int) (sfunc = int4pl, stype = int, initcond = 'x');
create aggregate bad (anyelement) (sfunc = array_append, stype = anyarray);
create aggregate bad (int) (sfunc = int4pl, stype = anyelement);
create aggregate bad (int, int) (sfunc = int4pl, stype = int, finalfunc_extra);
create aggregate bad (int) (sfunc = int4eq, stype = int);
create aggregate bad (int) (sfunc = int4pl, stype = int, finalfunc_modify = always);
create aggregate odd (int) (sfunc = int4pl, stype = int, mood = fine);
create aggregate plain_sum (int) (sfunc = int4pl, stype = int);
create or replace aggregate plain_sum (int) (sfunc = int4pl, stype = int, initcond = '100');
select plain_sum(x) from generate_series(1, 3) x;
create or replace aggregate plain_sum (int) (sfunc = int4pl, stype = int);
create function plain_sum(int) returns int language sql as 'select 1';
create or replace function plain_sum(int) returns int language sql as 'select 1';
create or replace aggregate pair (int[], int) (sfunc = counted, stype = int);
drop function plain_sum(int);
drop aggregate pair (int[], int);
drop aggregate nothing (int);
drop aggregate nothing (*);
drop aggregate if exists nothing (int);
alter function plain_sum(int) immutable;
call plain_sum(1);
select rows_there();
select rows_there(1);
select plain_sum(*);
select plain_sum(plain_sum(1));
select 1 where plain_sum(1) = 1;
select plain_sum(distinct x) over () from generate_series(1, 2) x;
select plain_sum(generate_series(1, 2));

-- Views, other names, what depends on what.
create table figures (a int, b text);
insert into figures values (1, 'x'), (2, 'y'), (3, 'z');
create view summed as select plain_sum(a) as r, add_up(b order by b desc) filter (where a > 1) as s from figures;
select * from summed;
select pg_get_viewdef('summed');
alter aggregate plain_sum (int) rename to simple_sum;
select pg_get_viewdef('summed');
select * from summed;
drop function add_up(text, text);
drop aggregate add_up (text);
comment on aggregate simple_sum (int) is 'adds';
comment on aggregate rows_there (*) is 'counts';
select obj_description('simple_sum(int)'::regprocedure, 'pg_proc'), obj_description('rows_there()'::regprocedure, 'pg_proc');
create schema apart;
alter aggregate simple_sum (int) set schema apart;
select apart.simple_sum(a) from figures;
select simple_sum(a) from figures;
select pg_get_viewdef('summed');

-- Rights: on the aggregate those of who calls it, on its functions those of its owner.
create role aggregate_owner;
create role aggregate_user;
grant usage, create on schema apart to aggregate_owner, aggregate_user;
revoke execute on function pair(int[], int) from public;
set role aggregate_owner;
create aggregate apart.own_spread (int) (sfunc = pair, stype = int[]);
reset role;
grant execute on function pair(int[], int) to aggregate_owner;
set role aggregate_owner;
create aggregate apart.own_spread (int) (sfunc = pair, stype = int[]);
select apart.own_spread(x) from generate_series(1, 3) x;
set role aggregate_user;
select apart.own_spread(x) from generate_series(1, 3) x;
alter aggregate apart.own_spread (int) rename to mine;
drop aggregate apart.own_spread (int);
reset role;
revoke execute on function apart.own_spread(int) from public;
set role aggregate_user;
select apart.own_spread(x) from generate_series(1, 3) x;
reset role;
grant execute on function apart.own_spread(int) to aggregate_user;
revoke execute on function pair(int[], int) from aggregate_owner;
set role aggregate_user;
select apart.own_spread(x) from generate_series(1, 3) x;
reset role;
alter aggregate apart.own_spread (int) owner to aggregate_user;

-- In transactions.
begin;
create aggregate short_lived (int) (sfunc = int4pl, stype = int);
select short_lived(a) from figures;
rollback;
select short_lived(a) from figures;
begin read only;
create aggregate short_lived (int) (sfunc = int4pl, stype = int);
rollback;

drop schema apart cascade;
drop function add_up(text, text) cascade;
drop table figures;
drop aggregate from_five (int), rows_there (*), rows_too (*), old_sum (int), spread (int), last_of (anyelement), with_extra (text), odd (int);
drop function pair, distance, last_of, extra, counted;
drop role aggregate_owner, aggregate_user;
