-- names: ptr
-- Triggers of partitioned tables: those of rows are the partitions', those of statements stay.
create function ptr_say() returns trigger language plpgsql as $$
begin
  raise notice '% % % % on %', tg_name, tg_when, tg_level, tg_op, tg_table_name;
  if tg_level = 'STATEMENT' then return null; end if;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end $$;
create function ptr_count() returns trigger language plpgsql as $$
declare o bigint := 0; n bigint := 0;
begin
  if tg_op <> 'INSERT' then select sum(k) into o from olds; end if;
  if tg_op <> 'DELETE' then select sum(k) into n from news; end if;
  raise notice '% on %: % to %', tg_op, tg_table_name, o, n;
  return null;
end $$;
create table ptr_m (k int, v text) partition by range (k);
create table ptr_m1 partition of ptr_m for values from (0) to (10);
create table ptr_m2 (v text, gone int, k int);
alter table ptr_m2 drop column gone;
alter table ptr_m attach partition ptr_m2 for values from (10) to (20);
create table ptr_ms partition of ptr_m for values from (20) to (40) partition by list (v);
create table ptr_ms1 partition of ptr_ms for values in ('a', 'b');
create trigger t instead of insert on ptr_m for each row execute function ptr_say();
create trigger t after insert on ptr_m referencing new table as news for each row execute function ptr_count();
create trigger t after insert on ptr_m1 referencing new table as news for each row execute function ptr_count();
create trigger ptr_before before insert or update of v on ptr_m for each row when (new.v <> 'quiet') execute function ptr_say('x');
create trigger ptr_after after insert or update or delete on ptr_m for each row execute function ptr_say();
create trigger ptr_whole after insert or update or delete on ptr_m for each statement execute function ptr_say();
create trigger ptr_first before insert on ptr_m for each statement execute function ptr_say();
create trigger ptr_own before insert on ptr_m1 for each statement execute function ptr_say();
insert into ptr_m values (1, 'one'), (11, 'quiet'), (21, 'a');
insert into ptr_m1 values (2, 'two');
update ptr_m set v = 'b' where k > 10;
update ptr_m set k = 12 where k = 2;
update ptr_m set k = 13, v = 'quiet' where k = 1;
delete from ptr_m where k = 21;
select tgrelid::regclass, tgname, tgparentid <> 0 as part, tgenabled, pg_get_triggerdef(oid) from pg_trigger
  where tgrelid::regclass::text like 'ptr\_m%' order by tgrelid::regclass::text collate "C", tgname;
drop trigger ptr_after on ptr_m1;
alter trigger ptr_after on ptr_ms rename to ptr_later;
alter trigger ptr_after on ptr_m rename to ptr_later;
create or replace trigger ptr_later after insert on ptr_m1 for each row execute function ptr_say();
create or replace trigger ptr_later after insert or delete on ptr_m for each row execute function ptr_say();
create trigger ptr_whole before insert on ptr_m2 for each row execute function ptr_say();
create trigger ptr_whole2 before insert on ptr_m2 for each row execute function ptr_say();
create trigger ptr_whole2 before insert on ptr_m for each row execute function ptr_say();
alter table ptr_m disable trigger ptr_before;
insert into ptr_m values (3, 'three');
alter table only ptr_m enable trigger ptr_before;
insert into ptr_m values (4, 'four');
alter table ptr_m1 enable trigger ptr_before;
insert into ptr_m values (5, 'five'), (25, 'a');
select tgrelid::regclass, tgname, tgenabled from pg_trigger where tgname in ('ptr_before', 'ptr_later') and tgrelid::regclass::text like 'ptr\_m%'
  order by tgname, tgrelid::regclass::text collate "C";
alter table ptr_m disable trigger all;
insert into ptr_m values (6, 'six');
alter table ptr_m enable trigger user;
create table ptr_m3 partition of ptr_m for values from (40) to (50);
insert into ptr_m values (41, 'new');
alter table ptr_m detach partition ptr_m3;
insert into ptr_m3 values (42, 'none');
create trigger ptr_later before insert on ptr_m3 for each row execute function ptr_say();
alter table ptr_m attach partition ptr_m3 for values from (40) to (50);
drop trigger ptr_later on ptr_m3;
alter table ptr_m attach partition ptr_m3 for values from (40) to (50);
drop trigger ptr_later on ptr_m;
drop trigger ptr_before on ptr_m;
drop trigger ptr_whole on ptr_m;
insert into ptr_m values (43, 'quiet');
-- rows that statements refer to
create trigger ptr_i after insert on ptr_m referencing new table as news for each statement execute function ptr_count();
create trigger ptr_u after update on ptr_m referencing old table as olds new table as news for each statement execute function ptr_count();
create trigger ptr_d after delete on ptr_m referencing old table as olds for each statement execute function ptr_count();
insert into ptr_m values (7, 'x'), (17, 'x');
update ptr_m set k = k + 10 where v = 'x' and k < 10;
update ptr_m set v = 'y' where v = 'x';
delete from ptr_m where v = 'y';
truncate ptr_m;
-- a trigger may not take a row elsewhere
create function ptr_shift() returns trigger language plpgsql as $$ begin new.k := new.k + 10; return new; end $$;
create trigger ptr_shift before insert on ptr_m1 for each row execute function ptr_shift();
insert into ptr_m values (1, 'shifted');
drop trigger ptr_shift on ptr_m1;
create trigger ptr_shift before insert on ptr_m for each row execute function ptr_shift();
insert into ptr_m values (1, 'shifted');
insert into ptr_m values (22, 'a');
drop table ptr_m;
-- constraint triggers
create table ptr_c (k int) partition by list (k);
create table ptr_c1 partition of ptr_c for values in (1);
create constraint trigger ptr_ct after insert on ptr_c deferrable initially deferred for each row execute function ptr_say();
create table ptr_c2 partition of ptr_c for values in (2);
begin;
insert into ptr_c values (1), (2);
select 'before the end';
commit;
drop table ptr_c;
drop function ptr_say(), ptr_count(), ptr_shift();
-- what a foreign key does to partitions is a statement about the whole
create table ptr_p (a int primary key);
create table ptr_f (a int references ptr_p on delete cascade on update set null, k int) partition by list (k);
create table ptr_f1 partition of ptr_f for values in (1);
create table ptr_f2 partition of ptr_f for values in (2);
create function ptr_say() returns trigger language plpgsql as $$
begin
  raise notice '% % % % on %', tg_name, tg_when, tg_level, tg_op, tg_table_name;
  return coalesce(new, old);
end $$;
create trigger ptr_s before update or delete on ptr_f for each statement execute function ptr_say();
create trigger ptr_a after update of a or delete on ptr_f for each statement execute function ptr_say();
create trigger ptr_1 after update or delete on ptr_f1 for each statement execute function ptr_say();
create trigger ptr_r after update or delete on ptr_f for each row execute function ptr_say();
insert into ptr_p values (1), (2);
insert into ptr_f values (1, 1), (1, 2), (2, 1);
delete from ptr_p where a = 1;
update ptr_p set a = 3;
select tableoid::regclass, * from ptr_f;
drop table ptr_f, ptr_p;
drop function ptr_say();
