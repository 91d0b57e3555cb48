-- names: svkeyed svplain svparent svcalled svsql svreader svseq
-- What the statistics views say of tables, indexes, functions and databases.
select c.relname, a.attname, a.atttypid::regtype from pg_attribute a join pg_class c on c.oid = a.attrelid
  where c.relnamespace = 'pg_catalog'::regnamespace and a.attnum > 0 and c.relname ~ '^pg_stat(io)?_' and
  c.relname !~ '^pg_statistic' order by c.relname, a.attnum;
create table svkeyed (id int primary key, v int, w text);
create index svkeyed_v on svkeyed (v);
create table svplain (v int);
insert into svkeyed select g, g, 'w' || g from generate_series(1, 100) g;
insert into svplain select g from generate_series(1, 20) g;
select count(*) from svplain;
select count(*) from svplain where v > 7;
update svplain set v = v + 1 where v <= 5;
delete from svplain where v > 15;
select pg_stat_force_next_flush();
select relname, seq_scan, seq_tup_read, idx_scan, idx_tup_fetch, n_tup_ins, n_tup_upd, n_tup_del, n_live_tup,
  n_mod_since_analyze, last_vacuum, last_autovacuum, last_analyze, last_autoanalyze, vacuum_count, analyze_count
  from pg_stat_user_tables where relname = 'svplain';
select schemaname, n_tup_ins from pg_stat_all_tables where relname = 'svkeyed';
select count(*) from pg_stat_sys_tables where relname in ('svkeyed', 'svplain');
-- By index.
set enable_seqscan = off;
set enable_bitmapscan = off;
select w from svkeyed where id = 7;
select w from svkeyed where id = 700;
select w from svkeyed where v between 10 and 19 order by v;
select pg_stat_force_next_flush();
select relname, indexrelname, idx_scan, idx_tup_read, idx_tup_fetch from pg_stat_user_indexes
  where relname = 'svkeyed' order by indexrelname;
select idx_scan, idx_tup_fetch from pg_stat_user_tables where relname = 'svkeyed';
reset enable_seqscan;
reset enable_bitmapscan;
-- A transaction sees what it does itself; what is rolled back was still done.
begin;
insert into svplain values (1), (2);
update svplain set v = 0 where v = 1;
select relname, n_tup_ins, n_tup_upd, n_tup_del from pg_stat_xact_user_tables where relname = 'svplain';
select pg_stat_get_xact_tuples_inserted('svplain'::regclass), pg_stat_get_tuples_inserted('svplain'::regclass);
rollback;
select pg_stat_force_next_flush();
select n_tup_ins, n_mod_since_analyze from pg_stat_user_tables where relname = 'svplain';
analyze svplain;
select last_analyze is not null, analyze_count, n_mod_since_analyze, autoanalyze_count from pg_stat_user_tables
  where relname = 'svplain';
-- The same for all of a transaction, unless it is said otherwise.
begin;
select n_tup_ins from pg_stat_user_tables where relname = 'svplain';
select pg_stat_clear_snapshot();
select n_tup_ins from pg_stat_user_tables where relname = 'svplain';
commit;
show stats_fetch_consistency;
set stats_fetch_consistency = always;
set stats_fetch_consistency = snapshot;
begin;
select pg_stat_get_snapshot_timestamp() is null;
select n_tup_ins from pg_stat_user_tables where relname = 'svplain';
select pg_stat_get_snapshot_timestamp() is null;
commit;
reset stats_fetch_consistency;
-- What is not counted.
set track_counts = off;
insert into svplain values (3);
set track_counts = on;
select pg_stat_force_next_flush();
select n_tup_ins from pg_stat_user_tables where relname = 'svplain';
-- Forgetting.
select pg_stat_reset_single_table_counters('svplain'::regclass);
select n_tup_ins, seq_scan, last_analyze, analyze_count from pg_stat_user_tables where relname = 'svplain';
select pg_stat_reset_shared('nothing');
select pg_stat_reset_shared(null);
select pg_stat_reset_slru('nothing');
select pg_stat_reset_replication_slot('nothing');
select pg_stat_reset_subscription_stats(0::oid);
select pg_stat_have_stats('nothing', 0, 0), pg_stat_have_stats('bgwriter', 0, 0);
select pg_stat_have_stats('wal', 0, 0);
-- Functions.
create function svcalled(a int) returns int language plpgsql as $$ begin return a + 1; end $$;
create function svsql(a int) returns setof int language sql stable as $$ select generate_series(1, a) $$;
select svcalled(1);
select count(*) from pg_stat_user_functions where funcname ~ '^sv';
set track_functions = 'all';
select svcalled(2), svcalled(3);
select pg_stat_force_next_flush();
begin;
select svcalled(4);
select funcname, calls, self_time <= total_time from pg_stat_xact_user_functions where funcname = 'svcalled';
commit;
select pg_stat_force_next_flush();
select schemaname, funcname, calls, total_time >= 0, self_time >= 0 from pg_stat_user_functions
  where funcname = 'svcalled';
select pg_stat_reset_single_function_counters('svcalled(integer)'::regprocedure);
select count(*) from pg_stat_user_functions where funcname = 'svcalled' and calls > 0;
set track_functions = 'some';
reset track_functions;
-- Of what is not there.
select pg_stat_get_numscans(0), pg_stat_get_live_tuples(0), pg_stat_get_last_analyze_time(0);
select pg_stat_get_db_xact_commit(0), pg_stat_get_db_numbackends(1);
select pg_stat_get_function_calls(0), pg_stat_get_backend_pid(null), pg_stat_get_numscans(null);
-- Databases.
select datid = 0 as shared, datname is null from pg_stat_database where datid = 0;
select numbackends > 0, xact_commit > 0, xact_rollback > 0, tup_inserted > 0, conflicts, deadlocks >= 0, sessions > 0,
  session_time > 0 from pg_stat_database where datname = current_database();
select confl_lock, confl_snapshot from pg_stat_database_conflicts where datname = current_database();
select count(*) from pg_stat_bgwriter;
select wal_records > 0, wal_bytes > 0 from pg_stat_wal;
select archived_count, last_archived_wal, failed_count from pg_stat_archiver;
select gss_authenticated, principal, encrypted from pg_stat_gssapi where pid = pg_backend_pid();
select count(*) from pg_stat_progress_vacuum;
select count(*) from pg_stat_progress_create_index;
create sequence svseq;
select relname from pg_statio_user_sequences where relname = 'svseq';
select relname, indexrelname from pg_statio_user_indexes where relname = 'svkeyed' order by 2;
-- Who may.
create role svreader;
set role svreader;
select pg_stat_reset();
select pg_stat_reset_single_table_counters(0);
select pg_stat_reset_shared('wal');
select pg_stat_have_stats('wal', 0, 0);
select n_tup_ins from pg_stat_user_tables where relname = 'svkeyed';
select count(*) from pg_stat_gssapi where pid = pg_backend_pid();
set track_counts = off;
reset role;
grant execute on function pg_stat_reset_single_table_counters(oid) to svreader;
set role svreader;
select pg_stat_reset_single_table_counters(0);
reset role;
revoke execute on function pg_stat_reset_single_table_counters(oid) from svreader;
drop role svreader;
-- Locks.
begin;
lock table svkeyed in share mode;
select locktype, relation::regclass, mode, granted, waitstart is null, pid = pg_backend_pid() from pg_locks
  where relation = 'svkeyed'::regclass order by mode;
select locktype, virtualxid = virtualtransaction, mode, granted, fastpath from pg_locks
  where locktype = 'virtualxid' and pid = pg_backend_pid();
commit;
-- Settings.
select name, vartype, context, unit, min_val, max_val, enumvals, boot_val from pg_settings
  where name ~ '^(track_(counts|functions)|stats_fetch|autovacuum(_naptime|_analyze.*)?$)' order by name;
-- Storage parameters.
create table svparent (a int) with (autovacuum_enabled = off, autovacuum_analyze_threshold = 10,
  autovacuum_analyze_scale_factor = 0.5);
select reloptions from pg_class where relname = 'svparent';
alter table svparent set (autovacuum_analyze_threshold = -1);
alter table svparent set (autovacuum_analyze_scale_factor = 101);
alter table svparent set (autovacuum_analyze_scale_factor = 'much');
alter table svparent set (autovacuum_enabled = 'perhaps');
alter table svparent set (autovacuum_nothing = 1);
alter table svparent set (autovacuum_vacuum_cost_limit = 0);
alter table svparent set (vacuum_index_cleanup = auto, log_autovacuum_min_duration = -1);
alter table svparent set (vacuum_index_cleanup = 7);
alter table svparent reset (autovacuum_enabled, vacuum_index_cleanup, log_autovacuum_min_duration);
select reloptions from pg_class where relname = 'svparent';
drop table svparent, svkeyed, svplain;
drop sequence svseq;
drop function svcalled, svsql;
