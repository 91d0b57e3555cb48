-- Positions in the log: their arithmetic, and what a node that leads says of them.
select '0/10'::pg_lsn + 1.6, '0/10'::pg_lsn + 1.4;
select '0/10'::pg_lsn - 16::numeric, 5::numeric + '0/10'::pg_lsn;
select '1/0'::pg_lsn - '0/FFFFFFFF'::pg_lsn, pg_wal_lsn_diff('1/0', '0/1'), pg_wal_lsn_diff('0/1', '1/0');
select '0/10'::pg_lsn - 17::numeric;
select 'FFFFFFFF/FFFFFFFF'::pg_lsn + 1::numeric;
select '0/10'::pg_lsn + 'NaN'::numeric;
select '0/10'::pg_lsn - 'NaN'::numeric;
select '0/10'::pg_lsn - 'infinity'::numeric;
select '0/10'::pg_lsn < '0/1A', '0/10'::pg_lsn = '0/010', '0/10'::pg_lsn >= '1/0', '0/10'::pg_lsn <> '0/10';
select max(x), min(x) from (values ('0/10'::pg_lsn), ('1/0'), (null)) v(x);
select 'x/0'::pg_lsn;
select pg_is_in_recovery(), pg_last_wal_receive_lsn() is null, pg_last_wal_replay_lsn() is null, pg_last_xact_replay_timestamp() is null;
select pg_is_wal_replay_paused();
select pg_current_wal_insert_lsn() >= pg_current_wal_lsn(), pg_current_wal_lsn() >= pg_current_wal_flush_lsn(), pg_current_wal_lsn() > '0/0';
select count(*) from pg_stat_wal_receiver;
select attname, format_type(atttypid, atttypmod) from pg_attribute
 where attrelid = 'pg_stat_replication'::regclass and attnum > 0 order by attnum;
select attname, format_type(atttypid, atttypmod) from pg_attribute
 where attrelid = 'pg_replication_slots'::regclass and attnum > 0 order by attnum;
select attname, format_type(atttypid, atttypmod) from pg_attribute
 where attrelid = 'pg_stat_wal_receiver'::regclass and attnum > 0 order by attnum;
select current_setting('in_hot_standby'), current_setting('default_transaction_read_only'), current_setting('transaction_read_only');
