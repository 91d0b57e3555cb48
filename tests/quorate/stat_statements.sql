-- What pg_stat_statements counts. PostgreSQL 15 prints the same where the library is preloaded, which that
-- of the tests does not: where its output was compared, nothing differed but the order of members.
select * from pg_stat_statements;
select pg_stat_statements_reset();
create extension pg_stat_statements version '9.9';
create schema watch;
create extension pg_stat_statements schema watch;
select * from pg_stat_statements;
create view of_this_database as
  select userid::regrole, toplevel, query, calls, rows from watch.pg_stat_statements
  where dbid = (select oid from pg_database where datname = current_database());
create view mine as
  select query, calls, rows from of_this_database where toplevel
    and userid = current_user::regrole
    and query not like '%\_reset(%';
alter extension pg_stat_statements set schema public;
set search_path = public;

-- What it has.
select attname, format_type(atttypid, atttypmod) from pg_attribute
  where attrelid = 'pg_stat_statements'::regclass and attnum > 0 order by attnum;
select attname, format_type(atttypid, atttypmod) from pg_attribute
  where attrelid = 'pg_stat_statements_info'::regclass and attnum > 0 order by attnum;
select proname, pg_get_function_arguments(oid) as arguments, pg_get_function_result(oid) as result,
  provolatile, proisstrict, proretset, proparallel, proacl
  from pg_proc where proname = 'pg_stat_statements_reset' or proname = 'pg_stat_statements_info'
  order by proname;
select relname, relkind, has_table_privilege('public', oid, 'select') as free
  from pg_class where relname like 'pg\_stat\_statements%' order by relname;
select pg_describe_object(classid, objid, 0) as member from pg_depend
  where refclassid = 'pg_extension'::regclass and deptype = 'e'
    and refobjid = (select oid from pg_extension where extname = 'pg_stat_statements')
  order by 1;
drop view pg_stat_statements_info;
drop function pg_stat_statements_reset;
select name, setting, context, vartype, min_val, max_val, enumvals, boot_val from pg_settings
  where name like 'pg\_stat\_statements.%' or name = 'compute_query_id' order by name;
set pg_stat_statements.max = 200;
set pg_stat_statements.save = off;
set pg_stat_statements.track = 'some';

-- Constants are left out.
create table items (id int primary key, name text, price numeric);
select pg_stat_statements_reset(0, (select oid from pg_database where datname = current_database()), 0);
insert into items values (1, 'a', 1.5), (2, 'b', 2.5);
insert into items values (3, 'c', 3.5), (4, null, -4);
select name from items where id = 1;
select name from items where id = 2;
SELECT  name /* the same */ FROM items
  WHERE id = 77;
select name from items where id = -1;
select name from items where name = 'it''s' || E'\n' or price in (1, 2.5) limit 3;
select true, null::int, 'x'::varchar(3), date '2020-01-01', interval '1 day', extract(year from date '2020-01-01');
select price + 1, count(*) from items group by price + 1 order by 1 limit 1;
select name, id from items order by 2 desc offset 1;
with given as (values (1), (2)) select 5, column1 from given where column1 = 2;
update items set price = price * 2 where id < 3;
delete from items where id = 4;
delete from items where id = 99;
merge into items using (values (1, 9.5)) as new (id, price) on items.id = new.id
  when matched then update set price = new.price when not matched then do nothing;
select query, calls, rows from mine order by query collate "C";

-- Utility statements have their texts; rows are those that were given or written.
select pg_stat_statements_reset(0, (select oid from pg_database where datname = current_database()), 0);
begin;
create table copied as select * from items;
select id into again from items;
declare c cursor for select id from items order by id;
fetch 2 from c;
move 1 from c;
close c;
commit;
begin;
rollback;
copy (select * from items order by id) to stdout;
copy copied from stdin;
5	e	5
\.
prepare p (int) as select name from items where id = $1 or price = 7;
execute p (1);
execute p (2);
deallocate p;
explain (costs off) select name from items where id = 5;
truncate copied;
drop table copied, again;
create materialized view shown as select name from items;
drop materialized view shown;
show work_mem;
set work_mem = '5MB';
reset work_mem;
do $$ begin perform 1 from items; end $$;
select query, calls, rows from mine order by query collate "C";
select pg_stat_statements_reset(0, (select oid from pg_database where datname = current_database()), 0);
set pg_stat_statements.track_utility = off;
begin;
select 1;
commit;
reset pg_stat_statements.track_utility;
select query, calls, rows from mine order by query collate "C";

-- Several statements of one message; what fails is not counted.
select pg_stat_statements_reset(0, (select oid from pg_database where datname = current_database()), 0);
select 1 \; select 'a' \; select 2.5 \;
select 1/0;
select no_such from items;
create table items ();
insert into items values (1, 'twice', 1);
begin;
select 1/0;
select 2;
rollback;
set statement_timeout = '50ms';
select pg_sleep(20);
reset statement_timeout;
select query, calls, rows from mine order by query collate "C";

-- Statements of routines.
create function names(lowest int) returns setof text language plpgsql as $$
begin
  insert into items (id) select lowest * max(id) + lowest from items;
  return query select name from items where id >= lowest order by id;
end $$;
create function made() returns bigint language sql volatile as $$
  delete from items where id > 3;
  select count(*) from items;
$$;
select pg_stat_statements_reset(0, (select oid from pg_database where datname = current_database()), 0);
set pg_stat_statements.track = 'all';
select count(*) from names(2);
select made();
do $$ begin perform name from items where id = 3; execute 'select ' || 5; commit; end $$;
set pg_stat_statements.track = 'none';
select 'not counted';
reset pg_stat_statements.track;
select toplevel, query, calls, rows from of_this_database
  where query not like '%\_reset(%' order by toplevel, query collate "C";

-- Planning is counted where that is asked for.
select pg_stat_statements_reset(0, (select oid from pg_database where datname = current_database()), 0);
set pg_stat_statements.track_planning = on;
select name from items where price = 1 and id = 1;
reset pg_stat_statements.track_planning;
select query, plans, calls, total_plan_time > 0 as planned, total_exec_time > 0 as ran,
    min_exec_time <= mean_exec_time and mean_exec_time <= max_exec_time as fits,
    stddev_exec_time, shared_blks_dirtied, wal_fpi, jit_functions
  from pg_stat_statements where query like 'select name from items where price%'
    and dbid = (select oid from pg_database where datname = current_database());

-- The id is that of the statement wherever it is shown.
select pg_stat_statements_reset(0, (select oid from pg_database where datname = current_database()), 0);
select name from items where id = 1;
select count(distinct queryid), min(calls) from pg_stat_statements
  where query = 'select name from items where id = $1'
    and dbid = (select oid from pg_database where datname = current_database());
create function explained(statement text) returns text language plpgsql as $$
declare plan json;
begin
  execute 'explain (verbose, costs off, format json) ' || statement into plan;
  return plan -> 0 ->> 'Query Identifier';
end $$;
select explained('select name from items where id = 3') = queryid::text as same
  from pg_stat_statements where query = 'select name from items where id = $1'
    and dbid = (select oid from pg_database where datname = current_database());
select query_id is not null as known from pg_stat_activity where pid = pg_backend_pid();
set compute_query_id = off;
select 'not counted either';
select query_id is not null as known from pg_stat_activity where pid = pg_backend_pid();
explain (verbose, costs off) select 1;
set compute_query_id = regress;
explain (verbose, costs off) select 1;
reset compute_query_id;
select count(*) from mine where query like '%either%';

-- Parts are forgotten.
create role stat_reader;
create role stat_monitor in role pg_read_all_stats;
grant select on of_this_database, mine, items to stat_reader, stat_monitor;
set role stat_reader;
select id from items where id = 1;
select pg_stat_statements_reset();
select query, calls, rows from mine order by query collate "C";
select distinct userid = 'stat_reader'::regrole as own, query = '<insufficient privilege>' as hidden,
  queryid is null as without_id
  from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())
  order by own;
select count(*) filter (where query is not null) as texts, count(*) > 0 as some from pg_stat_statements(false);
select count(*) from pg_stat_statements(null);
set role stat_monitor;
select count(*) filter (where query = '<insufficient privilege>') as hidden, count(*) > 3 as some from pg_stat_statements;
reset role;
select pg_stat_statements_reset('stat_reader'::regrole);
select count(*) from pg_stat_statements where userid = 'stat_reader'::regrole;
select id from items where id = 1;
select id from items where id = 2 and name is null;
select pg_stat_statements_reset(queryid => queryid) from pg_stat_statements
  where query = 'select id from items where id = $1';
select query, calls from mine where query like 'select id%' order by query collate "C";
select dealloc >= 0 as dealloc, stats_reset <= now() as since from pg_stat_statements_info;
select dealloc >= 0 as dealloc, stats_reset <= now() as since from pg_stat_statements_info();
grant execute on function pg_stat_statements_reset to stat_reader;
set role stat_reader;
select pg_stat_statements_reset(dbid => (select oid from pg_database where datname = current_database()));
reset role;
select query, calls from mine order by query collate "C";

-- Only superusers create it, and it takes its views along.
drop extension pg_stat_statements;
drop extension pg_stat_statements cascade;
select * from pg_stat_statements;
begin;
create extension pg_stat_statements;
select count(*) > 0 as counted from pg_stat_statements;
rollback;
select * from pg_stat_statements(true);
drop owned by stat_reader, stat_monitor;
drop role stat_reader, stat_monitor;
