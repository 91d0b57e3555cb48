-- names: mrgt
-- MERGE: clauses, what is refused, twice, triggers, row security, privileges, generated columns, partitions.
create table mrgt_t (k int primary key, v text, n int default 7);
create table mrgt_s (k int, v text);
insert into mrgt_t values (1,'one'), (2,'two'), (3,'three');
insert into mrgt_s values (2,'zwei'), (3,'drei'), (4,'vier'), (null,'null');
merge into mrgt_t t using mrgt_s s on t.k = s.k when matched and s.v = 'drei' then delete when matched then update set v = s.v, n = t.n + 1 when not matched and s.k is null then do nothing when not matched then insert (k, v) values (s.k, s.v);
select * from mrgt_t order by k;
merge into mrgt_t using mrgt_s on mrgt_t.k = mrgt_s.k when matched then do nothing;
merge into mrgt_t t using (values (9,'x')) s(k,v) on t.k = s.k when not matched then insert values (s.k, s.v);
merge into mrgt_t t using (select 10 as k) s on t.k = s.k when not matched then insert (k) values (s.k);
merge into mrgt_t t using (select 11 as k) s on false when not matched then insert (v, k) values (default, s.k);
merge into mrgt_t t using mrgt_s s on t.k = s.k when matched then update set (v, n) = (select s.v || '!', 5);
with x as (select 1 as k, 'uno' as v) merge into mrgt_t t using x on t.k = x.k when matched then update set v = x.v;
select * from mrgt_t order by k;
-- A row twice.
merge into mrgt_t t using (values (1),(1)) s(k) on t.k = s.k when matched then update set n = 0;
merge into mrgt_t t using (values (1),(1)) s(k) on t.k = s.k when matched then delete;
merge into mrgt_t t using (values (1),(1)) s(k) on t.k = s.k when matched then do nothing;
merge into mrgt_t t using (values (77),(77)) s(k) on t.k = s.k when not matched then insert values (s.k);
select count(*) from mrgt_t;
-- What is refused.
create view mrgt_v as select * from mrgt_t;
create materialized view mrgt_m as select * from mrgt_t;
merge into mrgt_v t using mrgt_s s on t.k = s.k when matched then delete;
merge into mrgt_m t using mrgt_s s on t.k = s.k when matched then delete;
drop view mrgt_v;
drop materialized view mrgt_m;
merge into mrgt_t using mrgt_t on true when matched then delete;
merge into mrgt_t t using mrgt_s t on true when matched then delete;
merge into mrgt_t t using mrgt_s s on t.k=s.k when matched then delete when matched then update set v = '1';
merge into mrgt_t t using mrgt_s s on t.k=s.k
  when matched then insert values (1);
merge into mrgt_t t using mrgt_s s on t.k=s.k when not matched then delete;
merge into mrgt_t t using mrgt_s s on t.k=s.k when not matched then insert (k) values (1,2);
merge into mrgt_t t using mrgt_s s on t.k=s.k
  when not matched then insert (k,v) values (1);
merge into mrgt_t t using mrgt_s s on t.k=s.k
  when not matched then insert (k,k) values (1,2);
merge into mrgt_t t using mrgt_s s on t.k=s.k when not matched then insert (zz) values (1);
merge into mrgt_t t using mrgt_s s on t.k=s.k when matched then update set zz = 1;
merge into mrgt_t t using mrgt_s s on t.k=s.k when matched then update set v = '1', v = '2';
merge into mrgt_t t using mrgt_s s on t.k=s.k
  when matched and count(*) > 1 then do nothing;
merge into mrgt_t t using mrgt_s s on t.k=s.k
  when matched and s.k then do nothing;
merge into mrgt_t t using mrgt_nosuch s on t.k=s.k when matched then do nothing;
merge into mrgt_nosuch t using mrgt_s s on t.k=s.k when matched then do nothing;
with x as (merge into mrgt_t t using mrgt_s s on t.k=s.k when matched then do nothing) select 1;
copy (merge into mrgt_t t using mrgt_s s on t.k=s.k when matched then do nothing) to stdout;
merge into mrgt_t t using mrgt_s s on t.k=s.k when not matched then insert values (null);
merge into mrgt_t t using mrgt_s s on t.k=s.k when matched then update set k = 'x';
begin read only;
merge into mrgt_t t using mrgt_s s on t.k=s.k when matched then do nothing;
merge into mrgt_t t using mrgt_s s on t.k=s.k when matched then delete;
rollback;
-- Prepared, in functions, in blocks.
prepare mrgt_p(int, text) as merge into mrgt_t t using (select $1 as k, $2 as v) s on t.k = s.k when matched then update set v = s.v when not matched then insert values (s.k, s.v);
execute mrgt_p(1, 'p1');
execute mrgt_p(20, 'p20');
deallocate mrgt_p;
create function mrgt_f(a int) returns int language plpgsql as $$
declare n int;
begin
  merge into mrgt_t t using (select a as k) s on t.k = s.k when matched then update set n = 99 when not matched then insert values (a, 'f');
  get diagnostics n = row_count;
  return n;
end $$;
select mrgt_f(1), mrgt_f(21);
drop function mrgt_f;
create function mrgt_q() returns void language sql as $$ merge into mrgt_t t using mrgt_s s on t.k = s.k when matched then delete $$;
select mrgt_q();
drop function mrgt_q;
select * from mrgt_t order by k;
-- Triggers.
create function mrgt_note() returns trigger language plpgsql as $$
begin
  raise notice '% % % old % new %', tg_when, tg_level, tg_op, old, new;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end $$;
create trigger mrgt_b before insert or update or delete on mrgt_t for each row execute function mrgt_note();
create trigger mrgt_a after insert or update or delete on mrgt_t for each row execute function mrgt_note();
create trigger mrgt_bs before insert or update or delete on mrgt_t for each statement execute function mrgt_note();
create trigger mrgt_as after insert or update or delete on mrgt_t for each statement execute function mrgt_note();
merge into mrgt_t t using (values (1),(9),(30)) s(k) on t.k = s.k when matched and s.k = 9 then delete when matched then update set n = 1 when not matched then insert values (s.k, 'tr');
merge into mrgt_t t using (values (1)) s(k) on t.k = s.k when matched then do nothing;
merge into mrgt_t t using (values (1),(1)) s(k) on t.k = s.k when matched then update set n = 0;
drop trigger mrgt_b on mrgt_t;
drop trigger mrgt_a on mrgt_t;
drop trigger mrgt_bs on mrgt_t;
drop trigger mrgt_as on mrgt_t;
drop function mrgt_note;
create function mrgt_skip() returns trigger language plpgsql as 'begin return null; end';
create trigger mrgt_b before insert or update or delete on mrgt_t for each row execute function mrgt_skip();
merge into mrgt_t t using (values (1),(31)) s(k) on t.k = s.k when matched then update set n = 55 when not matched then insert values (s.k);
drop trigger mrgt_b on mrgt_t;
drop function mrgt_skip;
select * from mrgt_t order by k;
-- Moving keys, keys that are taken, foreign keys.
merge into mrgt_t t using (values (1, 101)) s(k, to_k) on t.k = s.k when matched then update set k = s.to_k;
merge into mrgt_t t using (values (101, 2)) s(k, to_k) on t.k = s.k when matched then update set k = s.to_k;
create table mrgt_r (k int references mrgt_t on delete cascade);
insert into mrgt_r values (101);
merge into mrgt_r r using (values (12345)) s(k) on false when not matched then insert values (s.k);
merge into mrgt_t t using (values (101)) s(k) on t.k = s.k when matched then delete;
select * from mrgt_r;
drop table mrgt_r;
-- Generated and identity columns.
create table mrgt_g (id int generated always as identity, a int, b int generated always as (a * 2) stored);
merge into mrgt_g t using (values (1)) s(a) on t.a = s.a when not matched then insert (a) values (s.a);
merge into mrgt_g t using (values (2)) s(a) on t.a = s.a when not matched then insert (a) values (s.a);
merge into mrgt_g t using (values (5)) s(a) on t.a = s.a when not matched then insert values (1, s.a);
merge into mrgt_g t using (values (5)) s(a) on t.a = s.a when not matched then insert overriding system value values (100, s.a);
merge into mrgt_g t using (values (6)) s(a) on t.a = s.a when not matched then insert overriding user value values (100, s.a);
merge into mrgt_g t using (values (7)) s(a) on t.a = s.a when not matched then insert default values;
merge into mrgt_g t using (values (1)) s(a) on t.a = s.a when matched then update set a = 10, b = default;
merge into mrgt_g t using (values (2)) s(a) on t.a = s.a when matched then update set b = 1;
select * from mrgt_g order by id;
drop table mrgt_g;
-- Partitions.
create table mrgt_p (k int, v text) partition by range (k);
create table mrgt_p1 partition of mrgt_p for values from (0) to (10);
create table mrgt_p2 partition of mrgt_p for values from (10) to (20);
insert into mrgt_p values (1,'a'), (2,'b'), (11,'c');
merge into mrgt_p t using (values (1,15),(2,2),(11,0),(12,0)) s(k,to_k) on t.k = s.k when matched and s.to_k = 0 then delete when matched then update set k = s.to_k, v = v || '!' when not matched then insert values (s.k, 'new');
select tableoid::regclass, * from mrgt_p order by k;
merge into mrgt_p t using (values (99)) s(k) on t.k = s.k when not matched then insert values (s.k, 'far');
merge into mrgt_p t using (values (2),(2)) s(k) on t.k = s.k when matched then update set v = 'twice';
drop table mrgt_p;
-- Who may.
create role mrgt_who;
grant usage, create on schema public to mrgt_who;
set role mrgt_who;
merge into mrgt_t t using (values (1)) s(k) on t.k = s.k when matched then delete;
reset role;
grant select on mrgt_t to mrgt_who;
set role mrgt_who;
merge into mrgt_t t using (values (4)) s(k) on t.k = s.k when matched then delete;
merge into mrgt_t t using (values (4)) s(k) on t.k = s.k when matched then update set v = 'w';
merge into mrgt_t t using (values (4)) s(k) on t.k = s.k when not matched then insert values (1);
merge into mrgt_t t using (values (4)) s(k) on t.k = s.k when matched then do nothing;
merge into mrgt_t t using mrgt_s s on t.k = s.k when matched then do nothing;
reset role;
grant update (v), insert (k) on mrgt_t to mrgt_who;
set role mrgt_who;
merge into mrgt_t t using (values (4)) s(k) on t.k = s.k when matched then update set v = 'w';
merge into mrgt_t t using (values (4)) s(k) on t.k = s.k when matched then update set n = 1;
merge into mrgt_t t using (values (44)) s(k) on t.k = s.k when not matched then insert (k) values (s.k);
merge into mrgt_t t using (values (45)) s(k) on t.k = s.k when not matched then insert (k, v) values (s.k, 'x');
reset role;
-- Row security.
grant all on mrgt_t to mrgt_who;
alter table mrgt_t enable row level security;
create policy mrgt_see on mrgt_t for select using (k < 100);
create policy mrgt_up on mrgt_t for update using (n = 7) with check (v <> 'bad');
create policy mrgt_del on mrgt_t for delete using (k = 30);
create policy mrgt_in on mrgt_t for insert with check (k > 50);
insert into mrgt_t values (5,'five',8), (6,'six',7), (200,'hidden',7);
set role mrgt_who;
merge into mrgt_t t using (values (5)) s(k) on t.k = s.k when matched then update set v = 'x';
merge into mrgt_t t using (values (6)) s(k) on t.k = s.k when matched then update set v = 'bad';
merge into mrgt_t t using (values (6)) s(k) on t.k = s.k when matched then update set v = 'good';
merge into mrgt_t t using (values (6)) s(k) on t.k = s.k when matched then delete;
merge into mrgt_t t using (values (200)) s(k) on t.k = s.k when matched then update set v = 'seen' when not matched then do nothing;
merge into mrgt_t t using (values (40)) s(k) on t.k = s.k when not matched then insert (k) values (s.k);
merge into mrgt_t t using (values (60)) s(k) on t.k = s.k when not matched then insert (k) values (s.k);
merge into mrgt_t t using (values (300)) s(k) on t.k = s.k when not matched then insert (k) values (s.k);
merge into mrgt_t t using (values (6)) s(k) on t.k = s.k when matched then update set k = 500;
merge into mrgt_t t using (values (30)) s(k) on t.k = s.k when matched then delete;
select * from mrgt_t order by k;
reset role;
select * from mrgt_t order by k;
drop table mrgt_t;
drop table mrgt_s;
revoke all on schema public from mrgt_who;
drop role mrgt_who;
