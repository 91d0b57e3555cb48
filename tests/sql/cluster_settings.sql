-- names: clerk
-- Settings of the cluster, of databases and of roles; where values come from; what cannot be.
alter system set synchronous_standby_names = 'any';
alter system set synchronous_standby_names = '0 (a)';
alter system set synchronous_standby_names = 'first 2 (a, b';
alter system set synchronous_standby_names = 'a b';
alter system set synchronous_standby_names = '"a';
alter system set nosuch = 1;
alter system set nosuch.either = 1;
alter system set server_version = 1;
alter system set in_hot_standby = on;
alter system set transaction_read_only = on;
alter system set role = 'x';
alter system set work_mem = 'x';
alter system set work_mem = '1kB';
alter system set synchronous_commit = 'maybe';
alter system reset nosuch;
begin;
alter system set work_mem = '5MB';
rollback;
set synchronous_standby_names = 'a';
set local synchronous_standby_names = 'a';
reset synchronous_standby_names;
select set_config('synchronous_standby_names', 'a', false);
set max_connections = 5;
set server_version_num = 5;
alter role postgres set synchronous_standby_names = 'a';
alter database postgres set max_connections = 5;
set work_mem = '1kB';
set work_mem = '1XB';
set work_mem = 'x';
set random_page_cost = -1;
set random_page_cost = 'x';
set random_page_cost = 1.1;
show random_page_cost;
reset random_page_cost;
show work_mem;
set work_mem = 1500;
show work_mem;
set work_mem = '2GB';
show work_mem;
select setting, unit, source, boot_val, reset_val from pg_settings where name = 'work_mem';
reset work_mem;
-- What is written has no effect before it is loaded.
alter system set idle_session_timeout = '7min';
select pg_sleep(0.2);
show idle_session_timeout;
select pg_reload_conf();
select pg_sleep(0.5);
show idle_session_timeout;
select setting, unit, source, boot_val, reset_val from pg_settings where name = 'idle_session_timeout';
set idle_session_timeout = '1h';
alter system set idle_session_timeout = '8min';
select pg_reload_conf();
select pg_sleep(0.5);
show idle_session_timeout;
reset idle_session_timeout;
show idle_session_timeout;
begin;
set local idle_session_timeout = '1h';
alter system reset idle_session_timeout;
rollback;
-- Roles and databases are more special, and what the client asks for more than both.
create role clerk superuser login;
alter role clerk set idle_session_timeout = '2h';
alter role clerk in database postgres set statement_timeout = '3s';
alter database postgres set statement_timeout = '4s';
alter database postgres set synchronous_commit = remote_apply;
alter role all set maintenance_work_mem = '5MB';
alter role clerk set synchronous_commit = 'sometimes';
\connect - clerk
select name, setting, source from pg_settings
 where name in ('idle_session_timeout', 'statement_timeout', 'synchronous_commit', 'maintenance_work_mem', 'work_mem') order by name;
show synchronous_commit;
set synchronous_commit = off;
select setting, source from pg_settings where name = 'synchronous_commit';
reset synchronous_commit;
select setting, source from pg_settings where name = 'synchronous_commit';
begin;
set local synchronous_commit = local;
show synchronous_commit;
commit;
show synchronous_commit;
reset all;
show idle_session_timeout;
\connect - postgres
alter role clerk reset idle_session_timeout;
alter role clerk in database postgres reset all;
alter database postgres reset synchronous_commit;
alter role all reset maintenance_work_mem;
\connect - clerk
select name, setting, source from pg_settings
 where name in ('idle_session_timeout', 'statement_timeout', 'synchronous_commit', 'maintenance_work_mem') order by name;
\connect - postgres
alter database postgres reset all;
alter system reset idle_session_timeout;
select pg_reload_conf();
select pg_sleep(0.5);
show idle_session_timeout;
alter role clerk nosuperuser;
set role clerk;
alter system set work_mem = '5MB';
alter system reset all;
select pg_reload_conf();
reset role;
drop role clerk;
select name, vartype, unit, context, category, min_val, max_val, enumvals from pg_settings
 where name in ('synchronous_commit', 'synchronous_standby_names', 'work_mem', 'idle_session_timeout', 'deadlock_timeout',
  'extra_float_digits', 'DateStyle', 'in_hot_standby', 'default_transaction_isolation', 'random_page_cost',
  'max_connections', 'search_path', 'wal_level', 'wal_compression') order by name;
