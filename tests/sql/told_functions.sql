-- names: tfn
-- Functions that tell of values, transactions and sequences.
create table tfn_t (i int, t text, n numeric, b bytea, d date, a int[], v varchar(10), u uuid, f bool, j interval);
insert into tfn_t values (1, 'abc', 123.45, '\x0102', '2020-01-01', '{1,2,3}', 'xyz', '00000000-0000-0000-0000-000000000001', true, '1 day'),
  (null, null, null, null, null, null, null, null, null, null),
  (2, repeat('x', 126), 1e20, '', '2021-01-01', '{}', '', null, false, '1 mon'), (3, repeat('x', 127), 0, '\x00', null, '{null,1}', 'é', null, null, null);
select pg_column_size(i), pg_column_size(t), pg_column_size(n), pg_column_size(b), pg_column_size(d), pg_column_size(a),
  pg_column_size(v), pg_column_size(u), pg_column_size(f), pg_column_size(j) from tfn_t;
select pg_column_size(1), pg_column_size(1::bigint), pg_column_size(1::smallint), pg_column_size(true), pg_column_size('a'::name), pg_column_size(null::int), pg_column_size(null);
select pg_column_compression(t), pg_column_compression(i) from tfn_t;
select pg_column_size();
-- transactions
select age('0'::xid), age('1'::xid), age('2'::xid), age(null::xid);
select mxid_age('0'), mxid_age('1'), mxid_age(null);
select max(age(datfrozenxid)) < 2000000000, max(mxid_age(datminmxid)) < 2000000000 from pg_database;
select count(*) from pg_class where relkind in ('r', 'm') and (age(relfrozenxid) > 2000000000 or mxid_age(relminmxid) > 2000000000);
select count(*) from pg_class where relkind in ('v', 'i', 'S', 'c') and (relfrozenxid <> '0' or relminmxid <> '0');
begin;
select pg_current_xact_id() is not null;
select age(pg_current_xact_id()::xid);
rollback;
select age(1);
select age('x'::text);
-- overlaps
select (timetz '01:00+00', timetz '02:00+00') overlaps (timetz '01:30+00', timetz '03:00+00');
select (timetz '01:00+00', timetz '02:00+00') overlaps (timetz '02:00+01', timetz '03:00+01');
select (timetz '01:00+00', timetz '02:00+00') overlaps (timetz '02:00+00', timetz '03:00+00');
select (timetz '01:00+00', null) overlaps (timetz '02:00+00', timetz '03:00+00');
select (timetz '01:00+00', timetz '02:00+00') overlaps (timetz '05:00+05', null::timetz);
select overlaps(timetz '01:00+00', timetz '02:00+00', timetz '12:00-12', timetz '13:00-12');
select interval '1 hour' + timetz '23:30+02', timetz '23:30+02' + interval '1 hour', interval '-1 day' + timetz '01:00-05';
-- lists of oids
select a < b, a <= b, a = b, a <> b, a >= b, a > b from (values ('1 2'::oidvector, '1 3'::oidvector), ('9', '1 1'), ('', '1'), ('5 6', '5 6'), ('2 1', '1 2'), (null, '1')) v (a, b);
select count(*) from pg_proc where proargtypes = '23 23'::oidvector and proname = 'int4pl';
select proname from pg_proc where proname = 'int4pl' and proargtypes = array[23, 23]::oidvector;
select count(*) from pg_proc p join pg_proc q on p.proargtypes = q.proargtypes and q.proname = 'int4pl' where p.proname in ('int4mi', 'int8mi');
-- sums of whole numbers
select int8_sum(null, null), int8_sum(1.5, 2), int8_sum(null, 3), int8_sum(4.25, null);
select int8_sum(1);
-- access methods
select amname, p, pg_indexam_has_property(a.oid, p) from pg_am a, unnest(array['can_order', 'CAN_UNIQUE', 'can_multi_col', 'can_exclude', 'can_include', 'nothing']) p
  where amname in ('btree', 'hash', 'gist', 'gin', 'spgist', 'brin', 'heap') order by 1, 2;
select pg_indexam_has_property(0, 'can_order'), pg_indexam_has_property(null, 'can_order'), pg_indexam_has_property(403, null);
-- sequences
create sequence tfn_s as int start 5 increment -2 minvalue -100 maxvalue 50 cache 3 cycle;
select * from pg_sequence_parameters('tfn_s'::regclass);
select (pg_sequence_parameters('tfn_s'::regclass)).increment, (pg_sequence_parameters('tfn_s'::regclass)).data_type::regtype;
select pg_sequence_parameters('tfn_s'::regclass);
select pg_sequence_parameters('pg_class'::regclass);
create role tfn_none;
set role tfn_none;
select * from pg_sequence_parameters('tfn_s'::regclass);
reset role;
grant usage on sequence tfn_s to tfn_none;
set role tfn_none;
select increment from pg_sequence_parameters('tfn_s'::regclass);
reset role;
-- the text that runs
select current_query();
select length(current_query()), current_query() like '%the text%', 'the text' as x;
do $$ begin raise notice '%', current_query(); end $$;
prepare tfn_q as select current_query();
execute tfn_q;
create table tfn_audit (line text);
create function tfn_note() returns trigger language plpgsql as $$ begin insert into tfn_audit values (current_query()); return new; end $$;
create trigger tfn_noted after insert on tfn_t for each statement execute function tfn_note();
insert into tfn_t (i) values (77);
select line from tfn_audit;
-- what nobody keeps
select pg_xact_commit_timestamp('3'::xid);
select pg_xact_commit_timestamp(null);
select * from pg_last_committed_xact();
select * from pg_xact_commit_timestamp_origin('3'::xid);
select pg_get_wal_replay_pause_state();
select pg_wal_replay_pause();
select pg_wal_replay_resume();
select count(*) from pg_stat_get_backend_idset() i where pg_stat_get_backend_pid(i) = pg_backend_pid();
select count(*) > 0 from (select pg_stat_get_backend_idset() as i) x where pg_stat_get_backend_activity(i) like '%backend_idset%';
set role tfn_none;
select pg_wal_replay_pause();
reset role;
drop table tfn_t, tfn_audit;
drop function tfn_note;
drop sequence tfn_s;
drop role tfn_none;
