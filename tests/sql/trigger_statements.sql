-- names: trs
create table trs_log (n serial, line text);
create table trs_t (id int primary key, a int);
create function trs_say() returns trigger language plpgsql as $$
begin
  insert into trs_log (line) values (tg_when || ' ' || tg_op || ' ' || tg_level || ' ' || tg_name || ' ' || tg_table_name || ' ' || (select count(*) from trs_t));
  return null;
end $$;
create function trs_pass() returns trigger language plpgsql as $$
begin
  insert into trs_log (line) values (tg_when || ' ' || tg_op || ' ' || tg_level || ' ' || coalesce(new.id, old.id));
  return coalesce(new, old);
end $$;
create trigger trs_b before insert or update or delete or truncate on trs_t execute function trs_say();
create trigger trs_a after insert or update or delete or truncate on trs_t for each statement execute function trs_say();
create trigger trs_r before insert or update or delete on trs_t for each row execute function trs_pass();
create trigger trs_ra after insert or update or delete on trs_t for each row execute function trs_pass();
insert into trs_t values (1, 1), (2, 2);
insert into trs_t select 1, 1 where false;
update trs_t set a = 0 where id = 77;
update trs_t set a = a + 1;
insert into trs_t values (2, 9), (3, 3) on conflict (id) do update set a = excluded.a;
insert into trs_t values (2, 9) on conflict do nothing;
insert into trs_t values (11, 0);
copy trs_t from stdin;
21	1
22	2
\.
delete from trs_t where id > 20;
truncate trs_t;
select line from trs_log order by n;
truncate trs_log;
create trigger trs_of before update of a on trs_t execute function trs_say();
create trigger trs_when before update on trs_t when (false) execute function trs_say();
create trigger trs_when2 after update on trs_t when (pg_trigger_depth() = 0) execute function trs_say();
update trs_t set id = id;
update trs_t set a = 1;
select line from trs_log order by n;
create function trs_new() returns trigger language plpgsql as $$ begin raise notice '%', new; return null; end $$;
create trigger trs_new before insert on trs_t execute function trs_new();
insert into trs_t values (1, 1);
drop table trs_t;
-- TRUNCATE
create table trs_p (id int primary key);
create table trs_c (id int references trs_p);
create function trs_trunc() returns trigger language plpgsql as $$ declare n int; begin execute 'select count(*) from ' || tg_table_name into n; raise notice '% % % %', tg_when, tg_op, tg_table_name, n; return null; end $$;
create trigger trs_b before truncate on trs_p execute function trs_trunc();
create trigger trs_a after truncate on trs_p execute function trs_trunc();
create trigger trs_b before truncate on trs_c execute function trs_trunc();
insert into trs_p values (1), (2); insert into trs_c values (1);
truncate trs_p;
truncate trs_p cascade;
create function trs_no() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$;
create trigger trs_no before truncate on trs_c execute function trs_no();
insert into trs_p values (1);
truncate trs_p, trs_c;
select * from trs_p;
drop table trs_c, trs_p;
-- what foreign keys do
create table trs_p (id int primary key);
create table trs_c (id int primary key, p int references trs_p on delete cascade on update set null);
create function trs_tell() returns trigger language plpgsql as $$ begin raise notice '% % % %', tg_table_name, tg_op, tg_when, tg_level; return coalesce(new, old); end $$;
create trigger trs_b before update or delete on trs_c execute function trs_tell();
create trigger trs_a after update or delete on trs_c execute function trs_tell();
create trigger trs_of after update of id on trs_c execute function trs_tell();
create trigger trs_r after update or delete on trs_c for each row execute function trs_tell();
create trigger trs_b before update or delete on trs_p execute function trs_tell();
create trigger trs_a after update or delete on trs_p execute function trs_tell();
insert into trs_p values (1), (2), (3); insert into trs_c values (1, 1), (2, 2), (3, 3), (4, 3);
delete from trs_p where id < 3;
update trs_p set id = 33;
update trs_p set id = 34;
drop table trs_c, trs_p;
-- records field by field
create table trs_t (id int, "B" text);
create table trs_h (op text, id int, b text);
create function trs_star() returns trigger language plpgsql as $$
declare r record;
begin
  insert into trs_h select tg_op, new.*;
  insert into trs_h values (tg_op || ' values', new.*);
  insert into trs_h (id, b) select (new).*;
  insert into trs_h (id, b) values (old.*);
  if row(old.*) is distinct from row(new.*) then raise notice 'another row'; end if;
  for r in select trs_t.* from trs_t loop raise notice '%', r; end loop;
  insert into trs_h select new.*, 1, 2;
  return null;
end $$;
create trigger trs_star after insert on trs_t for each row execute function trs_star();
insert into trs_t values (1, 'x');
select * from trs_h;
create or replace function trs_star() returns trigger language plpgsql as $$
begin
  insert into trs_h select tg_op, new.*;
  insert into trs_h values (tg_op || ' values', new.*);
  insert into trs_h (id, b) select (new).*;
  insert into trs_h (id, b) values (old.*);
  if row(old.*) is distinct from row(new.*) then raise notice 'another row'; end if;
  return null;
end $$;
insert into trs_t values (1, 'x');
select * from trs_h;
drop table trs_t, trs_h;
-- rows as tables
create table trs_t (id int primary key, a int, t text);
create function trs_both() returns trigger language plpgsql as $$
declare r record;
begin
  raise notice '% %: % old, % new', tg_op, tg_level, (select count(*) from gone), (select sum(a) from made);
  for r in select m.id, g.a as was, m.a as "is" from made m join gone g using (id) order by 1 loop
    raise notice '%', r;
  end loop;
  return null;
end $$;
create function trs_made() returns trigger language plpgsql as $$
begin
  insert into trs_log (line) select 'made ' || id || ' ' || coalesce(t, '-') from made order by id;
  return null;
end $$;
create function trs_gone() returns trigger language plpgsql as $$
begin
  raise notice 'gone %', (select string_agg(id || t, ' ' order by id) from gone);
  return null;
end $$;
truncate trs_log;
create trigger trs_u after update on trs_t referencing old table as gone new table as made for each statement execute function trs_both();
create trigger trs_i after insert on trs_t referencing new table as made for each statement execute function trs_made();
create trigger trs_d after delete on trs_t referencing old table as gone for each statement execute function trs_gone();
insert into trs_t values (1, 1, 'x'), (2, 2, 'y'), (3, 3, null);
update trs_t set a = a * 10 where id > 1;
update trs_t set a = a * 10 where id > 10;
insert into trs_t values (3, 7, 'z'), (4, 8, 'w') on conflict (id) do update set a = excluded.a;
copy trs_t from stdin;
5	5	e
6	6	f
\.
delete from trs_t where id > 4;
select line from trs_log order by n;
create trigger trs_row after update on trs_t referencing new table as made old table as gone for each row execute function trs_both();
update trs_t set a = 0 where id <= 2;
drop trigger trs_row on trs_t;
create function trs_write() returns trigger language plpgsql as $$ begin delete from made; return null; end $$;
create trigger trs_zz after insert on trs_t referencing new table as made execute function trs_write();
insert into trs_t values (9, 9);
drop trigger trs_zz on trs_t;
select pg_get_triggerdef(oid) from pg_trigger where tgrelid = 'trs_t'::regclass order by tgname;
select trigger_name, action_reference_old_table, action_reference_new_table from information_schema.triggers where event_object_table = 'trs_t' order by 1;
select * from made;
drop table trs_t;
-- INSTEAD OF
create table trs_x (id int primary key, v text);
create table trs_y (id int primary key, w text);
create view trs_v as select x.id, v, w from trs_x x left join trs_y y using (id);
insert into trs_v values (1, 'a', 'b');
update trs_v set v = 'x';
delete from trs_v;
create function trs_view() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into trs_x values (new.id, new.v);
    insert into trs_y values (new.id, new.w);
    new.w := new.w || '!';
    return new;
  elsif tg_op = 'UPDATE' then
    if new.v = 'skip' then return null; end if;
    update trs_x set id = new.id, v = new.v where id = old.id;
    update trs_y set id = new.id, w = new.w where id = old.id;
    return new;
  end if;
  delete from trs_x where id = old.id;
  delete from trs_y where id = old.id;
  return old;
end $$;
create trigger trs_vi instead of insert or update or delete on trs_v for each row execute function trs_view();
create trigger trs_vs after insert or update or delete on trs_v for each statement execute function trs_trunc();
insert into trs_v values (1, 'a', 'b'), (2, 'c', 'd') returning *;
insert into trs_v (id) values (3) returning *;
update trs_v set v = upper(v), w = id::text where id < 3 returning *;
update trs_v set v = 'skip' returning *;
update trs_v set w = s.t from (values (1, 'from')) s(i, t) where id = s.i returning id, s.t;
delete from trs_v where id = 2 returning *;
copy trs_v from stdin;
7	seven	sept
\.
select * from trs_v order by id;
select * from trs_y order by id;
select table_name, is_updatable, is_insertable_into, is_trigger_updatable, is_trigger_deletable, is_trigger_insertable_into from information_schema.views where table_name = 'trs_v';
create or replace view trs_v as select x.id, v, w, 1 as one from trs_x x left join trs_y y using (id);
select tgname, tgtype from pg_trigger where tgrelid = 'trs_v'::regclass order by 1;
drop trigger trs_vi on trs_v;
insert into trs_v values (1, 'a', 'b');
drop view trs_v;
-- constraint triggers
create table trs_k (id int primary key, total int);
create table trs_l (id int, k int, part int);
create function trs_sum() returns trigger language plpgsql as $$
declare s int; t int;
begin
  select sum(part) into s from trs_l where k = new.k;
  select total into t from trs_k where id = new.k;
  if s is distinct from t then raise exception 'k %: % is not %', new.k, s, t using errcode = '23514'; end if;
  raise notice 'k % is right', new.k;
  return null;
end $$;
create constraint trigger trs_sum after insert or update on trs_l deferrable initially deferred for each row execute function trs_sum();
create constraint trigger trs_now after insert on trs_l from trs_k for each row when (new.part < 0) execute function trs_sum();
insert into trs_k values (1, 10), (2, 5);
insert into trs_l values (1, 2, 5);
insert into trs_l values (2, 1, 5);
begin;
insert into trs_l values (2, 1, 5);
insert into trs_l values (3, 1, 5);
commit;
begin;
insert into trs_l values (4, 1, 5);
set constraints trs_sum immediate;
rollback;
begin;
set constraints all immediate;
insert into trs_l values (4, 1, 5);
rollback;
begin;
insert into trs_l values (4, 1, -5);
rollback;
begin;
savepoint s;
insert into trs_l values (4, 1, 5);
rollback to s;
insert into trs_l values (5, 2, 0);
alter table trs_l add column x int;
commit;
begin;
insert into trs_l values (5, 2, 0);
drop trigger trs_sum on trs_l;
commit;
set constraints trs_now deferred;
begin;
set constraints trs_now deferred;
rollback;
begin;
insert into trs_l values (6, 2, 1);
update trs_l set part = 0 where id = 6;
commit;
select * from trs_l order by id;
select conname, contype, condeferrable, condeferred from pg_constraint where conrelid = 'trs_l'::regclass order by 1;
select pg_get_triggerdef(oid), tgdeferrable, tginitdeferred, tgconstraint <> 0 from pg_trigger where tgrelid = 'trs_l'::regclass order by tgname;
create or replace trigger trs_sum after insert on trs_l for each row execute function trs_sum();
create or replace constraint trigger trs_sum after insert on trs_l for each row execute function trs_sum();
create constraint trigger trs_b before insert on trs_l for each row execute function trs_sum();
create constraint trigger trs_b after insert on trs_l for each statement execute function trs_sum();
drop table trs_k;
drop table trs_k cascade;
drop table trs_l;
