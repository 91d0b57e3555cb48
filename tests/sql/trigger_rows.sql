-- names: trr
create table trr_log (n serial, line text);
create table trr_p (id int primary key, v text);
create table trr_c (id int primary key, p int references trr_p on delete cascade on update cascade, w int);
create table trr_n (id int primary key, p int references trr_p on delete set null);
create function trr_say() returns trigger language plpgsql as $$
begin
  insert into trr_log (line) values (tg_table_name || ' ' || tg_when || ' ' || tg_op || ' ' || tg_name || ' ' || coalesce(old::text, '-') || ' ' || coalesce(new::text, '-') || ' ' || pg_trigger_depth());
  return coalesce(new, old);
end $$;
create trigger trr_b before insert or update or delete on trr_p for each row execute function trr_say();
create trigger trr_a after insert or update or delete on trr_p for each row execute function trr_say();
create trigger trr_b before insert or update or delete on trr_c for each row execute function trr_say();
create trigger trr_a after insert or update or delete on trr_c for each row execute function trr_say();
create trigger "A_first" after delete on trr_p for each row execute function trr_say();
create trigger trr_b before update on trr_n for each row execute function trr_say();
create trigger trr_of before update of p on trr_n for each row execute function trr_say();
create trigger trr_of2 before update of id on trr_n for each row execute function trr_say();
insert into trr_p values (1, 'a'), (2, 'b'), (3, 'c');
insert into trr_c values (11, 1, 1), (12, 1, 2), (21, 2, 1);
insert into trr_n values (101, 1), (102, 3);
truncate trr_log;
update trr_p set id = 20 where id = 2;
delete from trr_p where id in (1, 3);
select line from trr_log order by n;
select * from trr_p; select * from trr_c order by id; select * from trr_n order by id;
-- a child's BEFORE trigger that keeps its row
create function trr_keep() returns trigger language plpgsql as 'begin return null; end';
create trigger trr_keep before delete on trr_c for each row execute function trr_keep();
delete from trr_p where id = 20;
select count(*) from trr_p; select * from trr_c;
drop table trr_n, trr_c, trr_p;
-- 27000
create table trr_t (id int primary key, a int, note text);
insert into trr_t select i, 0, 'n' || i from generate_series(1, 4) i;
create function trr_touch() returns trigger language plpgsql as $$
begin
  update trr_t set a = a + 10 where id = 3 - old.id;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end $$;
create trigger trr_touch before update or delete on trr_t for each row when (pg_trigger_depth() = 0) execute function trr_touch();
update trr_t set a = 1 where id = 1;
select * from trr_t order by id;
update trr_t set a = 1 where id <= 2;
delete from trr_t where id <= 2;
select * from trr_t order by id;
create function trr_self() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then update trr_t set note = 'self' where id = old.id; return old; end if;
  update trr_t set note = 'self' where id = new.id; return new;
end $$;
drop trigger trr_touch on trr_t;
create trigger trr_self before update or delete on trr_t for each row when (pg_trigger_depth() = 0) execute function trr_self();
update trr_t set a = 2 where id = 3;
delete from trr_t where id = 3;
drop trigger trr_self on trr_t;
create function trr_gone() returns trigger language plpgsql as $$ begin delete from trr_t where id = old.id; return coalesce(new, old); end $$;
create trigger trr_gone before update or delete on trr_t for each row when (pg_trigger_depth() = 0) execute function trr_gone();
update trr_t set a = 2 where id = 3;
delete from trr_t where id = 3;
drop trigger trr_gone on trr_t;
create trigger trr_after after update on trr_t for each row when (pg_trigger_depth() = 0) execute function trr_self();
update trr_t set a = 7 where id = 3 returning *;
select * from trr_t order by id;
drop trigger trr_after on trr_t;
-- the same row twice by a join
create trigger trr_say before update on trr_t for each row execute function trr_say();
truncate trr_log;
update trr_t set a = x from (values (1), (2)) v(x) where id = 4;
select count(*) from trr_log;
drop trigger trr_say on trr_t;
-- what a BEFORE trigger sees of its own statement
create function trr_count() returns trigger language plpgsql as $$ begin new.a := (select count(*) from trr_t); return new; end $$;
create trigger trr_count before insert on trr_t for each row execute function trr_count();
insert into trr_t (id) values (11), (12), (13) returning id, a;
alter function trr_count() stable;
insert into trr_t (id) values (14), (15) returning id, a;
alter function trr_count() volatile;
copy trr_t (id, note) from stdin;
21	x
22	y
\.
select id, a from trr_t where id > 20 order by id;
drop trigger trr_count on trr_t;
create function trr_late() returns trigger language plpgsql as $$ begin insert into trr_log (line) values ('late ' || new.id || ' ' || (select count(*) from trr_t)); return null; end $$;
create trigger trr_late after insert on trr_t for each row execute function trr_late();
truncate trr_log;
insert into trr_t (id) values (31), (32);
copy trr_t (id, note) from stdin;
33	x
34	y
\.
select line from trr_log order by n;
drop trigger trr_late on trr_t;
-- errors and their context
create function trr_fail() returns trigger language plpgsql as $$
begin
  if new.a < 0 then
    raise exception 'negative %', new.a using hint = 'do not';
  end if;
  new.a := 10 / new.a;
  return new;
end $$;
create trigger trr_fail before insert or update on trr_t for each row execute function trr_fail();
insert into trr_t values (41, -1);
insert into trr_t values (41, 0);
update trr_t set a = 0 where id = 1;
copy trr_t (id, a) from stdin;
42	1
43	-5
\.
copy trr_t (id, a) from stdin;
49	1
1	5
\.
create function trr_outer() returns void language plpgsql as $$ begin insert into trr_t values (44, 0); end $$;
select trr_outer();
do $$ begin insert into trr_t values (45, -2); exception when others then raise notice 'caught %', sqlerrm; end $$;
select id from trr_t where id > 40;
begin;
savepoint s;
insert into trr_t values (46, 1);
insert into trr_t values (47, -1);
rollback to s;
insert into trr_t values (48, 2);
commit;
select id, a from trr_t where id > 40;
drop trigger trr_fail on trr_t;
-- checks come after, and see what the trigger has made
create table trr_k (id int primary key, a int not null check (a > 0), b text default 'dflt', u int unique);
create function trr_fix() returns trigger language plpgsql as $$ begin new.a := abs(coalesce(new.a, 5)); if new.b = 'dflt' then new.b := 'was default'; end if; if new.u = 1 then new.id := new.id + 100; end if; return new; end $$;
create trigger trr_fix before insert or update on trr_k for each row execute function trr_fix();
insert into trr_k values (1, null, 'x'), (2, -7, 'given'), (3, 0, 'zero');
insert into trr_k values (1, null, default), (2, -7, 'given');
insert into trr_k (id, u) values (1, 1) returning *;
insert into trr_k (id, u) values (2, 1) on conflict (u) do update set b = 'in the way ' || excluded.id returning *;
insert into trr_k (id, u) values (1, 9) on conflict (id) do nothing returning *;
update trr_k set u = 1 where id = 2;
update trr_k set id = 50, u = 2 where id = 2 returning *;
select * from trr_k order by id;
-- a trigger that moves keys
create function trr_move() returns trigger language plpgsql as $$ begin new.id := new.id * 2; return new; end $$;
create trigger trr_move before update on trr_k for each row execute function trr_move();
update trr_k set b = 'moved' where id = 50 returning id, b;
update trr_k set b = 'moved';
select id, b from trr_k order by id;
drop table trr_k;
-- SELECT INTO, FOUND, assignment of rows
create table trr_r (id int, d int, t text);
alter table trr_r drop column d;
alter table trr_r add column z int default 3;
create function trr_rows() returns trigger language plpgsql as $$
declare r trr_r%rowtype;
begin
  r := new;
  r.t := r.t || '!';
  new := r;
  if new is distinct from old then raise notice 'differs: % %', old, new; end if;
  raise notice '%', old is null;
  return r;
end $$;
create trigger trr_rows before insert or update on trr_r for each row execute function trr_rows();
insert into trr_r values (1, 'a');
update trr_r set z = 4;
select * from trr_r;
create function trr_into() returns trigger language plpgsql as $$ begin select 77, 'into' into new.id, new.t; return new; end $$;
create or replace trigger trr_rows before insert on trr_r for each row execute function trr_into();
insert into trr_r values (2, 'b');
select * from trr_r order by id;
drop table trr_r;
-- rows as a whole
create table trr_w (id int, d int, t text);
alter table trr_w drop column d;
create trigger trr_w after update on trr_w for each row when (old.* is distinct from new.*) execute function trr_say();
create trigger trr_w2 after update on trr_w for each row when (old.* is not distinct from new.* and new.id > 0) execute function trr_say();
select pg_get_triggerdef(oid) from pg_trigger where tgrelid = 'trr_w'::regclass order by tgname;
alter table trr_w rename column t to tt;
alter table trr_w add column t int;
truncate trr_log;
insert into trr_w values (1, 'x'), (2, null);
update trr_w set tt = tt;
update trr_w set tt = 'y' where id = 1;
update trr_w set t = 1 where id = 2;
select line from trr_log order by n;
alter table trr_w drop column tt;
select pg_get_triggerdef(oid) from pg_trigger where tgrelid = 'trr_w'::regclass order by tgname;
create table trr_g (id int, g int generated always as (id) stored);
create trigger trr_g before update on trr_g for each row when (old.* is distinct from new.*) execute function trr_say();
create trigger trr_g after update on trr_g for each row when (old.* is distinct from new.*) execute function trr_say();
drop table trr_w, trr_g;
-- what an audit keeps
create table trr_au (op text, o jsonb, n json);
create table trr_k (id int primary key, "V v" text, n numeric(5, 1));
create function trr_au() returns trigger language plpgsql as $$ begin insert into trr_au values (tg_op, to_jsonb(old), row_to_json(new)); return null; end $$;
create trigger trr_au after insert or update or delete on trr_k for each row execute function trr_au();
insert into trr_k values (1, 'x', 1.25);
update trr_k set "V v" = null;
delete from trr_k;
select * from trr_au;
drop table trr_k;
-- long values
create table trr_l (id int primary key, v text, w text);
create function trr_lens() returns trigger language plpgsql as $$ begin insert into trr_log (line) values (tg_op || ' ' || coalesce(old.id, new.id) || ' ' || coalesce(length(old.v), 0) || ' ' || coalesce(length(new.v), 0)); return coalesce(new, old); end $$;
create trigger trr_b before insert or update or delete on trr_l for each row execute function trr_lens();
create trigger trr_a after insert or update or delete on trr_l for each row execute function trr_lens();
truncate trr_log;
insert into trr_l select i, string_agg(md5(i::text || j::text), ''), 'w' from generate_series(1, 3) i, generate_series(1, 500) j group by i order by i;
update trr_l set w = 'z' where id = 1;
update trr_l set v = v || 'more' where id = 2;
update trr_l set v = 'short' where id = 3;
delete from trr_l where id <> 2;
select line from trr_log order by n;
select id, length(v), w from trr_l;
-- errors that its function catches itself
create table trr_once (id int primary key);
create function trr_catch() returns trigger language plpgsql as $$ begin begin insert into trr_once values (new.id); exception when unique_violation then raise notice 'twice %', new.id; end; return new; end $$;
create trigger trr_catch before insert on trr_l for each row execute function trr_catch();
insert into trr_once values (12);
insert into trr_l (id) values (11), (12), (13);
insert into trr_l (id) values (14), (11);
select * from trr_once order by id;
-- prepared statements
prepare trr_put as insert into trr_once values ($1) returning id;
create function trr_hundred() returns trigger language plpgsql as $$ begin new.id := new.id + 100; return new; end $$;
execute trr_put(51);
create trigger trr_hundred before insert on trr_once for each row execute function trr_hundred();
execute trr_put(52);
create or replace function trr_hundred() returns trigger language plpgsql as $$ begin new.id := new.id + 1000; return new; end $$;
execute trr_put(53);
alter table trr_once disable trigger trr_hundred;
execute trr_put(54);
alter table trr_once enable trigger trr_hundred;
execute trr_put(55);
drop trigger trr_hundred on trr_once;
execute trr_put(56);
deallocate trr_put;
drop table trr_l, trr_once;
-- nested and endless
create table trr_x (id int);
create function trr_endless() returns trigger language plpgsql as $$ begin insert into trr_x values (new.id + 1); return new; end $$;
create trigger trr_endless before insert on trr_x for each row when (new.id < 5) execute function trr_endless();
insert into trr_x values (1);
select array_agg(id) from trr_x;
select pg_trigger_depth();
-- a table that its own trigger changes
create function trr_ddl() returns trigger language plpgsql as $$ begin execute tg_argv[0]; return new; end $$;
create trigger trr_ddl before insert on trr_x for each row when (new.id > 100) execute function trr_ddl('drop table trr_x');
insert into trr_x values (101);
create or replace trigger trr_ddl after insert on trr_x for each row when (new.id > 100) execute function trr_ddl('alter table trr_x add column y int');
insert into trr_x values (101);
create or replace trigger trr_ddl after insert on trr_x for each row when (new.id > 100) execute function trr_ddl('truncate trr_x');
insert into trr_x values (101);
create or replace trigger trr_ddl after insert on trr_x for each row when (new.id > 100) execute function trr_ddl('drop trigger trr_ddl on trr_x');
insert into trr_x values (101);
create or replace trigger trr_ddl after insert on trr_x for each row when (new.id > 100) execute function trr_ddl('create table trr_made (i int)');
insert into trr_x values (102);
insert into trr_x values (103);
select count(*) from trr_made;
drop table trr_made;
create or replace trigger trr_ddl after insert on trr_x for each row when (new.id > 100) execute function trr_ddl('commit');
insert into trr_x values (104);
drop table trr_x;
-- many rows
create table trr_m (id int primary key, a int);
create function trr_plus() returns trigger language plpgsql as $$ begin new.a := new.id + 1; return new; end $$;
create trigger trr_plus before insert on trr_m for each row execute function trr_plus();
insert into trr_m select i from generate_series(1, 3000) i;
select count(*), sum(a) from trr_m;
create function trr_sum() returns trigger language plpgsql as $$ begin update trr_log set line = (line::int + 1)::text where n = -1; return null; end $$;
insert into trr_log values (-1, '0');
create trigger trr_sum after update on trr_m for each row execute function trr_sum();
update trr_m set a = 0 where id <= 500;
select line from trr_log where n = -1;
drop table trr_m;
