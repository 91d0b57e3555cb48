-- names: people duo kidlet elder matview tempo
-- Indexes on expressions and with conditions: what they refuse, lead to, and go through with their tables.
create table people (id int primary key, name text, team int, gone date, note text);
insert into people select n, 'User' || n, n % 3, case when n % 4 = 0 then date '2024-01-01' end, repeat('x', n) from generate_series(1, 20) n;
create unique index on people (lower(name)) where gone is null;
create index on people ((team * 10 + id) desc, name);
create index on people (team) include (name, note) where gone is null and team > 0;
\d people
select id from people where lower(name) = 'user7' and gone is null;
select id from people where lower(name) = 'user8' and gone is null;
select id from people where lower(name) = 'user8';
insert into people values (21, 'USER8', 1);
insert into people values (22, 'USER7', 1);
update people set name = 'uSER9' where id = 7;
update people set gone = null where id = 8;
update people set gone = '2024-02-02' where id = 21;
update people set gone = null where id = 8 returning id, gone;
delete from people where id = 9;
update people set name = 'uSER9' where id = 7 returning *;
insert into people values (23, 'user9', 2) on conflict (lower(name)) where gone is null do nothing;
insert into people values (23, 'user9', 2) on conflict (lower(name)) where gone is null and team > 1 do update set team = 77, note = excluded.name returning *;
insert into people values (23, 'user9', 2) on conflict (lower(name)) do nothing;
insert into people values (23, 'user9', 2) on conflict (name) where gone is null do nothing;
insert into people values (7, 'user9', 2) on conflict do nothing;
insert into people values (24, 'user24', 2), (25, 'USER24', 3) on conflict (lower(name)) where gone is null do update set team = 5;
insert into people values (24, 'user24', 2), (25, 'USER24', 3) on conflict (lower(name)) where gone is null do nothing returning id;
insert into people values (26, null, 2), (27, null, 3) returning id;
select id from people where team * 10 + id > 25 order by team * 10 + id desc;
select id, team * 10 + id from people where team * 10 + id = 26;
select id, name from people where team = 2 and gone is null order by id;
begin;
update people set id = id + 100 where id in (1, 2);
select id from people where lower(name) = 'user1' and gone is null;
update people set name = name || '!' where lower(name) = 'user2' and gone is null;
select id, name from people where lower(name) = 'user2!' and gone is null;
savepoint s;
delete from people where lower(name) = 'user2!' and gone is null;
insert into people values (2, 'USER2!');
rollback to s;
insert into people values (2, 'USER2!');
rollback;
select id from people where lower(name) in ('user1', 'user2', 'user3') and gone is null order by 1;
-- everything around it
alter table people rename column name to "the name";
alter table people rename column gone to left_at;
\d people
insert into people values (30, 'USER1');
alter table people add column more int default 5;
insert into people values (30, 'USER1');
insert into people values (30, 'USER30');
alter table people alter column "the name" type varchar(40);
\d people
insert into people values (31, 'user30');
alter table people drop constraint people_pkey;
insert into people values (30, 'user30');
insert into people values (30, 'user31');
update people set team = 9 where id = 30 and left_at is null;
delete from people where id = 30 and more is null;
update people set id = 99 where "the name" = 'user31';
alter table people add primary key (id);
insert into people values (31, 'user30');
select id from people where lower("the name") = 'user30' and left_at is null;
reindex table people;
insert into people values (31, 'user30');
truncate people;
insert into people values (31, 'user30');
insert into people values (32, 'user30');
copy people (id, "the name") from stdin;
33	User33
34	USER33
\.
copy people (id, "the name") from stdin;
33	User33
34	USER34
\.
select id from people where lower("the name") = 'user33' and left_at is null;
copy people to stdout;
alter table people drop column left_at;
\d people
alter table people drop column team;
\d people
drop table people;
-- existing rows
create table duo (a int, b int);
insert into duo values (1, 2), (2, 1), (null, 5), (null, 5);
create unique index on duo ((a + b));
create unique index on duo (a) where b = 5;
create unique index on duo ((a + b)) where a > 1;
create unique index on duo ((1 / (b - 1)));
create unique index on duo ((1 / b)) where b > 1;
insert into duo values (3, 0);
create index on duo ((10 / b));
insert into duo values (1, 1);
insert into duo values (9, 9), (8, 8);
update duo set b = 0 where a = 8;
select * from duo order by 1, 2;
create index on duo ((a > b));
create index on duo (a) where a in (1, 2, 3);
create index on duo ((b::text || 'x'));
select a from duo where b::text || 'x' = '9x';
create table kidlet (id int primary key, duo int references duo (a));
drop table duo;
create table elder (id int primary key, code text);
create unique index on elder (code) where id > 0;
create table kidlet (id int primary key, code text references elder (code));
create table kidlet (id int primary key, elder int references elder on delete cascade on update cascade, n int);
create unique index on kidlet (abs(n), elder);
insert into elder values (1, 'a'), (2, 'b');
insert into kidlet values (1, 1, 5), (2, 2, -5);
insert into kidlet values (3, 1, -5);
update elder set id = 10 where id = 1;
insert into kidlet values (3, 10, -5);
delete from elder where id = 10;
insert into elder values (10, 'c');
insert into kidlet values (3, 10, -5);
select * from kidlet where abs(n) = 5 and elder = 10;
drop table kidlet, elder;
create materialized view matview as select n as a, n % 3 as b from generate_series(1, 9) n;
create unique index on matview ((a * 2)) where b = 1;
refresh materialized view matview;
select * from matview where a * 2 = 8 and b = 1;
drop materialized view matview;
create temporary table tempo (a int, t text);
create unique index on tempo (lower(t));
insert into tempo values (1, 'A');
insert into tempo values (2, 'a') on conflict (lower(t)) do update set a = tempo.a + 10 returning *;
select * from tempo where lower(t) = 'a';
drop table tempo;
