-- names: ledger amended
-- What ANALYZE finds of several columns and of expressions, of tables that are sampled whole.
create table ledger (account int, branch text, clerk int, folio numeric, entered date, margin text);
insert into ledger select g % 20, 'b' || g % 5, case when g % 4 = 0 then null else g % 10 end, (g % 30) * 0.5,
  date '2024-01-01' + g % 60, case when g % 100 = 0 then repeat('m', 3000) || g else 'm' || g % 25 end
  from generate_series(1, 1000) g;
create statistics amended on account, branch, clerk from ledger;
create statistics amended_deps (dependencies) on account, branch, entered, folio from ledger;
create statistics amended_mcv (mcv) on branch, clerk from ledger;
create statistics amended_dist (ndistinct) on account, (folio * 2), upper(branch) from ledger;
create statistics amended_expr on (account + clerk) from ledger;
create statistics amended_wide on margin, branch from ledger;
select count(*) from pg_statistic_ext_data d join pg_statistic_ext s on s.oid = d.stxoid where stxname like 'amended%';
analyze ledger;
select stxname, stxdinherit, stxdndistinct, stxddependencies, stxdmcv is not null as mcv, stxdexpr is not null as expr
  from pg_statistic_ext_data d join pg_statistic_ext s on s.oid = d.stxoid where stxname like 'amended%' order by 1;
select stxname, stxdndistinct::text, stxddependencies::text
  from pg_statistic_ext_data d join pg_statistic_ext s on s.oid = d.stxoid where stxname = 'amended';
select m.values, m.nulls, m.frequency, m.base_frequency
  from pg_statistic_ext s join pg_statistic_ext_data d on d.stxoid = s.oid, pg_mcv_list_items(d.stxdmcv) m
  where stxname = 'amended' order by 1, 2;
select m.values, m.nulls, m.frequency, m.base_frequency
  from pg_statistic_ext s join pg_statistic_ext_data d on d.stxoid = s.oid, pg_mcv_list_items(d.stxdmcv) m
  where stxname = 'amended_mcv' order by 1, 2;
select count(*), sum(m.frequency), sum(m.base_frequency)
  from pg_statistic_ext s join pg_statistic_ext_data d on d.stxoid = s.oid, pg_mcv_list_items(d.stxdmcv) m
  where stxname = 'amended_wide';
select statistics_name, attnames, exprs, kinds, inherited, n_distinct, dependencies,
  array_length(most_common_vals, 1), array_length(most_common_val_nulls, 2), array_length(most_common_freqs, 1), array_length(most_common_base_freqs, 1)
  from pg_stats_ext where tablename = 'ledger' order by 1;
select schemaname, tablename, statistics_schemaname, statistics_name, expr, inherited, null_frac, avg_width, n_distinct, most_common_vals, most_common_freqs, histogram_bounds, correlation
  from pg_stats_ext_exprs where tablename = 'ledger' order by 4, 5;
-- Targets.
alter statistics amended_mcv set statistics 3;
alter statistics amended_dist set statistics 0;
delete from ledger where account > 15;
analyze ledger;
select stxname, stxdndistinct, stxddependencies
  from pg_statistic_ext_data d join pg_statistic_ext s on s.oid = d.stxoid where stxname like 'amended%' order by 1;
select count(*) from pg_statistic_ext s join pg_statistic_ext_data d on d.stxoid = s.oid, pg_mcv_list_items(d.stxdmcv) m where stxname = 'amended_mcv';
alter table ledger alter clerk set statistics 0;
analyze ledger;
analyze ledger (account, branch);
alter table ledger alter clerk set statistics -1;
-- Forgotten with the types of columns.
alter table ledger alter entered type timestamp;
select stxname, d.stxoid is not null from pg_statistic_ext s left join pg_statistic_ext_data d on s.oid = d.stxoid where stxname like 'amended%' order by 1;
alter table ledger alter clerk type bigint;
select stxname, d.stxoid is not null from pg_statistic_ext s left join pg_statistic_ext_data d on s.oid = d.stxoid where stxname like 'amended%' order by 1;
analyze ledger;
select stxname, d.stxoid is not null from pg_statistic_ext s left join pg_statistic_ext_data d on s.oid = d.stxoid where stxname like 'amended%' order by 1;
-- Nothing of no rows, and nothing that depends where nothing does.
truncate ledger;
drop statistics amended, amended_deps, amended_mcv, amended_dist, amended_expr, amended_wide;
create statistics amended on account, branch from ledger;
analyze ledger;
select count(*) from pg_statistic_ext_data d join pg_statistic_ext s on s.oid = d.stxoid where stxname = 'amended';
insert into ledger (account, branch) values (1, 'a'), (1, 'b'), (2, 'a'), (2, 'b');
analyze ledger;
select stxdndistinct, stxddependencies from pg_statistic_ext_data d join pg_statistic_ext s on s.oid = d.stxoid where stxname = 'amended';
-- Who may see it.
create role amended_reader;
grant select on ledger to amended_reader;
set role amended_reader;
select count(*) from pg_stats_ext where tablename = 'ledger';
select count(*) from pg_stats_ext_exprs where tablename = 'ledger';
select * from pg_statistic_ext_data;
reset role;
alter table ledger owner to amended_reader;
set role amended_reader;
select count(*) from pg_stats_ext where tablename = 'ledger';
reset role;
-- What cannot be said by text.
select '{"1, 2": 3}'::pg_ndistinct;
select '{"1 => 2": 0.5}'::pg_dependencies;
select '\x00'::pg_mcv_list;
drop table ledger;
drop role amended_reader;
-- An expression that fails ends it; one of the owner's rights.
create table ledger (account int, branch int);
insert into ledger values (0, 1);
create statistics amended on (1 / account), branch from ledger;
analyze ledger;
select count(*) from pg_statistic_ext_data d join pg_statistic_ext s on s.oid = d.stxoid where stxname = 'amended';
delete from ledger;
analyze ledger;
drop table ledger;
