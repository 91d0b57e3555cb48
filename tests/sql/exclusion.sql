-- names: rooms slots cages crew calm nets partsx copied spare later parent waitlist plans tags
-- Exclusion constraints.
create extension btree_gist;
create table rooms (room int, during int4range, note text, constraint no_overlap exclude using gist (room with =, during with &&));
\d rooms
select conname, contype, condeferrable, condeferred, convalidated, conkey, (select array_agg(oprname || '(' || oprleft::regtype || ',' || oprright::regtype || ')' order by n) from unnest(conexclop) with ordinality own(oid, n) join pg_operator using (oid)), pg_get_constraintdef(oid) from pg_constraint where conrelid = 'rooms'::regclass;
select indexrelid::regclass, indisunique, indisprimary, indisexclusion, indimmediate, indkey, pg_get_indexdef(indexrelid) from pg_index where indrelid = 'rooms'::regclass;
insert into rooms values (1, '[1,4)', 'a'), (1, '[4,6)', 'b'), (2, '[1,9)', 'c'), (1, '[10,20)', 'd');
insert into rooms values (1, '[3,5)');
insert into rooms values (1, '[19,)');
insert into rooms values (1, '[5,6)');
insert into rooms values (1, '(,2)');
insert into rooms values (1, '(,)');
insert into rooms values (1, '[12,13)');
insert into rooms values (1, '[1,4)');
insert into rooms values (1, '[6,10)', 'e'), (3, '(,)', 'f');
insert into rooms values (3, '[5,6)');
insert into rooms values (1, 'empty'), (1, 'empty'), (null, '[1,4)'), (null, '[1,4)'), (1, null), (1, null), (3, null);
insert into rooms values (2, '[9,10)'), (2, '[8,12)');
select room, during, note from rooms order by room, during, note;
-- UPDATE.
update rooms set during = '[2,5)' where note = 'a';
update rooms set during = '[2,3)' where note = 'a';
update rooms set during = '[0,4)' where note = 'a' returning *;
update rooms set room = 3 where note = 'c';
update rooms set during = during where room = 1;
update rooms set note = note || '!' where room = 1;
begin; delete from rooms where note = 'f'; insert into rooms values (3, '[5,6)'), (3, '[6,8)'); rollback;
begin; insert into rooms values (4, '[1,2)'); savepoint s; insert into rooms values (4, '[3,4)'); rollback to s; insert into rooms values (4, '[2,9)'); commit;
insert into rooms select 5, int4range(i, i + 1) from generate_series(1, 200) i;
insert into rooms select 5, int4range(i, i + 2) from generate_series(201, 300) i;
select count(*) from rooms where room = 5;
update rooms set during = int4range(lower(during) - 1000, upper(during) - 1000) where room = 5;
select min(lower(during)), max(upper(during)) from rooms where room = 5;
-- ON CONFLICT.
insert into rooms values (1, '[3,5)') on conflict do nothing;
insert into rooms values (1, '[3,5)'), (6, '[1,2)'), (6, '[1,3)') on conflict on constraint no_overlap do nothing;
insert into rooms values (1, '[3,5)') on conflict on constraint no_overlap do update set note = 'x';
insert into rooms values (1, '[3,5)') on conflict (room, during) do nothing;
insert into rooms values (6, '[1,3)', 'z') on conflict do nothing returning *;
select * from rooms where room = 6;
begin isolation level repeatable read; insert into rooms values (6, '[5,7)'); insert into rooms values (6, '[6,8)') on conflict do nothing; commit;
-- Names, DROP, RENAME, COMMENT.
alter table rooms rename constraint no_overlap to alone;
comment on constraint alone on rooms is 'one at a time';
select obj_description(oid, 'pg_constraint') from pg_constraint where conname = 'alone';
insert into rooms values (1, '[2,3)');
drop index alone;
alter index alone rename to by_itself;
insert into rooms values (1, '[2,3)');
alter table rooms drop constraint by_itself;
insert into rooms values (1, '[2,3)', 'twice');
alter table rooms add constraint again exclude using gist (room with =, during with &&);
delete from rooms where note = 'twice';
alter table rooms add exclude using gist (during with &&, room with =);
\d rooms
insert into rooms values (1, '[2,3)');
insert into rooms values (5, '[-900,-800)');
alter table rooms drop column during;
\d rooms
drop extension btree_gist;
-- What there is no way to.
create table spare (a int, b int4range, c text, d int[], exclude using gin (d with &&));
create table spare (a int, exclude using brin (a with =));
create table spare (a int, exclude using nomethod (a with =));
create table spare (a int, b int4range, exclude using hash (a with =, b with =));
create table spare (a int, b int4range, exclude using spgist (b with =, b with =));
create table spare (a int, exclude using hash (a with =) include (a));
create table spare (a int, exclude (nothing with =));
create table spare (a int, exclude (a with =) include (nothing));
create table spare (a int, exclude (a with <));
create table spare (a int, exclude (a with <>));
create table spare (a int, exclude (a with &&));
create table spare (a int, exclude (a with operator(pg_catalog.+)));
create table spare (b int4range, exclude (b with &&));
create table spare (b int4range, exclude using gist (b with <<));
create table spare (b int4range, exclude using gist (b with <>));
create table spare (b int4range, exclude using gist (b with @>));
create table spare (a json, exclude using gist (a with =));
create table spare (a int, exclude using btree (a text_ops with =));
create table spare (a int, exclude (a with =) where (count(*) > 1));
create table spare (a int, exclude ((a + random()) with =));
create table parent (a int, b int4range, exclude using gist (b with &&)) partition by list (a);
create table parent (a int, b int4range) partition by list (a);
alter table parent add exclude using gist (a with =, b with &&);
create table partsx partition of parent (constraint own_part exclude using gist (b with &&)) for values in (1, 2);
insert into parent values (1, '[1,4)');
insert into parent values (2, '[2,5)');
insert into parent values (2, '[2,5)') on conflict do nothing;
\d partsx
drop table parent;
-- Other operators and methods.
create extension btree_gist;
create table cages (cage int, animal text, exclude using gist (cage with =, animal with <>));
insert into cages values (123, 'zebra'), (123, 'zebra'), (124, 'lion');
insert into cages values (123, 'lion');
update cages set cage = 124 where cage = 123;
delete from cages where animal = 'lion';
update cages set cage = 124 where cage = 123;
insert into cages values (124, null), (null, 'lion');
select * from cages order by 1, 2;
\d cages
create table crew (a int, b text, c numeric, exclude (a with =), constraint by_b exclude using hash (b with =), constraint by_c exclude (c desc with =, a with =));
\d crew
insert into crew values (1, 'x', 1.0), (2, 'y', 1.0), (null, null, null), (null, null, null);
insert into crew values (1, 'z', 2);
insert into crew values (3, 'y', 2);
insert into crew values (3, 'w', 1.00);
insert into crew values (3, 'w', 1.00) on conflict on constraint by_c do nothing;
insert into crew values (1, 'y', 7) on conflict on constraint by_b do nothing;
insert into crew values (1, 'v', 7) on conflict on constraint by_b do nothing;
select * from crew order by 1, 2, 3;
create table nets (net inet, other cidr, exclude using gist (net inet_ops with &&), constraint a_other exclude using spgist (other with &&));
\d nets
insert into nets values ('10.0.0.0/8', '192.168.0.0/24'), ('11.0.0.0/8', '192.168.1.0/24');
insert into nets values ('10.1.2.3', null);
insert into nets values ('0.0.0.0/0', null);
insert into nets values (null, '192.168.0.0/16');
insert into nets values ('12.0.0.1', '192.168.2.0/24') returning *;
create table plans (r datemultirange, q daterange, exclude using gist (r with &&), constraint touching exclude using gist (q with -|-));
insert into plans values ('{[2020-01-01,2020-02-01),[2020-03-01,2020-04-01)}', '[2020-01-01,2020-02-01)');
insert into plans values ('{[2020-02-01,2020-03-01)}', '[2020-01-15,2020-02-15)');
insert into plans values ('{[2020-02-10,2020-02-11)}', null);
insert into plans values (null, '[2020-02-01,2020-02-02)');
select * from plans order by 1;
-- Expressions, conditions, INCLUDE, parameters.
create table slots (id int primary key, place text, starts timestamp, ends timestamp, gone boolean not null default false, constraint slot_free exclude using gist (lower(place) with =, tsrange(starts, ends) with &&) include (id) with (fillfactor = 70) where (not gone));
\d slots
select conkey, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) from pg_constraint where conname = 'slot_free';
insert into slots values (1, 'Hall', '2024-01-01 10:00', '2024-01-01 12:00');
insert into slots values (2, 'hall', '2024-01-01 11:00', '2024-01-01 13:00');
insert into slots values (2, 'hall', '2024-01-01 11:00', '2024-01-01 13:00', true);
insert into slots values (3, 'HALL', '2024-01-01 12:00', '2024-01-01 13:00');
update slots set gone = false where id = 2;
update slots set gone = true where id in (1, 3);
update slots set gone = false where id = 2;
update slots set gone = false where id = 1;
update slots set place = 'other' where id = 1;
insert into slots values (4, 'hall', '2024-01-02', '2024-01-01');
insert into slots (id, place, starts, ends) select 10 + i, 'hall', timestamp '2025-01-01' + i * interval '1 hour', timestamp '2025-01-01' + i * interval '1 hour' + interval '1 hour' from generate_series(1, 50) i;
insert into slots (id, place, starts, ends) values (1000, 'hall', '2025-01-01 09:30', '2025-01-01 09:31');
insert into slots (id, place, starts, ends) values (1, 'hall', '2025-01-01 09:30', '2025-01-01 09:31') on conflict (id) do update set place = 'hall';
insert into slots (id, place, starts, ends) values (1, 'hall', '2025-01-01 09:30', '2025-01-01 09:31') on conflict on constraint slot_free do nothing;
alter table slots rename column place to spot;
select pg_get_constraintdef(oid) from pg_constraint where conname = 'slot_free';
create table copied (like slots including indexes);
\d copied
insert into copied select * from slots;
insert into copied values (2000, 'HALL', '2025-01-01 09:30', '2025-01-01 09:31', false);
-- ALTER TABLE.
create table calm (k int, r int4range, t text);
insert into calm values (1, '[1,5)', 'a'), (1, '[7,9)', 'b'), (1, '[4,6)', 'c');
alter table calm add constraint calm_r exclude using gist (r with &&);
delete from calm where t = 'c';
alter table calm add constraint calm_r exclude using gist (r with &&);
alter table calm add constraint calm_r exclude using gist (r with &&);
alter table calm alter column k type bigint, alter column r type int8range using int8range(lower(r), upper(r));
\d calm
insert into calm values (1, '[4,8)', 'd');
alter table calm alter column r type int8range using int8range(1, upper(r));
alter table calm alter column r type text using 'x';
alter table calm add exclude (k with =);
alter table calm add constraint calm_t exclude (t with =);
alter table calm alter column t type int using 7;
alter table calm validate constraint calm_r;
alter table calm alter constraint calm_r deferrable;
reindex table calm;
insert into calm values (1, '[4,8)', 'd');
truncate calm;
insert into calm values (1, '[4,8)', 'd');
create table spare (a int references calm (t));
-- DEFERRABLE.
create table later (id int primary key, r int4range, constraint later_r exclude using gist (r with &&) deferrable, k int, constraint later_k exclude (k with =) deferrable initially deferred);
\d later
insert into later select i, int4range(i, i + 1), i from generate_series(1, 10) i;
update later set r = int4range(lower(r) + 1, upper(r) + 1);
update later set k = k + 1;
insert into later values (20, '[3,4)');
insert into later values (20, '[30,40)', 3);
begin; insert into later values (20, '[30,40)', 3); update later set k = 99 where k = 3 and id < 20; commit;
begin; insert into later values (21, '[3,4)'); rollback;
begin; set constraints later_r deferred; insert into later values (21, '[3,4)'), (22, '[2,3)'); delete from later where id = 21; set constraints later_r immediate; rollback;
begin; set constraints later_r deferred; insert into later values (21, '[3,4)'), (22, '[2,3)'); delete from later where id in (21, 22); commit;
begin; set constraints all deferred; insert into later values (21, '[3,4)'); savepoint a; delete from later where r = '[3,4)' and id < 20; set constraints all immediate; rollback to a; commit;
begin; set constraints all deferred; insert into later values (21, '[100,200)'); insert into later values (22, '[120,130)'); insert into later values (23, '[150,160)'); delete from later where id = 22; commit;
begin; set constraints all deferred; insert into later values (21, '[3,4)'); truncate later; rollback;
begin; set constraints all deferred; insert into later values (21, '[3,4)'); alter table later drop constraint later_r; rollback;
begin; set constraints all deferred; insert into later values (21, '[3,4)'); reindex table later; delete from later where id = 21; commit;
insert into later values (20, '[3,4)') on conflict do nothing;
insert into later values (30, '[3,4)') on conflict on constraint later_r do nothing;
insert into later values (1, '[3,4)') on conflict (id) do nothing;
select * from later order by id;
do $$ begin begin insert into later values (40, '[3,4)'); exception when exclusion_violation then raise notice 'caught %', sqlerrm; end; insert into later values (41, '[300,301)'); end $$;
-- A role without rights.
create role waitlist;
create table tags (a int, r int4range, secret text, exclude using gist (r with &&), exclude (secret with =));
insert into tags values (1, '[1,5)', 'x');
grant insert on tags to waitlist;
grant select (a) on tags to waitlist;
set role waitlist;
insert into tags values (2, '[2,3)', 'y');
insert into tags values (2, '[7,8)', 'x');
insert into tags values (2, '[7,8)', 'x') on conflict do nothing;
insert into tags values (2, '[7,8)', 'x') on conflict on constraint tags_r_excl do nothing;
insert into tags values (2, '[7,8)', 'x') on conflict on constraint tags_secret_excl do nothing;
alter table tags add exclude (a with =);
reset role;
revoke all on tags from waitlist;
drop role waitlist;
-- COPY and temporary tables.
copy tags from stdin;
5	[10,20)	p
6	[15,16)	q
\.
create temp table spare (r int4range, exclude using gist (r with &&));
insert into spare values ('[1,5)'), ('[5,6)');
do $$ begin insert into spare values ('[4,6)'); exception when exclusion_violation then raise notice 'caught %', sqlerrm; end $$;
begin; delete from spare; insert into spare values ('[4,6)'); commit;
select * from spare;
drop table spare;
drop table rooms, cages, crew, nets, plans, slots, copied, calm, later, tags;
drop extension btree_gist;
