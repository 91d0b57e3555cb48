-- names: nfya nfyb nfyt nfyf nfyr
-- LISTEN, NOTIFY, UNLISTEN: what is told when, and who hears it. The sender's process differs.
\set VERBOSITY terse
listen nfya;
listen nfya;
select pg_listening_channels();
select * from pg_listening_channels() with ordinality;
select count(*) from pg_listening_channels(), pg_listening_channels() as again;
\o | sed 's/PID [0-9]*/PID/'
notify nfya;
notify nfya, 'one';
notify nfyb, 'nobody hears it';
select pg_notify('nfya', 'of a function');
\o
-- At commit, in order, each once.
begin;
notify nfya, '1';
notify nfya, '2';
notify nfya, '1';
notify nfya, '3';
listen nfyb;
notify nfyb, 'own';
select pg_listening_channels();
\o | sed 's/PID [0-9]*/PID/'
commit;
\o
select pg_listening_channels();
-- Nothing of what is rolled back.
begin;
notify nfya, 'never';
unlisten nfya;
rollback;
begin;
notify nfya, 'kept';
savepoint s;
notify nfya, 'taken back';
notify nfya, 'both';
unlisten *;
rollback to s;
notify nfya, 'both';
savepoint s2;
notify nfya, 'kept as well';
release s2;
\o | sed 's/PID [0-9]*/PID/'
commit;
\o
select pg_listening_channels();
begin;
notify nfya, 'failed';
select 1 / 0;
notify nfya, 'failed';
commit;
-- Of a message all or nothing.
\o | sed 's/PID [0-9]*/PID/'
notify nfya, 'first'\; notify nfya, 'second'\; select 7;
\o
notify nfya, 'first'\; select 1 / 0;
-- Names and payloads.
notify nfya, 7;
select pg_notify('', 'x');
select pg_notify(null, 'x');
select pg_notify(repeat('x', 63), 'x');
select pg_notify(repeat('x', 64), 'x');
select length(pg_notify('nfyb', repeat('x', 8000))::text);
\o | sed 's/PID [0-9]*/PID/'
select pg_notify('nfyb', null);
select pg_notify('Nfya', 'another');
notify "nfya", 'quoted';
\o
notify "";
listen "Nfya";
unlisten "Nfya";
unlisten never_listened_to;
-- In functions, triggers, blocks.
create table nfyt (k int);
create function nfyf() returns trigger language plpgsql as $$
begin
  perform pg_notify('nfya', tg_op || ' ' || new.k);
  return new;
end $$;
create trigger nfyr before insert on nfyt for each row execute function nfyf();
\o | sed 's/PID [0-9]*/PID/'
insert into nfyt values (1), (2);
\o
begin;
insert into nfyt values (3);
rollback;
\o | sed 's/PID [0-9]*/PID/'
do $$
begin
  notify nfya, 'from a block';
  begin
    notify nfya, 'taken back';
    perform 1 / 0;
  exception when division_by_zero then
    notify nfya, 'handled';
  end;
  commit;
  listen nfyt;
  notify nfyt, 'of a second commit';
end $$;
\o
select pg_listening_channels();
drop table nfyt;
drop function nfyf();
-- Transactions that only read may; prepared ones may not.
\o | sed 's/PID [0-9]*/PID/'
begin read only;
notify nfya, 'read only';
commit;
begin isolation level serializable, read only, deferrable;
notify nfya, 'serializable';
commit;
\o
begin;
notify nfya;
prepare transaction 'nfy_1';
begin;
listen nfya;
prepare transaction 'nfy_1';
begin;
unlisten *;
prepare transaction 'nfy_1';
select count(*) from pg_prepared_xacts where gid = 'nfy_1';
-- Of a prepared statement.
prepare nfyt as select pg_notify('nfya', $1);
\o | sed 's/PID [0-9]*/PID/'
execute nfyt('executed');
\o
deallocate nfyt;
-- Whoever they are.
create role nfyr;
set role nfyr;
\o | sed 's/PID [0-9]*/PID/'
notify nfya, 'by another role';
\o
reset role;
drop role nfyr;
select pg_notification_queue_usage() between 0 and 0.5;
select proname, provolatile, proisstrict, proretset, prorettype::regtype from pg_proc
where proname in ('pg_notify', 'pg_listening_channels', 'pg_notification_queue_usage') order by 1;
unlisten nfyb;
select pg_listening_channels();
discard all;
select pg_listening_channels();
notify nfya, 'nobody';
