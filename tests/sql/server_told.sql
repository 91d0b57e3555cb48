-- names: told
-- What a server tells of itself: settings of its files, addresses and sizes, relations of the standard and of how it was built.
select name, unit, category, short_desc, context, vartype, min_val, max_val, enumvals from pg_settings
  where name in ('block_size', 'config_file', 'data_directory', 'data_directory_mode', 'hba_file', 'ident_file',
    'listen_addresses', 'log_file_mode', 'port', 'segment_size', 'shared_memory_size', 'shared_memory_size_in_huge_pages',
    'ssl_ciphers', 'ssl_ecdh_curve', 'ssl_library', 'ssl_prefer_server_ciphers', 'unix_socket_permissions',
    'wal_block_size', 'wal_segment_size') order by name;
select name, boot_val from pg_settings where name in ('block_size', 'data_directory_mode', 'log_file_mode', 'port',
  'unix_socket_permissions', 'wal_block_size', 'wal_segment_size', 'listen_addresses') order by name;
show block_size;
show wal_segment_size;
show data_directory_mode;
show log_file_mode;
select setting, reset_val from pg_settings where name in ('data_directory_mode', 'wal_segment_size') order by name;
select current_setting('data_directory') <> '' , current_setting('hba_file') like current_setting('data_directory') || '/%';
select current_setting('port')::int between 1 and 65535;
set port = 5;
set data_directory = 'x';
set block_size = 1;
set wal_segment_size = '1MB';
set ssl_ciphers = 'x';
set local hba_file = 'x';
select set_config('config_file', 'x', false);
alter role postgres set port = 5;
alter system set block_size = 1;
reset port;
-- who may look
create role told_none;
create role told_reads in role pg_read_all_settings;
set role told_none;
show data_directory;
show config_file;
show hba_file;
show ssl_ciphers;
select current_setting('data_directory');
select current_setting('data_directory', true);
select current_setting('told.nothing', true);
select count(*) from pg_settings where name in ('data_directory', 'config_file', 'hba_file', 'ident_file', 'log_directory',
  'ssl_min_protocol_version', 'shared_preload_libraries', 'unix_socket_directories');
create function told_f() returns int language sql set data_directory from current as 'select 1';
select * from pg_config;
select * from pg_file_settings;
select * from pg_ident_file_mappings;
select * from pg_replication_origin_status;
select * from pg_shmem_allocations;
select * from pg_backend_memory_contexts;
select * from information_schema.sql_parts;
select count(*) > 0 from information_schema.sql_features;
set role told_reads;
select current_setting('data_directory') <> '';
select count(*) from pg_settings where name in ('data_directory', 'config_file', 'hba_file', 'ident_file');
reset role;
select count(*) from pg_settings where name in ('data_directory', 'config_file', 'hba_file', 'ident_file');
create role told_stats in role pg_read_all_stats;
set role told_stats;
select count(*) > 0 from pg_backend_memory_contexts;
select count(*) >= 0 from pg_shmem_allocations;
select * from pg_config;
reset role;
-- relations
select setting from pg_config where name = 'CC' and false;
select count(*) from pg_config where name in ('VERSION', 'CONFIGURE', 'CC', 'CFLAGS', 'LIBS');
select * from pg_ident_file_mappings;
select * from pg_replication_origin_status;
select * from pg_file_settings limit 0;
select * from pg_shmem_allocations limit 0;
select * from pg_backend_memory_contexts limit 0;
select parent, level from pg_backend_memory_contexts where level = 0;
table information_schema.sql_parts;
select * from information_schema.sql_sizing where sizing_id <> 100;
select * from information_schema.sql_implementation_info where implementation_info_id not in ('17', '18', '10004');
select * from information_schema.sql_features where feature_id in ('E011', 'F053', 'T613', 'F671', 'S091');
select count(*), count(distinct feature_id), count(is_verified_by) from information_schema.sql_features;
select table_name, column_name, data_type, is_nullable from information_schema.columns
  where table_schema = 'information_schema' and table_name in ('sql_features', 'sql_parts', 'sql_sizing') order by 1, ordinal_position;
select relname, relkind from pg_class where relname in ('pg_config', 'sql_features', 'pg_file_settings') order by 1;
drop role told_none, told_reads, told_stats;
