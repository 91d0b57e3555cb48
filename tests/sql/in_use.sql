-- names: inus
-- What statements at work and open cursors use, the session's own DDL leaves alone.
create table inus_t (a int primary key, b int, c text);
create index inus_t_b on inus_t (b);
create table inus_o (a int);
create view inus_v as select a, b from inus_t;
create materialized view inus_m as select a, b from inus_t;
create sequence inus_s;
create schema inus_e;
create table inus_r (a int, b int) partition by range (a);
create table inus_r1 partition of inus_r for values from (0) to (10);
create table inus_r2 partition of inus_r for values from (10) to (20);
insert into inus_t values (1, 1, 'x'), (2, 2, 'y');
insert into inus_o values (1);
insert into inus_r values (1, 1), (11, 1);
-- runs a statement and takes it back; says what it answered
create function inus_f(q text) returns text language plpgsql as $$
begin
  begin
    execute q;
    raise exception 'went through' using errcode = 'ZZ001';
  exception when others then return sqlstate || ' ' || sqlerrm;
  end;
end $$;
set client_min_messages = warning;
create table inus_q (n serial, q text);
insert into inus_q (q) values
  ('alter table inus_t add column d int'),
  ('alter table inus_t alter b type bigint'),
  ('alter table inus_t alter b set default 7'),
  ('alter table inus_t add check (a > 0)'),
  ('alter table inus_t drop column c'),
  ('alter table inus_t drop constraint inus_t_pkey'),
  ('alter table inus_t add unique (b)'),
  ('alter table inus_t enable row level security'),
  ('alter table inus_t rename to inus_u'),
  ('alter table inus_t rename b to bb'),
  ('alter table inus_t rename constraint inus_t_pkey to inus_k'),
  ('alter table inus_t set schema inus_e'),
  ('drop table inus_t cascade'),
  ('truncate inus_t'),
  ('truncate inus_o, inus_t'),
  ('create index on inus_t (c)'),
  ('drop index inus_t_b'),
  ('reindex index inus_t_b'),
  ('alter index inus_t_b rename to inus_t_bb'),
  ('create policy inus_p on inus_t'),
  ('comment on table inus_t is ''x'''),
  ('table inus_t'),
  ('analyze inus_t'),
  ('drop view inus_v'),
  ('alter view inus_v rename to inus_w'),
  ('refresh materialized view inus_m'),
  ('drop materialized view inus_m'),
  ('alter table inus_o add column d int'),
  ('drop table inus_o'),
  ('create table inus_x (a int references inus_t)');
do $$
declare r record; k record; said text;
begin
  for r in select * from inus_q order by n loop
    for k in select inus_f(r.q) as said from inus_t limit 1 loop
      raise warning '%: %', r.q, k.said;
    end loop;
  end loop;
end $$;
-- statements of all kinds
select inus_f('truncate inus_t') from inus_t;
select (select inus_f('truncate inus_t')) from inus_t limit 1;
select a from inus_o where (select inus_f('truncate inus_t') from inus_t limit 1) is null;
select inus_f('truncate inus_t') from inus_o;
select inus_f('drop table inus_t cascade') from inus_v limit 1;
select inus_f('drop view inus_v') from inus_v limit 1;
with w as (select a from inus_t) select inus_f('truncate inus_t') from w limit 1;
with w as (insert into inus_o values (7) returning a) select inus_f('truncate inus_o') from w;
insert into inus_t select 10, 1, inus_f('alter table inus_t add column d int');
insert into inus_t values (11, 1, inus_f('alter table inus_t add column d int'));
insert into inus_t (a, c) select a + 20, inus_f('truncate inus_t') from inus_t where a < 3;
insert into inus_o select 1 from inus_t where inus_f('drop table inus_o') is null;
update inus_t set c = inus_f('alter table inus_t drop column b') where a = 1 returning c;
delete from inus_t where a > 9 returning inus_f('truncate inus_t');
merge into inus_o o using inus_t t on o.a = t.a when matched and inus_f('truncate inus_o') is null then delete;
select a, b, c from inus_t order by a;
insert into inus_o select 3 returning inus_f('alter table inus_o add z int');
explain (analyze, costs off, timing off, summary off) select inus_f('truncate inus_t') from inus_t limit 1;
prepare inus_w as select inus_f('truncate inus_t') from inus_t where a = $1;
execute inus_w(1);
execute inus_w(1);
deallocate inus_w;
copy (select inus_f('truncate inus_t') from inus_t where a = 1) to stdout;
create table inus_d (a int, b text default inus_f('alter table inus_d add column d int'));
copy inus_d (a) from stdin;
1
2
\.
select * from inus_d;
create function inus_g(int) returns int language plpgsql immutable as $$
begin raise warning '%', inus_f('alter table inus_d add column d int'); return $1; end $$;
alter table inus_d alter a type int using inus_g(a);
alter table inus_d add check (inus_g(a) > 0);
create index inus_d_g on inus_d (inus_g(a));
drop table inus_d;
create table inus_d as select inus_f('drop table inus_t cascade') as f from inus_t where a = 1;
select * from inus_d;
drop table inus_d;
create materialized view inus_n as select inus_f('drop materialized view inus_n') as f from inus_t where a = 1 with no data;
refresh materialized view inus_n;
select * from inus_n;
drop materialized view inus_n;
-- nested calls: what a caller of a caller uses
create function inus_h(q text) returns text language plpgsql as $$
declare said text;
begin
  select inus_f(q) into said from inus_o limit 1;
  return said;
end $$;
create function inus_i(q text) returns text language sql as 'select inus_h(q)';
select inus_i('alter table inus_t add d int') from inus_t where a = 1;
select inus_i('alter table inus_o add d int') from inus_t where a = 1;
select inus_i('alter table inus_q add d int') from inus_t where a = 1;
select inus_i('truncate inus_t');
-- an error in the midst leaves nothing behind
select 1 / (a - 2), inus_h('truncate inus_t') from inus_t order by a;
truncate inus_o;
insert into inus_o values (1);
begin;
savepoint s;
select inus_h('truncate inus_t'), 1 / (a - 2) from inus_t order by a;
rollback to s;
alter table inus_t add column d int;
rollback;
do $$
begin
  begin
    perform 1 / (a - 1) from inus_t;
  exception when division_by_zero then null;
  end;
  raise warning '%', inus_f('alter table inus_t add column d int');
end $$;
-- cursors
begin;
declare c cursor for select * from inus_t order by a;
select q, inus_f(q) from inus_q where n in (1, 13, 14, 16, 22) order by n;
alter table inus_t add column d int;
rollback;
begin;
declare c cursor for select * from inus_t order by a;
fetch all from c;
select inus_f('truncate inus_t');
move backward all from c;
select inus_f('truncate inus_t');
close c;
select inus_f('truncate inus_t');
rollback;
begin;
declare c cursor for select * from inus_t;
truncate inus_t;
rollback;
begin;
declare c cursor with hold for select * from inus_t order by a;
select inus_f('truncate inus_t');
commit;
select inus_f('truncate inus_t');
fetch c;
close c;
begin;
savepoint s;
declare c cursor for select * from inus_t;
declare d cursor for select * from inus_o;
rollback to s;
select inus_f('truncate inus_t'), inus_f('truncate inus_o');
rollback;
begin;
savepoint s;
declare c cursor for select * from inus_t;
release s;
select inus_f('truncate inus_t');
close all;
select inus_f('truncate inus_t');
rollback;
begin;
declare c cursor for select 1 / (a - 1) from inus_t where a = 1;
savepoint s;
fetch c;
rollback to s;
select inus_f('truncate inus_t');
rollback;
begin;
declare c cursor for select 1 from inus_o where exists (select from inus_t where a = 1);
declare d cursor for select * from inus_m;
declare e cursor for select last_value from inus_s;
select inus_f('drop table inus_t cascade'), inus_f('refresh materialized view inus_m');
select inus_f('drop materialized view inus_m'), inus_f('alter materialized view inus_m rename to inus_mm');
select inus_f('drop sequence inus_s'), inus_f('alter sequence inus_s increment 2');
drop materialized view inus_m;
rollback;
begin;
set local enable_seqscan = off;
declare c cursor for select * from inus_t where b = 1;
select inus_f('drop index inus_t_b'), inus_f('reindex index inus_t_b');
close c;
select inus_f('drop index inus_t_b'), inus_f('reindex index inus_t_b');
rollback;
-- partitions
begin;
declare c cursor for select * from inus_r;
select inus_f('alter table inus_r add z int'), inus_f('truncate inus_r');
select inus_f('alter table inus_r1 alter b set default 1'), inus_f('drop table inus_r1'), inus_f('truncate inus_r2');
select inus_f('create table inus_r3 partition of inus_r for values from (20) to (30)');
select inus_f('create index on inus_r (a)'), inus_f('create index on inus_r1 (a)');
rollback;
begin;
declare c cursor for select * from inus_r where a = 1;
select inus_f('alter table inus_r add z int'), inus_f('truncate inus_r');
select inus_f('drop table inus_r1'), inus_f('drop table inus_r2'), inus_f('truncate inus_r2');
rollback;
begin;
declare c cursor for select * from inus_r1;
select inus_f('alter table inus_r add z int'), inus_f('drop table inus_r');
select inus_f('alter table inus_r detach partition inus_r2'), inus_f('truncate inus_r2');
rollback;
insert into inus_r select 2, length(inus_f('alter table inus_r add z int'));
insert into inus_r select 2, length(inus_f('create table inus_r3 partition of inus_r for values from (20) to (30)'));
insert into inus_r select 2, length(inus_f('alter table inus_r detach partition inus_r2'));
update inus_r set b = length(inus_f('truncate inus_r')) where a = 2;
select * from inus_r order by a, b;
-- PL/pgSQL's loops
do $$
declare r record;
begin
  for r in select * from inus_t limit 1 loop
    raise warning 'in: %', inus_f('truncate inus_t');
    exit;
  end loop;
  raise warning 'behind: %', inus_f('truncate inus_t');
  for r in execute 'select * from inus_t limit 1' loop
    raise warning 'execute: %', inus_f('truncate inus_t');
  end loop;
  for r in select * from inus_o loop
    begin
      for r in select 1 / (a - 1) from inus_t loop null; end loop;
    exception when division_by_zero then
      raise warning 'caught: % %', inus_f('truncate inus_t'), inus_f('truncate inus_o');
    end;
  end loop;
  if exists (select from inus_t) then
    raise warning 'if: %', inus_f('truncate inus_t');
  end if;
end $$;
create function inus_l() returns setof inus_t language plpgsql as $$
begin
  return query select * from inus_t;
  raise warning 'returned: %', inus_f('truncate inus_t');
end $$;
select count(*) > 0 from inus_l();
create procedure inus_c() language plpgsql as $$
declare r record;
begin
  for r in select * from inus_o loop
    raise warning 'before: %', inus_f('truncate inus_o');
    commit;
    raise warning 'committed: %', inus_f('truncate inus_o');
  end loop;
  truncate inus_o;
end $$;
call inus_c();
insert into inus_o values (1);
-- triggers
create function inus_z() returns trigger language plpgsql as $$
begin
  raise warning '% %: %', tg_when, tg_op, inus_f(tg_argv[0]);
  if tg_op = 'DELETE' then return old; end if;
  return new;
end $$;
create trigger inus_1 before insert on inus_o for each row execute function inus_z('alter table inus_o add z int');
create trigger inus_2 after insert on inus_o for each row execute function inus_z('drop table inus_o');
create trigger inus_3 after insert on inus_o for each statement execute function inus_z('create index on inus_o (a)');
create constraint trigger inus_4 after insert on inus_o deferrable initially deferred for each row execute function inus_z('alter table inus_o add z int');
create trigger inus_5 before truncate on inus_o for each statement execute function inus_z('alter table inus_o add z int');
create trigger inus_6 before delete on inus_o for each row execute function inus_z('drop trigger inus_1 on inus_o');
insert into inus_o values (2);
begin;
insert into inus_o values (3);
select inus_f('alter table inus_o add z int'), inus_f('drop table inus_o'), inus_f('create index on inus_o (a)');
select inus_f('truncate inus_o'), inus_f('alter table inus_o rename to inus_oo');
set constraints all immediate;
select inus_f('truncate inus_t');
rollback;
delete from inus_o where a = 2;
truncate inus_o;
-- temporary tables
create temporary table inus_y (a int);
insert into inus_y values (1), (2);
select inus_f('alter table inus_y add z int'), inus_f('drop table inus_y'), inus_f('truncate inus_y') from inus_y;
select inus_f('discard temp') from inus_y limit 1;
begin;
declare c cursor for select * from inus_y;
drop table inus_y;
rollback;
select * from inus_y order by a;
-- what is dropped with other objects
begin;
create schema inus_a;
create table inus_a.t (a int);
insert into inus_a.t values (1);
create type inus_k as enum ('p');
create table inus_b (a int, k inus_k);
insert into inus_b values (1, 'p');
select inus_f('drop schema inus_a cascade') from inus_a.t;
select inus_f('drop table inus_b') from inus_a.t;
rollback;
reset client_min_messages;
drop procedure inus_c();
drop function inus_l();
drop table inus_r, inus_y, inus_q;
drop materialized view inus_m;
drop table inus_o;
drop view inus_v;
drop table inus_t;
drop sequence inus_s;
drop schema inus_e;
drop function inus_f, inus_g, inus_h, inus_i, inus_z;
