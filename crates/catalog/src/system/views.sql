-- The views of pg_catalog and information_schema: a line with the name, then the query. Columns
-- are matched by name; those that a query does not have are NULL.

-- pg_catalog.pg_roles
select r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin,
  r.rolreplication, r.rolconnlimit, '********'::text as rolpassword, r.rolvaliduntil,
  r.rolbypassrls, s.setconfig as rolconfig, r.oid
from pg_authid r left join pg_db_role_setting s on r.oid = s.setrole and s.setdatabase = 0

-- pg_catalog.pg_shadow
select r.rolname as usename, r.oid as usesysid, r.rolcreatedb as usecreatedb, r.rolsuper as usesuper,
  r.rolreplication as userepl, r.rolbypassrls as usebypassrls, r.rolpassword as passwd,
  r.rolvaliduntil as valuntil, s.setconfig as useconfig
from pg_authid r left join pg_db_role_setting s on r.oid = s.setrole and s.setdatabase = 0
where r.rolcanlogin

-- pg_catalog.pg_user
select usename, usesysid, usecreatedb, usesuper, userepl, usebypassrls, '********'::text as passwd,
  valuntil, useconfig
from pg_shadow

-- pg_catalog.pg_group
select r.rolname as groname, r.oid as grosysid,
  array(select m.member from pg_auth_members m where m.roleid = r.oid) as grolist
from pg_authid r where not r.rolcanlogin

-- pg_catalog.pg_tables
select n.nspname as schemaname, c.relname as tablename, pg_get_userbyid(c.relowner) as tableowner,
  c.relhasindex as hasindexes, c.relhasrules as hasrules, c.relhastriggers as hastriggers,
  c.relrowsecurity as rowsecurity
from pg_class c left join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p')

-- pg_catalog.pg_views
select n.nspname as schemaname, c.relname as viewname, pg_get_userbyid(c.relowner) as viewowner,
  pg_get_viewdef(c.oid) as definition
from pg_class c left join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'v'

-- pg_catalog.pg_matviews
select n.nspname as schemaname, c.relname as matviewname, pg_get_userbyid(c.relowner) as matviewowner,
  c.relhasindex as hasindexes, c.relispopulated as ispopulated, pg_get_viewdef(c.oid) as definition
from pg_class c left join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'm'

-- pg_catalog.pg_rules
select n.nspname as schemaname, c.relname as tablename, r.rulename as rulename,
  pg_get_ruledef(r.oid) as definition
from pg_rewrite r join pg_class c on c.oid = r.ev_class
  left join pg_namespace n on n.oid = c.relnamespace
where r.rulename <> '_RETURN'

-- pg_catalog.pg_policies
select n.nspname as schemaname, c.relname as tablename, p.polname as policyname,
  case when p.polpermissive then 'PERMISSIVE' else 'RESTRICTIVE' end as permissive,
  case when 0 = any (p.polroles) then array['public'::name]
    else array(select a.rolname from pg_authid a where a.oid = any (p.polroles) order by a.rolname)
    end as roles,
  case p.polcmd when 'r' then 'SELECT' when 'a' then 'INSERT' when 'w' then 'UPDATE'
    when 'd' then 'DELETE' else 'ALL' end as cmd,
  pg_get_expr(p.polqual, p.polrelid) as qual, pg_get_expr(p.polwithcheck, p.polrelid) as with_check
from pg_policy p join pg_class c on c.oid = p.polrelid
  left join pg_namespace n on n.oid = c.relnamespace

-- pg_catalog.pg_stats
select n.nspname as schemaname, c.relname as tablename, a.attname as attname, s.stainherit as inherited,
  s.stanullfrac as null_frac, s.stawidth as avg_width, s.stadistinct as n_distinct,
  case when s.stakind1 = 1 then s.stavalues1 when s.stakind2 = 1 then s.stavalues2 when s.stakind3 = 1 then
    s.stavalues3 when s.stakind4 = 1 then s.stavalues4 when s.stakind5 = 1 then s.stavalues5 end as
    most_common_vals,
  case when s.stakind1 = 1 then s.stanumbers1 when s.stakind2 = 1 then s.stanumbers2 when s.stakind3 = 1
    then s.stanumbers3 when s.stakind4 = 1 then s.stanumbers4 when s.stakind5 = 1 then s.stanumbers5 end as
    most_common_freqs,
  case when s.stakind1 = 2 then s.stavalues1 when s.stakind2 = 2 then s.stavalues2 when s.stakind3 = 2 then
    s.stavalues3 when s.stakind4 = 2 then s.stavalues4 when s.stakind5 = 2 then s.stavalues5 end as
    histogram_bounds,
  case when s.stakind1 = 3 then s.stanumbers1[1] when s.stakind2 = 3 then s.stanumbers2[1] when s.stakind3 =
    3 then s.stanumbers3[1] when s.stakind4 = 3 then s.stanumbers4[1] when s.stakind5 = 3 then
    s.stanumbers5[1] end as correlation,
  case when s.stakind1 = 4 then s.stavalues1 when s.stakind2 = 4 then s.stavalues2 when s.stakind3 = 4 then
    s.stavalues3 when s.stakind4 = 4 then s.stavalues4 when s.stakind5 = 4 then s.stavalues5 end as
    most_common_elems,
  case when s.stakind1 = 4 then s.stanumbers1 when s.stakind2 = 4 then s.stanumbers2 when s.stakind3 = 4
    then s.stanumbers3 when s.stakind4 = 4 then s.stanumbers4 when s.stakind5 = 4 then s.stanumbers5 end as
    most_common_elem_freqs,
  case when s.stakind1 = 5 then s.stanumbers1 when s.stakind2 = 5 then s.stanumbers2 when s.stakind3 = 5
    then s.stanumbers3 when s.stakind4 = 5 then s.stanumbers4 when s.stakind5 = 5 then s.stanumbers5 end as
    elem_count_histogram
from pg_statistic s join pg_class c on c.oid = s.starelid
  join pg_attribute a on c.oid = a.attrelid and a.attnum = s.staattnum
  left join pg_namespace n on n.oid = c.relnamespace
where not a.attisdropped and has_column_privilege(c.oid, a.attnum, 'select')
  and (c.relrowsecurity = false or not row_security_active(c.oid))

-- pg_catalog.pg_stats_ext
select cn.nspname as schemaname, c.relname as tablename, sn.nspname as statistics_schemaname,
  s.stxname as statistics_name, pg_get_userbyid(s.stxowner) as statistics_owner,
  (select array_agg(a.attname order by a.attnum) from pg_attribute a
    where a.attrelid = s.stxrelid and a.attnum = any (s.stxkeys)) as attnames,
  pg_get_statisticsobjdef_expressions(s.oid) as exprs, s.stxkind as kinds, sd.stxdinherit as inherited,
  sd.stxdndistinct as n_distinct, sd.stxddependencies as dependencies, m.most_common_vals,
  m.most_common_val_nulls, m.most_common_freqs, m.most_common_base_freqs
from pg_statistic_ext s join pg_class c on c.oid = s.stxrelid
  join pg_statistic_ext_data sd on s.oid = sd.stxoid
  left join pg_namespace cn on cn.oid = c.relnamespace
  left join pg_namespace sn on sn.oid = s.stxnamespace
  left join lateral (select array_agg(i.values) as most_common_vals, array_agg(i.nulls) as
    most_common_val_nulls, array_agg(i.frequency) as most_common_freqs,
    array_agg(i.base_frequency) as most_common_base_freqs
    from pg_mcv_list_items(sd.stxdmcv) i) m on sd.stxdmcv is not null
where pg_has_role(c.relowner, 'USAGE') and (c.relrowsecurity = false or not row_security_active(c.oid))

-- pg_catalog.pg_stats_ext_exprs
select cn.nspname as schemaname, c.relname as tablename, sn.nspname as statistics_schemaname,
  s.stxname as statistics_name, pg_get_userbyid(s.stxowner) as statistics_owner, stat.expr,
  sd.stxdinherit as inherited, (stat.a).stanullfrac as null_frac, (stat.a).stawidth as avg_width,
  (stat.a).stadistinct as n_distinct,
  case when (stat.a).stakind1 = 1 then (stat.a).stavalues1 when (stat.a).stakind2 = 1 then (stat.a).stavalues2
    when (stat.a).stakind3 = 1 then (stat.a).stavalues3 when (stat.a).stakind4 = 1 then (stat.a).stavalues4
    when (stat.a).stakind5 = 1 then (stat.a).stavalues5 end as most_common_vals,
  case when (stat.a).stakind1 = 1 then (stat.a).stanumbers1 when (stat.a).stakind2 = 1 then
    (stat.a).stanumbers2 when (stat.a).stakind3 = 1 then (stat.a).stanumbers3 when (stat.a).stakind4 = 1
    then (stat.a).stanumbers4 when (stat.a).stakind5 = 1 then (stat.a).stanumbers5 end as most_common_freqs,
  case when (stat.a).stakind1 = 2 then (stat.a).stavalues1 when (stat.a).stakind2 = 2 then (stat.a).stavalues2
    when (stat.a).stakind3 = 2 then (stat.a).stavalues3 when (stat.a).stakind4 = 2 then (stat.a).stavalues4
    when (stat.a).stakind5 = 2 then (stat.a).stavalues5 end as histogram_bounds,
  case when (stat.a).stakind1 = 3 then (stat.a).stanumbers1[1] when (stat.a).stakind2 = 3 then
    (stat.a).stanumbers2[1] when (stat.a).stakind3 = 3 then (stat.a).stanumbers3[1] when (stat.a).stakind4 =
    3 then (stat.a).stanumbers4[1] when (stat.a).stakind5 = 3 then (stat.a).stanumbers5[1] end as
    correlation,
  case when (stat.a).stakind1 = 4 then (stat.a).stavalues1 when (stat.a).stakind2 = 4 then (stat.a).stavalues2
    when (stat.a).stakind3 = 4 then (stat.a).stavalues3 when (stat.a).stakind4 = 4 then (stat.a).stavalues4
    when (stat.a).stakind5 = 4 then (stat.a).stavalues5 end as most_common_elems,
  case when (stat.a).stakind1 = 4 then (stat.a).stanumbers1 when (stat.a).stakind2 = 4 then
    (stat.a).stanumbers2 when (stat.a).stakind3 = 4 then (stat.a).stanumbers3 when (stat.a).stakind4 = 4
    then (stat.a).stanumbers4 when (stat.a).stakind5 = 4 then (stat.a).stanumbers5 end as
    most_common_elem_freqs,
  case when (stat.a).stakind1 = 5 then (stat.a).stanumbers1 when (stat.a).stakind2 = 5 then
    (stat.a).stanumbers2 when (stat.a).stakind3 = 5 then (stat.a).stanumbers3 when (stat.a).stakind4 = 5
    then (stat.a).stanumbers4 when (stat.a).stakind5 = 5 then (stat.a).stanumbers5 end as
    elem_count_histogram
from pg_statistic_ext s join pg_class c on c.oid = s.stxrelid
  left join pg_statistic_ext_data sd on s.oid = sd.stxoid
  left join pg_namespace cn on cn.oid = c.relnamespace
  left join pg_namespace sn on sn.oid = s.stxnamespace
  join lateral (select unnest(pg_get_statisticsobjdef_expressions(s.oid)) as expr,
    unnest(sd.stxdexpr) as a) stat on stat.expr is not null
where pg_has_role(c.relowner, 'USAGE') and (c.relrowsecurity = false or not row_security_active(c.oid))

-- pg_catalog.pg_indexes
select n.nspname as schemaname, c.relname as tablename, i.relname as indexname,
  pg_get_indexdef(i.oid) as indexdef
from pg_index x join pg_class c on c.oid = x.indrelid join pg_class i on i.oid = x.indexrelid
  left join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'm', 'p')

-- pg_catalog.pg_sequences
select n.nspname as schemaname, c.relname as sequencename, pg_get_userbyid(c.relowner) as sequenceowner,
  s.seqtypid as data_type, s.seqstart as start_value, s.seqmin as min_value, s.seqmax as max_value,
  s.seqincrement as increment_by, s.seqcycle as cycle, s.seqcache as cache_size,
  case when has_sequence_privilege(c.oid, 'SELECT,USAGE') then pg_sequence_last_value(c.oid) end
    as last_value
from pg_sequence s join pg_class c on c.oid = s.seqrelid
  left join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'S'

-- pg_catalog.pg_timezone_abbrevs
select abbrev, utc_offset, is_dst from pg_timezone_abbrevs()

-- pg_catalog.pg_timezone_names
select name, abbrev, utc_offset, is_dst from pg_timezone_names()

-- pg_catalog.pg_available_extensions
select a.name, a.default_version, e.extversion as installed_version, a.comment
from pg_available_extensions() a left join pg_extension e on e.extname = a.name

-- pg_catalog.pg_available_extension_versions
select a.name, a.version, e.extname is not null as installed, a.superuser, a.trusted, a.relocatable,
  a.schema, a.requires, a.comment
from pg_available_extension_versions() a
  left join pg_extension e on e.extname = a.name and e.extversion = a.version

-- pg_catalog.pg_stat_all_tables
select c.oid as relid, n.nspname as schemaname, c.relname, pg_stat_get_numscans(c.oid) as seq_scan,
  pg_stat_get_tuples_returned(c.oid) as seq_tup_read,
  sum(pg_stat_get_numscans(i.indexrelid))::bigint as idx_scan,
  sum(pg_stat_get_tuples_fetched(i.indexrelid))::bigint + pg_stat_get_tuples_fetched(c.oid) as idx_tup_fetch,
  pg_stat_get_tuples_inserted(c.oid) as n_tup_ins, pg_stat_get_tuples_updated(c.oid) as n_tup_upd,
  pg_stat_get_tuples_deleted(c.oid) as n_tup_del, pg_stat_get_tuples_hot_updated(c.oid) as n_tup_hot_upd,
  pg_stat_get_live_tuples(c.oid) as n_live_tup, pg_stat_get_dead_tuples(c.oid) as n_dead_tup,
  pg_stat_get_mod_since_analyze(c.oid) as n_mod_since_analyze,
  pg_stat_get_ins_since_vacuum(c.oid) as n_ins_since_vacuum,
  pg_stat_get_last_vacuum_time(c.oid) as last_vacuum,
  pg_stat_get_last_autovacuum_time(c.oid) as last_autovacuum,
  pg_stat_get_last_analyze_time(c.oid) as last_analyze,
  pg_stat_get_last_autoanalyze_time(c.oid) as last_autoanalyze,
  pg_stat_get_vacuum_count(c.oid) as vacuum_count, pg_stat_get_autovacuum_count(c.oid) as autovacuum_count,
  pg_stat_get_analyze_count(c.oid) as analyze_count,
  pg_stat_get_autoanalyze_count(c.oid) as autoanalyze_count
from pg_class c left join pg_index i on c.oid = i.indrelid
  left join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 't', 'm', 'p')
group by c.oid, n.nspname, c.relname

-- pg_catalog.pg_stat_sys_tables
select * from pg_stat_all_tables
where schemaname in ('pg_catalog', 'information_schema') or schemaname ~ '^pg_toast'

-- pg_catalog.pg_stat_user_tables
select * from pg_stat_all_tables
where schemaname not in ('pg_catalog', 'information_schema') and schemaname !~ '^pg_toast'

-- pg_catalog.pg_stat_xact_all_tables
select c.oid as relid, n.nspname as schemaname, c.relname, pg_stat_get_xact_numscans(c.oid) as seq_scan,
  pg_stat_get_xact_tuples_returned(c.oid) as seq_tup_read,
  sum(pg_stat_get_xact_numscans(i.indexrelid))::bigint as idx_scan,
  sum(pg_stat_get_xact_tuples_fetched(i.indexrelid))::bigint + pg_stat_get_xact_tuples_fetched(c.oid) as idx_tup_fetch,
  pg_stat_get_xact_tuples_inserted(c.oid) as n_tup_ins, pg_stat_get_xact_tuples_updated(c.oid) as n_tup_upd,
  pg_stat_get_xact_tuples_deleted(c.oid) as n_tup_del, pg_stat_get_xact_tuples_hot_updated(c.oid) as n_tup_hot_upd
from pg_class c left join pg_index i on c.oid = i.indrelid
  left join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 't', 'm', 'p')
group by c.oid, n.nspname, c.relname

-- pg_catalog.pg_stat_xact_sys_tables
select * from pg_stat_xact_all_tables
where schemaname in ('pg_catalog', 'information_schema') or schemaname ~ '^pg_toast'

-- pg_catalog.pg_stat_xact_user_tables
select * from pg_stat_xact_all_tables
where schemaname not in ('pg_catalog', 'information_schema') and schemaname !~ '^pg_toast'

-- pg_catalog.pg_stat_all_indexes
select c.oid as relid, i.oid as indexrelid, n.nspname as schemaname, c.relname,
  i.relname as indexrelname, pg_stat_get_numscans(i.oid) as idx_scan,
  pg_stat_get_tuples_returned(i.oid) as idx_tup_read, pg_stat_get_tuples_fetched(i.oid) as idx_tup_fetch
from pg_class c join pg_index x on c.oid = x.indrelid join pg_class i on i.oid = x.indexrelid
  left join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 't', 'm')

-- pg_catalog.pg_stat_sys_indexes
select * from pg_stat_all_indexes
where schemaname in ('pg_catalog', 'information_schema') or schemaname ~ '^pg_toast'

-- pg_catalog.pg_stat_user_indexes
select * from pg_stat_all_indexes
where schemaname not in ('pg_catalog', 'information_schema') and schemaname !~ '^pg_toast'

-- pg_catalog.pg_statio_all_tables
select c.oid as relid, n.nspname as schemaname, c.relname,
  pg_stat_get_blocks_fetched(c.oid) - pg_stat_get_blocks_hit(c.oid) as heap_blks_read,
  pg_stat_get_blocks_hit(c.oid) as heap_blks_hit,
  sum(pg_stat_get_blocks_fetched(i.indexrelid) - pg_stat_get_blocks_hit(i.indexrelid))::bigint as idx_blks_read,
  sum(pg_stat_get_blocks_hit(i.indexrelid))::bigint as idx_blks_hit
from pg_class c left join pg_index i on c.oid = i.indrelid
  left join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 't', 'm')
group by c.oid, n.nspname, c.relname

-- pg_catalog.pg_statio_sys_tables
select * from pg_statio_all_tables
where schemaname in ('pg_catalog', 'information_schema') or schemaname ~ '^pg_toast'

-- pg_catalog.pg_statio_user_tables
select * from pg_statio_all_tables
where schemaname not in ('pg_catalog', 'information_schema') and schemaname !~ '^pg_toast'

-- pg_catalog.pg_statio_all_indexes
select c.oid as relid, i.oid as indexrelid, n.nspname as schemaname, c.relname,
  i.relname as indexrelname, pg_stat_get_blocks_fetched(i.oid) - pg_stat_get_blocks_hit(i.oid) as idx_blks_read,
  pg_stat_get_blocks_hit(i.oid) as idx_blks_hit
from pg_class c join pg_index x on c.oid = x.indrelid join pg_class i on i.oid = x.indexrelid
  left join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 't', 'm')

-- pg_catalog.pg_statio_sys_indexes
select * from pg_statio_all_indexes
where schemaname in ('pg_catalog', 'information_schema') or schemaname ~ '^pg_toast'

-- pg_catalog.pg_statio_user_indexes
select * from pg_statio_all_indexes
where schemaname not in ('pg_catalog', 'information_schema') and schemaname !~ '^pg_toast'

-- pg_catalog.pg_statio_all_sequences
select c.oid as relid, n.nspname as schemaname, c.relname,
  pg_stat_get_blocks_fetched(c.oid) - pg_stat_get_blocks_hit(c.oid) as blks_read, pg_stat_get_blocks_hit(c.oid) as blks_hit
from pg_class c left join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'S'

-- pg_catalog.pg_statio_sys_sequences
select * from pg_statio_all_sequences
where schemaname in ('pg_catalog', 'information_schema') or schemaname ~ '^pg_toast'

-- pg_catalog.pg_statio_user_sequences
select * from pg_statio_all_sequences
where schemaname not in ('pg_catalog', 'information_schema') and schemaname !~ '^pg_toast'

-- pg_catalog.pg_stat_user_functions
select p.oid as funcid, n.nspname as schemaname, p.proname as funcname,
  pg_stat_get_function_calls(p.oid) as calls,
  pg_stat_get_function_total_time(p.oid) as total_time,
  pg_stat_get_function_self_time(p.oid) as self_time
from pg_proc p left join pg_namespace n on n.oid = p.pronamespace
where p.prolang <> 12 and pg_stat_get_function_calls(p.oid) is not null

-- pg_catalog.pg_stat_xact_user_functions
select p.oid as funcid, n.nspname as schemaname, p.proname as funcname,
  pg_stat_get_xact_function_calls(p.oid) as calls,
  pg_stat_get_xact_function_total_time(p.oid) as total_time,
  pg_stat_get_xact_function_self_time(p.oid) as self_time
from pg_proc p left join pg_namespace n on n.oid = p.pronamespace
where p.prolang <> 12 and pg_stat_get_xact_function_calls(p.oid) is not null

-- pg_catalog.pg_stat_database
select d.oid as datid, d.datname,
  case when d.oid = 0 then 0 else pg_stat_get_db_numbackends(d.oid) end as numbackends,
  pg_stat_get_db_xact_commit(d.oid) as xact_commit,
  pg_stat_get_db_xact_rollback(d.oid) as xact_rollback,
  pg_stat_get_db_blocks_fetched(d.oid) - pg_stat_get_db_blocks_hit(d.oid) as blks_read,
  pg_stat_get_db_blocks_hit(d.oid) as blks_hit,
  pg_stat_get_db_tuples_returned(d.oid) as tup_returned,
  pg_stat_get_db_tuples_fetched(d.oid) as tup_fetched,
  pg_stat_get_db_tuples_inserted(d.oid) as tup_inserted,
  pg_stat_get_db_tuples_updated(d.oid) as tup_updated,
  pg_stat_get_db_tuples_deleted(d.oid) as tup_deleted,
  pg_stat_get_db_conflict_all(d.oid) as conflicts,
  pg_stat_get_db_temp_files(d.oid) as temp_files,
  pg_stat_get_db_temp_bytes(d.oid) as temp_bytes,
  pg_stat_get_db_deadlocks(d.oid) as deadlocks,
  pg_stat_get_db_checksum_failures(d.oid) as checksum_failures,
  pg_stat_get_db_checksum_last_failure(d.oid) as checksum_last_failure,
  pg_stat_get_db_blk_read_time(d.oid) as blk_read_time,
  pg_stat_get_db_blk_write_time(d.oid) as blk_write_time,
  pg_stat_get_db_session_time(d.oid) as session_time,
  pg_stat_get_db_active_time(d.oid) as active_time,
  pg_stat_get_db_idle_in_transaction_time(d.oid) as idle_in_transaction_time,
  pg_stat_get_db_sessions(d.oid) as sessions,
  pg_stat_get_db_sessions_abandoned(d.oid) as sessions_abandoned,
  pg_stat_get_db_sessions_fatal(d.oid) as sessions_fatal,
  pg_stat_get_db_sessions_killed(d.oid) as sessions_killed,
  pg_stat_get_db_stat_reset_time(d.oid) as stats_reset
from (select 0::oid as oid, null::name as datname union all select oid, datname from pg_database) d

-- pg_catalog.pg_stat_database_conflicts
select oid as datid, datname,
  pg_stat_get_db_conflict_tablespace(oid) as confl_tablespace,
  pg_stat_get_db_conflict_lock(oid) as confl_lock,
  pg_stat_get_db_conflict_snapshot(oid) as confl_snapshot,
  pg_stat_get_db_conflict_bufferpin(oid) as confl_bufferpin,
  pg_stat_get_db_conflict_startup_deadlock(oid) as confl_deadlock
from pg_database

-- pg_catalog.pg_stat_bgwriter
select pg_stat_get_bgwriter_timed_checkpoints() as checkpoints_timed,
  pg_stat_get_bgwriter_requested_checkpoints() as checkpoints_req,
  pg_stat_get_checkpoint_write_time() as checkpoint_write_time,
  pg_stat_get_checkpoint_sync_time() as checkpoint_sync_time,
  pg_stat_get_bgwriter_buf_written_checkpoints() as buffers_checkpoint,
  pg_stat_get_bgwriter_buf_written_clean() as buffers_clean,
  pg_stat_get_bgwriter_maxwritten_clean() as maxwritten_clean,
  pg_stat_get_buf_written_backend() as buffers_backend,
  pg_stat_get_buf_fsync_backend() as buffers_backend_fsync, pg_stat_get_buf_alloc() as buffers_alloc,
  pg_stat_get_bgwriter_stat_reset_time() as stats_reset

-- information_schema.information_schema_catalog_name
select current_database() as catalog_name

-- information_schema.schemata
select current_database() as catalog_name, n.nspname as schema_name, u.rolname as schema_owner
from pg_namespace n join pg_authid u on u.oid = n.nspowner
where pg_has_role(n.nspowner, 'USAGE') or has_schema_privilege(n.oid, 'CREATE, USAGE')

-- information_schema.enabled_roles
select rolname as role_name from pg_authid where pg_has_role(oid, 'USAGE')

-- information_schema.applicable_roles
select m.rolname as grantee, r.rolname as role_name,
  case when a.admin_option then 'YES' else 'NO' end as is_grantable
from (
    select member, roleid, admin_option from pg_auth_members
    union
    select d.datdba, o.oid, false from pg_database d, pg_authid o
    where d.datname = current_database() and o.rolname = 'pg_database_owner') a
  join pg_authid m on m.oid = a.member join pg_authid r on r.oid = a.roleid
where pg_has_role(a.member, 'USAGE')

-- information_schema.administrable_role_authorizations
select grantee, role_name, is_grantable from information_schema.applicable_roles
where is_grantable = 'YES'

-- information_schema.tables
select current_database() as table_catalog, n.nspname as table_schema, c.relname as table_name,
  case c.relkind when 'v' then 'VIEW' when 'f' then 'FOREIGN' else 'BASE TABLE' end as table_type,
  case when c.relkind in ('r', 'p') or pg_relation_is_updatable(c.oid, false) & 8 = 8
    then 'YES' else 'NO' end as is_insertable_into,
  case when t.oid is not null then current_database() end as user_defined_type_catalog,
  nt.nspname as user_defined_type_schema, t.typname as user_defined_type_name,
  case when t.oid is not null then 'YES' else 'NO' end as is_typed
from pg_class c join pg_namespace n on n.oid = c.relnamespace
  left join pg_type t on t.oid = c.reloftype left join pg_namespace nt on nt.oid = t.typnamespace
where c.relkind in ('r', 'v', 'f', 'p')
  and (pg_has_role(c.relowner, 'USAGE')
    or has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
    or has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))

-- information_schema.columns
select current_database() as table_catalog, n.nspname as table_schema, c.relname as table_name,
  a.attname as column_name, a.attnum::int4 as ordinal_position,
  case when a.attgenerated = '' then pg_get_expr(d.adbin, d.adrelid) end as column_default,
  case when a.attnotnull or t.typtype = 'd' and t.typnotnull then 'NO' else 'YES' end as is_nullable,
  case when coalesce(bt.typelem, t.typelem) <> 0 and coalesce(bt.typlen, t.typlen) = -1 then 'ARRAY'
    when coalesce(nbt.nspname, nt.nspname) <> 'pg_catalog' then 'USER-DEFINED'
    else format_type(coalesce(bt.oid, t.oid), null) end as data_type,
  case when coalesce(bt.oid, t.oid) in (1042, 1043) and case when bt.oid is null then a.atttypmod else t.typtypmod end <> -1 then case when bt.oid is null then a.atttypmod else t.typtypmod end - 4 end
    as character_maximum_length,
  case when coalesce(bt.oid, t.oid) in (25, 1042, 1043) then
    case when case when bt.oid is null then a.atttypmod else t.typtypmod end = -1 then 1073741824 else (case when bt.oid is null then a.atttypmod else t.typtypmod end - 4) * 4 end end
    as character_octet_length,
  case coalesce(bt.oid, t.oid) when 21 then 16 when 23 then 32 when 20 then 64 when 700 then 24 when 701 then 53
    when 1700 then case when case when bt.oid is null then a.atttypmod else t.typtypmod end <> -1 then ((case when bt.oid is null then a.atttypmod else t.typtypmod end - 4) >> 16) & 65535 end end
    as numeric_precision,
  case when coalesce(bt.oid, t.oid) in (20, 21, 23, 700, 701) then 2 when coalesce(bt.oid, t.oid) = 1700 then 10 end
    as numeric_precision_radix,
  case when coalesce(bt.oid, t.oid) in (20, 21, 23) then 0
    when coalesce(bt.oid, t.oid) = 1700 and case when bt.oid is null then a.atttypmod else t.typtypmod end <> -1 then (case when bt.oid is null then a.atttypmod else t.typtypmod end - 4) & 65535 end
    as numeric_scale,
  case when coalesce(bt.oid, t.oid) = 1082 then 0
    when coalesce(bt.oid, t.oid) in (1083, 1114, 1184, 1266) then
      case when case when bt.oid is null then a.atttypmod else t.typtypmod end < 0 then 6 else case when bt.oid is null then a.atttypmod else t.typtypmod end end
    when coalesce(bt.oid, t.oid) = 1186 then
      case when case when bt.oid is null then a.atttypmod else t.typtypmod end < 0 or case when bt.oid is null then a.atttypmod else t.typtypmod end & 65535 = 65535 then 6 else case when bt.oid is null then a.atttypmod else t.typtypmod end & 65535 end
    end as datetime_precision,
  case when co.collname is not null and co.collname <> 'default' then current_database() end
    as collation_catalog,
  case when co.collname is not null and co.collname <> 'default' then 'pg_catalog' end
    as collation_schema,
  case when co.collname <> 'default' then co.collname end as collation_name,
  case when t.typtype = 'd' then current_database() end as domain_catalog,
  case when t.typtype = 'd' then nt.nspname end as domain_schema,
  case when t.typtype = 'd' then t.typname end as domain_name,
  current_database() as udt_catalog, coalesce(nbt.nspname, nt.nspname) as udt_schema,
  coalesce(bt.typname, t.typname) as udt_name,
  a.attnum::text as dtd_identifier, 'NO' as is_self_referencing,
  case when a.attidentity in ('a', 'd') then 'YES' else 'NO' end as is_identity,
  case a.attidentity when 'a' then 'ALWAYS' when 'd' then 'BY DEFAULT' end as identity_generation,
  case when a.attidentity in ('a', 'd') then seq.seqstart end as identity_start,
  case when a.attidentity in ('a', 'd') then seq.seqincrement end as identity_increment,
  case when a.attidentity in ('a', 'd') then seq.seqmax end as identity_maximum,
  case when a.attidentity in ('a', 'd') then seq.seqmin end as identity_minimum,
  case when a.attidentity in ('a', 'd') and seq.seqcycle then 'YES' else 'NO' end as identity_cycle,
  case when a.attgenerated <> '' then 'ALWAYS' else 'NEVER' end as is_generated,
  case when a.attgenerated <> '' then pg_get_expr(d.adbin, d.adrelid) end as generation_expression,
  case when c.relkind in ('r', 'p') or pg_column_is_updatable(c.oid, a.attnum, false)
    then 'YES' else 'NO' end as is_updatable
from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
  join pg_type t on t.oid = a.atttypid join pg_namespace nt on nt.oid = t.typnamespace
  left join pg_type bt on t.typtype = 'd' and bt.oid = t.typbasetype
  left join pg_namespace nbt on nbt.oid = bt.typnamespace
  left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  left join pg_collation co on co.oid = a.attcollation
  left join pg_depend dep on dep.refobjid = c.oid and dep.refobjsubid = a.attnum::int4
    and dep.deptype = 'i' and dep.classid = 1259 and a.attidentity <> ''
  left join pg_sequence seq on seq.seqrelid = dep.objid
where a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'v', 'f', 'p')
  and (pg_has_role(c.relowner, 'USAGE')
    or has_column_privilege(c.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES'))

-- information_schema.table_constraints
select current_database() as constraint_catalog, nc.nspname as constraint_schema,
  c.conname as constraint_name, current_database() as table_catalog, nr.nspname as table_schema,
  r.relname as table_name,
  case c.contype when 'c' then 'CHECK' when 'f' then 'FOREIGN KEY' when 'p' then 'PRIMARY KEY'
    when 'u' then 'UNIQUE' end as constraint_type,
  case when c.condeferrable then 'YES' else 'NO' end as is_deferrable,
  case when c.condeferred then 'YES' else 'NO' end as initially_deferred,
  'YES' as enforced, case when c.contype = 'u' then 'YES' end as nulls_distinct
from pg_constraint c join pg_class r on r.oid = c.conrelid join pg_namespace nc on nc.oid = c.connamespace
  join pg_namespace nr on nr.oid = r.relnamespace
where c.contype in ('c', 'f', 'p', 'u') and r.relkind in ('r', 'p')
  and (pg_has_role(r.relowner, 'USAGE')
    or has_table_privilege(r.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER'))
union all
select current_database(), nr.nspname,
  nr.oid::text || '_' || r.oid::text || '_' || a.attnum::text || '_not_null',
  current_database(), nr.nspname, r.relname, 'CHECK', 'NO', 'NO', 'YES', null
from pg_attribute a join pg_class r on r.oid = a.attrelid join pg_namespace nr on nr.oid = r.relnamespace
where a.attnotnull and a.attnum > 0 and not a.attisdropped and r.relkind in ('r', 'p')
  and (pg_has_role(r.relowner, 'USAGE')
    or has_table_privilege(r.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER'))

-- information_schema.check_constraints
select current_database() as constraint_catalog, n.nspname as constraint_schema,
  c.conname as constraint_name,
  substring(pg_get_constraintdef(c.oid) from 7) as check_clause
from pg_constraint c join pg_namespace n on n.oid = c.connamespace
  join pg_class r on r.oid = c.conrelid
where c.contype = 'c' and pg_has_role(r.relowner, 'USAGE')
union all
select current_database(), n.nspname, c.conname, substring(pg_get_constraintdef(c.oid) from 7)
from pg_constraint c join pg_namespace n on n.oid = c.connamespace join pg_type t on t.oid = c.contypid
where c.contype = 'c' and pg_has_role(t.typowner, 'USAGE')
union all
select current_database(), n.nspname,
  n.oid::text || '_' || r.oid::text || '_' || a.attnum::text || '_not_null',
  a.attname || ' IS NOT NULL'
from pg_attribute a join pg_class r on r.oid = a.attrelid join pg_namespace n on n.oid = r.relnamespace
where a.attnotnull and a.attnum > 0 and not a.attisdropped and r.relkind in ('r', 'p')
  and pg_has_role(r.relowner, 'USAGE')

-- information_schema.key_column_usage
select current_database() as constraint_catalog, nc.nspname as constraint_schema,
  c.conname as constraint_name, current_database() as table_catalog, nr.nspname as table_schema,
  r.relname as table_name, a.attname as column_name, k.n as ordinal_position,
  case when c.contype = 'f' then
    (select p.m from pg_index i, generate_series(1, i.indnkeyatts::int4) as p(m)
     where i.indexrelid = c.conindid and i.indkey[p.m - 1] = c.confkey[k.n]) end
    as position_in_unique_constraint
from pg_constraint c, generate_series(1, array_length(c.conkey, 1)) as k(n), pg_class r,
  pg_namespace nc, pg_namespace nr, pg_attribute a
where c.contype in ('p', 'u', 'f') and r.oid = c.conrelid and nc.oid = c.connamespace
  and nr.oid = r.relnamespace and a.attrelid = r.oid and a.attnum = c.conkey[k.n]
  and not a.attisdropped and r.relkind in ('r', 'p')
  and (pg_has_role(r.relowner, 'USAGE')
    or has_column_privilege(r.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES'))

-- information_schema.referential_constraints
select current_database() as constraint_catalog, n.nspname as constraint_schema,
  c.conname as constraint_name, current_database() as unique_constraint_catalog,
  nu.nspname as unique_constraint_schema, u.conname as unique_constraint_name,
  case c.confmatchtype when 'f' then 'FULL' when 'p' then 'PARTIAL' when 's' then 'NONE' end
    as match_option,
  case c.confupdtype when 'c' then 'CASCADE' when 'n' then 'SET NULL' when 'd' then 'SET DEFAULT'
    when 'r' then 'RESTRICT' when 'a' then 'NO ACTION' end as update_rule,
  case c.confdeltype when 'c' then 'CASCADE' when 'n' then 'SET NULL' when 'd' then 'SET DEFAULT'
    when 'r' then 'RESTRICT' when 'a' then 'NO ACTION' end as delete_rule
from pg_constraint c join pg_namespace n on n.oid = c.connamespace join pg_class r on r.oid = c.conrelid
  left join pg_constraint u on u.conindid = c.conindid and u.contype in ('p', 'u')
  left join pg_namespace nu on nu.oid = u.connamespace
where c.contype = 'f'
  and (pg_has_role(r.relowner, 'USAGE')
    or has_table_privilege(r.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER'))

-- information_schema.constraint_column_usage
select current_database() as table_catalog, nr.nspname as table_schema, r.relname as table_name,
  a.attname as column_name, current_database() as constraint_catalog,
  nc.nspname as constraint_schema, c.conname as constraint_name
from pg_constraint c,
  generate_series(1, array_length(case c.contype when 'f' then c.confkey else c.conkey end, 1)) as k(n),
  pg_class r, pg_namespace nr, pg_namespace nc, pg_attribute a
where c.contype in ('p', 'u', 'f', 'c') and nc.oid = c.connamespace
  and r.oid = case c.contype when 'f' then c.confrelid else c.conrelid end
  and nr.oid = r.relnamespace and a.attrelid = r.oid
  and a.attnum = case c.contype when 'f' then c.confkey[k.n] else c.conkey[k.n] end
  and not a.attisdropped and r.relkind in ('r', 'p') and pg_has_role(r.relowner, 'USAGE')

-- information_schema.constraint_table_usage
select current_database() as table_catalog, nr.nspname as table_schema, r.relname as table_name,
  current_database() as constraint_catalog, nc.nspname as constraint_schema,
  c.conname as constraint_name
from pg_constraint c join pg_namespace nc on nc.oid = c.connamespace
  join pg_class r on r.oid = case c.contype when 'f' then c.confrelid else c.conrelid end
  join pg_namespace nr on nr.oid = r.relnamespace
where c.contype in ('p', 'u', 'f') and r.relkind in ('r', 'p') and pg_has_role(r.relowner, 'USAGE')

-- information_schema.views
select current_database() as table_catalog, n.nspname as table_schema, c.relname as table_name,
  case when pg_has_role(c.relowner, 'USAGE') then pg_get_viewdef(c.oid) end as view_definition,
  case when 'check_option=cascaded' = any (c.reloptions) then 'CASCADED'
    when 'check_option=local' = any (c.reloptions) then 'LOCAL' else 'NONE' end as check_option,
  case when pg_relation_is_updatable(c.oid, false) & 20 = 20 then 'YES' else 'NO' end as is_updatable,
  case when pg_relation_is_updatable(c.oid, false) & 8 = 8 then 'YES' else 'NO' end
    as is_insertable_into,
  case when exists (select from pg_trigger t where t.tgrelid = c.oid and t.tgtype & 81 = 81)
    then 'YES' else 'NO' end as is_trigger_updatable,
  case when exists (select from pg_trigger t where t.tgrelid = c.oid and t.tgtype & 73 = 73)
    then 'YES' else 'NO' end as is_trigger_deletable,
  case when exists (select from pg_trigger t where t.tgrelid = c.oid and t.tgtype & 69 = 69)
    then 'YES' else 'NO' end as is_trigger_insertable_into
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'v' and (pg_has_role(c.relowner, 'USAGE')
  or has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER'))

-- information_schema.sequences
select current_database() as sequence_catalog, n.nspname as sequence_schema,
  c.relname as sequence_name, format_type(s.seqtypid, null) as data_type,
  case s.seqtypid when 21 then 16 when 23 then 32 else 64 end as numeric_precision,
  2 as numeric_precision_radix, 0 as numeric_scale, s.seqstart as start_value,
  s.seqmin as minimum_value, s.seqmax as maximum_value, s.seqincrement as increment,
  case when s.seqcycle then 'YES' else 'NO' end as cycle_option
from pg_class c join pg_sequence s on s.seqrelid = c.oid join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'S'
  and not exists (select 1 from pg_depend d
    where d.classid = 1259 and d.objid = c.oid and d.deptype = 'i')
  and (pg_has_role(c.relowner, 'USAGE') or has_sequence_privilege(c.oid, 'SELECT, UPDATE, USAGE'))

-- information_schema.routines
select current_database() as specific_catalog, n.nspname as specific_schema,
  p.proname::text || '_' || p.oid::text as specific_name, current_database() as routine_catalog,
  n.nspname as routine_schema, p.proname as routine_name,
  case p.prokind when 'f' then 'FUNCTION' when 'p' then 'PROCEDURE' end as routine_type,
  case when t.typelem <> 0 and t.typlen = -1 then 'ARRAY' else format_type(t.oid, null) end
    as data_type,
  current_database() as type_udt_catalog, nt.nspname as type_udt_schema, t.typname as type_udt_name,
  '0' as dtd_identifier, case when l.lanname = 'sql' then 'SQL' else 'EXTERNAL' end as routine_body,
  case when pg_has_role(p.proowner, 'USAGE') then p.prosrc end as routine_definition,
  upper(l.lanname) as external_language, 'GENERAL' as parameter_style,
  case when p.provolatile = 'i' then 'YES' else 'NO' end as is_deterministic,
  'MODIFIES' as sql_data_access,
  case when p.prokind <> 'p' then case when p.proisstrict then 'YES' else 'NO' end end as is_null_call,
  'YES' as schema_level_routine, 0 as max_dynamic_result_sets,
  case when p.prosecdef then 'DEFINER' else 'INVOKER' end as security_type, 'NO' as as_locator,
  'NO' as is_udt_dependent
from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
  left join pg_type t on t.oid = p.prorettype left join pg_namespace nt on nt.oid = t.typnamespace
where p.prokind in ('f', 'p')

-- information_schema.parameters
select current_database() as specific_catalog, n.nspname as specific_schema,
  p.proname::text || '_' || p.oid::text as specific_name, a.number::int4 as ordinal_position,
  case when p.proargmodes is null then 'IN' when p.proargmodes[a.number::int4] in ('i', 'v') then 'IN'
    when p.proargmodes[a.number::int4] = 'b' then 'INOUT' else 'OUT' end as parameter_mode,
  'NO' as is_result, 'NO' as as_locator, nullif(p.proargnames[a.number::int4], '')::name as parameter_name,
  case when t.typelem <> 0 and t.typlen = -1 then 'ARRAY'
    when nt.nspname = 'pg_catalog' then format_type(t.oid, null) else 'USER-DEFINED' end as data_type,
  current_database() as udt_catalog, nt.nspname as udt_schema, t.typname as udt_name,
  a.number::text::name as dtd_identifier,
  case when pg_has_role(p.proowner, 'USAGE') then pg_get_function_arg_default(p.oid, a.number::int4) end
    as parameter_default
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  cross join lateral unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) with ordinality
    a (type, number)
  join pg_type t on t.oid = a.type join pg_namespace nt on nt.oid = t.typnamespace
where pg_has_role(p.proowner, 'USAGE') or has_function_privilege(p.oid, 'EXECUTE')

-- information_schema.routine_routine_usage
select distinct current_database() as specific_catalog, n.nspname as specific_schema,
  p.proname::text || '_' || p.oid::text as specific_name, current_database() as routine_catalog,
  un.nspname as routine_schema, (u.proname::text || '_' || u.oid::text)::name as routine_name
from pg_depend d join pg_proc p on d.classid = 1255 and p.oid = d.objid
  join pg_namespace n on n.oid = p.pronamespace
  join pg_proc u on d.refclassid = 1255 and u.oid = d.refobjid
  join pg_namespace un on un.oid = u.pronamespace
where p.prokind in ('f', 'p') and u.prokind in ('f', 'p') and pg_has_role(u.proowner, 'USAGE')

-- information_schema.routine_sequence_usage
select distinct current_database() as specific_catalog, n.nspname as specific_schema,
  p.proname::text || '_' || p.oid::text as specific_name, current_database() as routine_catalog,
  n.nspname as routine_schema, p.proname as routine_name, current_database() as sequence_catalog,
  cn.nspname as sequence_schema, c.relname as sequence_name
from pg_depend d join pg_proc p on d.classid = 1255 and p.oid = d.objid
  join pg_namespace n on n.oid = p.pronamespace
  join pg_class c on d.refclassid = 1259 and c.oid = d.refobjid
  join pg_namespace cn on cn.oid = c.relnamespace
where c.relkind = 'S' and pg_has_role(c.relowner, 'USAGE')

-- information_schema.routine_column_usage
select distinct current_database() as specific_catalog, n.nspname as specific_schema,
  p.proname::text || '_' || p.oid::text as specific_name, current_database() as routine_catalog,
  n.nspname as routine_schema, p.proname as routine_name, current_database() as table_catalog,
  cn.nspname as table_schema, c.relname as table_name, a.attname as column_name
from pg_depend d join pg_proc p on d.classid = 1255 and p.oid = d.objid
  join pg_namespace n on n.oid = p.pronamespace
  join pg_class c on d.refclassid = 1259 and c.oid = d.refobjid
  join pg_namespace cn on cn.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid
where c.relkind in ('r', 'v', 'f', 'p') and pg_has_role(c.relowner, 'USAGE')

-- information_schema.routine_table_usage
select distinct current_database() as specific_catalog, n.nspname as specific_schema,
  p.proname::text || '_' || p.oid::text as specific_name, current_database() as routine_catalog,
  n.nspname as routine_schema, p.proname as routine_name, current_database() as table_catalog,
  cn.nspname as table_schema, c.relname as table_name
from pg_depend d join pg_proc p on d.classid = 1255 and p.oid = d.objid
  join pg_namespace n on n.oid = p.pronamespace
  join pg_class c on d.refclassid = 1259 and c.oid = d.refobjid
  join pg_namespace cn on cn.oid = c.relnamespace
where c.relkind in ('r', 'v', 'f', 'p') and pg_has_role(c.relowner, 'USAGE')

-- information_schema.table_privileges
select giver.rolname as grantor, taker.rolname as grantee, current_database() as table_catalog,
  n.nspname as table_schema, c.relname as table_name, a.privilege_type,
  case when a.is_grantable or pg_has_role(taker.oid, c.relowner, 'USAGE') then 'YES' else 'NO' end
    as is_grantable,
  case when a.privilege_type = 'SELECT' then 'YES' else 'NO' end as with_hierarchy
from pg_class c join pg_namespace n on n.oid = c.relnamespace
  cross join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
  join pg_authid giver on giver.oid = a.grantor
  join (select oid, rolname from pg_authid union all select 0::oid, 'PUBLIC'::name) taker
    on taker.oid = a.grantee
where c.relkind in ('r', 'v', 'f', 'p')
  and a.privilege_type in ('INSERT', 'SELECT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER')
  and (pg_has_role(giver.oid, 'USAGE') or pg_has_role(taker.oid, 'USAGE') or taker.rolname = 'PUBLIC')

-- information_schema.column_privileges
select giver.rolname as grantor, taker.rolname as grantee, current_database() as table_catalog,
  n.nspname as table_schema, a.relname as table_name, a.attname as column_name, a.privilege_type,
  case when a.is_grantable or pg_has_role(taker.oid, a.relowner, 'USAGE') then 'YES' else 'NO' end
    as is_grantable
from (
    select c.relnamespace, c.relname, c.relowner, t.attname, p.grantor, p.grantee, p.privilege_type,
      p.is_grantable
    from pg_class c join pg_attribute t on t.attrelid = c.oid
      cross join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) p
    where c.relkind in ('r', 'v', 'f', 'p') and t.attnum > 0 and not t.attisdropped
    union
    select c.relnamespace, c.relname, c.relowner, t.attname, p.grantor, p.grantee, p.privilege_type,
      p.is_grantable
    from pg_class c join pg_attribute t on t.attrelid = c.oid
      cross join lateral aclexplode(t.attacl) p
    where c.relkind in ('r', 'v', 'f', 'p') and t.attnum > 0 and not t.attisdropped) a
  join pg_namespace n on n.oid = a.relnamespace
  join pg_authid giver on giver.oid = a.grantor
  join (select oid, rolname from pg_authid union all select 0::oid, 'PUBLIC'::name) taker
    on taker.oid = a.grantee
where a.privilege_type in ('INSERT', 'SELECT', 'UPDATE', 'REFERENCES')
  and (pg_has_role(giver.oid, 'USAGE') or pg_has_role(taker.oid, 'USAGE') or taker.rolname = 'PUBLIC')

-- information_schema.usage_privileges
select u.rolname as grantor, 'PUBLIC'::name as grantee, current_database() as object_catalog,
  n.nspname as object_schema, c.collname as object_name, 'COLLATION' as object_type,
  'USAGE' as privilege_type, 'NO' as is_grantable
from pg_collation c join pg_namespace n on n.oid = c.collnamespace join pg_authid u on u.oid = c.collowner
where c.collencoding in (-1, (select encoding from pg_database where datname = current_database()))
union all
select giver.rolname, taker.rolname, current_database(), n.nspname, c.relname, 'SEQUENCE', 'USAGE',
  case when a.is_grantable or pg_has_role(taker.oid, c.relowner, 'USAGE') then 'YES' else 'NO' end
from pg_class c join pg_namespace n on n.oid = c.relnamespace
  cross join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
  join pg_authid giver on giver.oid = a.grantor
  join (select oid, rolname from pg_authid union all select 0::oid, 'PUBLIC'::name) taker
    on taker.oid = a.grantee
where c.relkind = 'S' and a.privilege_type = 'USAGE'
  and (pg_has_role(giver.oid, 'USAGE') or pg_has_role(taker.oid, 'USAGE') or taker.rolname = 'PUBLIC')

-- information_schema.routine_privileges
select giver.rolname as grantor, taker.rolname as grantee, current_database() as specific_catalog,
  n.nspname as specific_schema, p.proname::text || '_' || p.oid::text as specific_name,
  current_database() as routine_catalog, n.nspname as routine_schema, p.proname as routine_name,
  'EXECUTE' as privilege_type,
  case when a.is_grantable or pg_has_role(taker.oid, p.proowner, 'USAGE') then 'YES' else 'NO' end
    as is_grantable
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
  join pg_authid giver on giver.oid = a.grantor
  join (select oid, rolname from pg_authid union all select 0::oid, 'PUBLIC'::name) taker
    on taker.oid = a.grantee
where a.privilege_type = 'EXECUTE'
  and (pg_has_role(giver.oid, 'USAGE') or pg_has_role(taker.oid, 'USAGE') or taker.rolname = 'PUBLIC')

-- information_schema.data_type_privileges
select current_database() as object_catalog, x.object_schema, x.object_name, x.object_type,
  x.dtd_identifier
from (
    select table_schema as object_schema, table_name as object_name, 'TABLE' as object_type,
      dtd_identifier
    from information_schema.columns
    union all
    select specific_schema, specific_name, 'ROUTINE', dtd_identifier from information_schema.routines) x

-- information_schema.role_table_grants
select grantor, grantee, table_catalog, table_schema, table_name, privilege_type, is_grantable,
  with_hierarchy
from information_schema.table_privileges
where grantor in (select role_name from information_schema.enabled_roles)
  or grantee in (select role_name from information_schema.enabled_roles)

-- information_schema.role_column_grants
select grantor, grantee, table_catalog, table_schema, table_name, column_name, privilege_type,
  is_grantable
from information_schema.column_privileges
where grantor in (select role_name from information_schema.enabled_roles)
  or grantee in (select role_name from information_schema.enabled_roles)

-- information_schema.role_usage_grants
select grantor, grantee, object_catalog, object_schema, object_name, object_type, privilege_type,
  is_grantable
from information_schema.usage_privileges
where grantor in (select role_name from information_schema.enabled_roles)
  or grantee in (select role_name from information_schema.enabled_roles)

-- information_schema.role_routine_grants
select grantor, grantee, specific_catalog, specific_schema, specific_name, routine_catalog,
  routine_schema, routine_name, privilege_type, is_grantable
from information_schema.routine_privileges
where grantor in (select role_name from information_schema.enabled_roles)
  or grantee in (select role_name from information_schema.enabled_roles)

-- information_schema.triggers
select current_database() as trigger_catalog, n.nspname as trigger_schema, t.tgname as trigger_name,
  e.name as event_manipulation, current_database() as event_object_catalog,
  n.nspname as event_object_schema, c.relname as event_object_table,
  rank() over (partition by n.nspname, c.relname, e.bit, t.tgtype & 1, t.tgtype & 66
    order by t.tgname)::int4 as action_order,
  case when pg_has_role(c.relowner, 'USAGE') and t.tgqual is not null
    then pg_get_expr(t.tgqual, t.tgrelid) end as action_condition,
  substring(pg_get_triggerdef(t.oid) from 'EXECUTE FUNCTION .*$') as action_statement,
  case when t.tgtype & 1 = 1 then 'ROW' else 'STATEMENT' end as action_orientation,
  case t.tgtype & 66 when 2 then 'BEFORE' when 64 then 'INSTEAD OF' else 'AFTER' end as action_timing,
  t.tgoldtable as action_reference_old_table, t.tgnewtable as action_reference_new_table,
  null as action_reference_old_row, null as action_reference_new_row, null as created
from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
  join (values (4, 'INSERT'), (8, 'DELETE'), (16, 'UPDATE')) as e(bit, name) on t.tgtype & e.bit <> 0
where not t.tgisinternal
  and (pg_has_role(c.relowner, 'USAGE')
    or has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
    or has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES'))

-- information_schema.triggered_update_columns
select current_database() as trigger_catalog, n.nspname as trigger_schema, t.tgname as trigger_name,
  current_database() as event_object_catalog, n.nspname as event_object_schema,
  c.relname as event_object_table, a.attname as event_object_column
from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attnum = any (t.tgattr)
where not t.tgisinternal and t.tgtype & 16 <> 0
  and (pg_has_role(c.relowner, 'USAGE')
    or has_column_privilege(c.oid, a.attnum, 'INSERT, UPDATE, REFERENCES'))

-- information_schema.domains
select current_database() as domain_catalog, nt.nspname as domain_schema, t.typname as domain_name,
  case when t.typelem <> 0 and t.typlen = -1 then 'ARRAY'
    when nbt.nspname = 'pg_catalog' then format_type(t.typbasetype, null) else 'USER-DEFINED' end
    as data_type,
  case when t.typbasetype in (1042, 1043) and t.typtypmod <> -1 then t.typtypmod - 4 end
    as character_maximum_length,
  case when t.typbasetype in (25, 1042, 1043) then
    case when t.typtypmod = -1 then 1073741824 else (t.typtypmod - 4) * 4 end end
    as character_octet_length,
  case when co.collname is not null and co.collname <> 'default' then current_database() end
    as collation_catalog,
  case when co.collname is not null and co.collname <> 'default' then 'pg_catalog' end
    as collation_schema,
  case when co.collname <> 'default' then co.collname end as collation_name,
  case t.typbasetype when 21 then 16 when 23 then 32 when 20 then 64 when 700 then 24 when 701 then 53
    when 1700 then case when t.typtypmod <> -1 then ((t.typtypmod - 4) >> 16) & 65535 end end
    as numeric_precision,
  case when t.typbasetype in (20, 21, 23, 700, 701) then 2 when t.typbasetype = 1700 then 10 end
    as numeric_precision_radix,
  case when t.typbasetype in (20, 21, 23) then 0
    when t.typbasetype = 1700 and t.typtypmod <> -1 then (t.typtypmod - 4) & 65535 end as numeric_scale,
  case when t.typbasetype = 1082 then 0
    when t.typbasetype in (1083, 1114, 1184, 1266) then
      case when t.typtypmod < 0 then 6 else t.typtypmod end
    when t.typbasetype = 1186 then
      case when t.typtypmod < 0 or t.typtypmod & 65535 = 65535 then 6 else t.typtypmod & 65535 end
    end as datetime_precision,
  t.typdefault as domain_default, current_database() as udt_catalog, nbt.nspname as udt_schema,
  bt.typname as udt_name, 1::text as dtd_identifier
from pg_type t join pg_namespace nt on nt.oid = t.typnamespace
  join pg_type bt on bt.oid = t.typbasetype join pg_namespace nbt on nbt.oid = bt.typnamespace
  left join pg_collation co on co.oid = t.typcollation
where t.typtype = 'd' and (pg_has_role(t.typowner, 'USAGE') or has_type_privilege(t.oid, 'USAGE'))

-- information_schema.domain_constraints
select current_database() as constraint_catalog, rs.nspname as constraint_schema,
  con.conname as constraint_name, current_database() as domain_catalog, n.nspname as domain_schema,
  t.typname as domain_name, case when con.condeferrable then 'YES' else 'NO' end as is_deferrable,
  case when con.condeferred then 'YES' else 'NO' end as initially_deferred
from pg_constraint con join pg_namespace rs on rs.oid = con.connamespace
  join pg_type t on t.oid = con.contypid join pg_namespace n on n.oid = t.typnamespace
where pg_has_role(t.typowner, 'USAGE') or has_type_privilege(t.oid, 'USAGE')

-- information_schema.domain_udt_usage
select current_database() as udt_catalog, nbt.nspname as udt_schema, bt.typname as udt_name,
  current_database() as domain_catalog, nt.nspname as domain_schema, t.typname as domain_name
from pg_type t join pg_namespace nt on nt.oid = t.typnamespace
  join pg_type bt on bt.oid = t.typbasetype join pg_namespace nbt on nbt.oid = bt.typnamespace
where t.typtype = 'd' and pg_has_role(bt.typowner, 'USAGE')

-- information_schema.column_domain_usage
select current_database() as domain_catalog, nt.nspname as domain_schema, t.typname as domain_name,
  current_database() as table_catalog, nc.nspname as table_schema, c.relname as table_name,
  a.attname as column_name
from pg_type t join pg_namespace nt on nt.oid = t.typnamespace
  join pg_attribute a on a.atttypid = t.oid join pg_class c on c.oid = a.attrelid
  join pg_namespace nc on nc.oid = c.relnamespace
where t.typtype = 'd' and c.relkind in ('r', 'v', 'f', 'p') and a.attnum > 0 and not a.attisdropped
  and pg_has_role(t.typowner, 'USAGE')

-- information_schema.attributes
select current_database() as udt_catalog, n.nspname as udt_schema, c.relname as udt_name,
  a.attname as attribute_name, a.attnum::int4 as ordinal_position,
  case when a.attnotnull or t.typtype = 'd' and t.typnotnull then 'NO' else 'YES' end as is_nullable,
  case when coalesce(bt.typelem, t.typelem) <> 0 and coalesce(bt.typlen, t.typlen) = -1 then 'ARRAY'
    when coalesce(nbt.nspname, nt.nspname) <> 'pg_catalog' then 'USER-DEFINED'
    else format_type(coalesce(bt.oid, t.oid), null) end as data_type,
  case when coalesce(bt.oid, t.oid) in (1042, 1043) and case when bt.oid is null then a.atttypmod else t.typtypmod end <> -1 then case when bt.oid is null then a.atttypmod else t.typtypmod end - 4 end
    as character_maximum_length,
  case when coalesce(bt.oid, t.oid) in (25, 1042, 1043) then
    case when case when bt.oid is null then a.atttypmod else t.typtypmod end = -1 then 1073741824 else (case when bt.oid is null then a.atttypmod else t.typtypmod end - 4) * 4 end end
    as character_octet_length,
  case when co.collname is not null and co.collname <> 'default' then current_database() end
    as collation_catalog,
  case when co.collname is not null and co.collname <> 'default' then 'pg_catalog' end
    as collation_schema,
  case when co.collname <> 'default' then co.collname end as collation_name,
  case coalesce(bt.oid, t.oid) when 21 then 16 when 23 then 32 when 20 then 64 when 700 then 24 when 701 then 53
    when 1700 then case when case when bt.oid is null then a.atttypmod else t.typtypmod end <> -1 then ((case when bt.oid is null then a.atttypmod else t.typtypmod end - 4) >> 16) & 65535 end end
    as numeric_precision,
  case when coalesce(bt.oid, t.oid) in (20, 21, 23, 700, 701) then 2 when coalesce(bt.oid, t.oid) = 1700 then 10 end
    as numeric_precision_radix,
  case when coalesce(bt.oid, t.oid) in (20, 21, 23) then 0
    when coalesce(bt.oid, t.oid) = 1700 and case when bt.oid is null then a.atttypmod else t.typtypmod end <> -1 then (case when bt.oid is null then a.atttypmod else t.typtypmod end - 4) & 65535 end
    as numeric_scale,
  case when coalesce(bt.oid, t.oid) = 1082 then 0
    when coalesce(bt.oid, t.oid) in (1083, 1114, 1184, 1266) then
      case when case when bt.oid is null then a.atttypmod else t.typtypmod end < 0 then 6 else case when bt.oid is null then a.atttypmod else t.typtypmod end end
    when coalesce(bt.oid, t.oid) = 1186 then
      case when case when bt.oid is null then a.atttypmod else t.typtypmod end < 0 or case when bt.oid is null then a.atttypmod else t.typtypmod end & 65535 = 65535 then 6 else case when bt.oid is null then a.atttypmod else t.typtypmod end & 65535 end
    end as datetime_precision,
  current_database() as attribute_udt_catalog,
  coalesce(nbt.nspname, nt.nspname) as attribute_udt_schema,
  coalesce(bt.typname, t.typname) as attribute_udt_name, a.attnum::text as dtd_identifier,
  'NO' as is_derived_reference_attribute
from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
  join pg_type t on t.oid = a.atttypid join pg_namespace nt on nt.oid = t.typnamespace
  left join pg_type bt on t.typtype = 'd' and bt.oid = t.typbasetype
  left join pg_namespace nbt on nbt.oid = bt.typnamespace
  left join pg_collation co on co.oid = a.attcollation
where a.attnum > 0 and not a.attisdropped and c.relkind = 'c'
  and (pg_has_role(c.relowner, 'USAGE') or has_type_privilege(c.reltype, 'USAGE'))

-- information_schema.user_defined_types
select current_database() as user_defined_type_catalog, n.nspname as user_defined_type_schema,
  c.relname as user_defined_type_name, 'STRUCTURED' as user_defined_type_category,
  'YES' as is_instantiable
from pg_namespace n join pg_class c on n.oid = c.relnamespace join pg_type t on t.oid = c.reltype
where c.relkind = 'c'
  and (pg_has_role(t.typowner, 'USAGE') or has_type_privilege(t.oid, 'USAGE'))
