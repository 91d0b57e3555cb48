-- names: guest seat fee badge typ que heir orphan plate hall
-- Tables of a composite type.
create type badge as (guest int, seat text, fee numeric(5,2));
create table typ1 of badge;
create table typ2 of badge (guest with options primary key, seat with options not null default 'x', constraint fair check (fee > 0));
create table typ3 of badge (guest primary key, foreign key (guest) references typ2);
create table typ9 of badge (nothing with options not null);
create table typ9 of badge (guest with options not null, guest with options default 1);
create table typ9 of nothing;
create table typ9 of typ1;
create table typ9 of badge (guest generated always as identity);
create table typ9 of badge (fee generated always as (guest) stored);
create table if not exists typ1 of nothing;
create table if not exists typ1 of badge;
create temp table typ4 of badge;
create table typ5 of badge (primary key (guest)) partition by range (guest);
create table typ51 partition of typ5 for values from (1) to (10);
\d typ1
\d+ typ2
\d typ3
\d typ5
select relname, reloftype::regtype from pg_class where reloftype <> 0 order by 1;
select table_name, user_defined_type_schema, user_defined_type_name, is_typed from information_schema.tables where table_name in ('typ1', 'typ51') order by 1;
-- Columns are the type's.
alter table typ1 add column late int;
alter table typ1 drop column guest;
alter table typ1 alter column guest type bigint;
alter table typ1 rename column guest to host;
alter table typ1 inherit typ2;
create table heir () inherits (typ1);
alter table typ1 rename to t1x;
alter table t1x rename to typ1;
alter table typ1 alter seat set default 'y', add constraint c1 check (guest > 0), alter guest set not null;
insert into typ1 values (1, 'a', 2.5), (2, default, 7);
insert into typ1 values (0, 'a', 2.5);
insert into typ2 (guest, fee) values (1, 1);
insert into typ3 values (2, 'a', 1);
select * from typ1 order by guest;
-- They change with it.
alter type badge add attribute late int;
alter type badge drop attribute guest;
alter type badge rename attribute guest to host;
alter type badge alter attribute guest type bigint;
alter type badge add attribute late int cascade;
\d heir
\d typ1
alter type badge rename attribute seat to chair cascade;
alter type badge drop attribute fee cascade;
alter type badge alter attribute late type bigint cascade;
\d typ2
select * from typ1 order by guest;
insert into typ1 values (3, 'c', 4);
select * from typ1 order by guest;
alter table typ5 attach partition typ1 for values from (10) to (20);
drop table typ5, typ4;
alter type badge alter attribute guest type bigint cascade;
select * from typ1 order by guest;
-- NOT OF and OF.
alter table typ1 not of;
alter table typ1 not of;
\d typ1
alter table typ1 of badge;
alter table typ1 of badge;
alter table heir of badge;
create table que1 (guest bigint);
create table que2 (guest int, chair text, late bigint);
create table que3 (guest bigint, chair text, late bigint, more int);
create table que4 (guest bigint, late bigint, chair text);
create table que5 (guest bigint, chair text collate "C", late bigint);
create table que6 (guest bigint, chair text, gone int, late bigint);
alter table que6 drop column gone;
alter table que1 of badge;
alter table que2 of badge;
alter table que3 of badge;
alter table que4 of badge;
alter table que5 of badge;
alter table que6 of badge;
alter table que1 of nothing;
alter table que1 of typ1;
\d que6
drop table que1, que2, que3, que4, que5;
-- They go with it.
drop type badge;
drop type badge cascade;
select count(*) from pg_class where relname in ('typ1', 'typ2', 'typ3', 'heir', 'que6');
create type badge as (guest int);
create view plate as select 1 as guest;
alter table plate of badge;
alter view plate not of;
drop view plate;
-- Who may.
create role usher;
create table plate (guest int);
alter table plate owner to usher;
create table orphan (guest int);
revoke usage on type badge from public;
create schema hall authorization usher;
set role usher;
create table hall.t of badge;
alter table plate of badge;
alter table plate not of;
alter table orphan of badge;
alter table orphan not of;
reset role;
alter table plate of badge;
alter type badge owner to usher;
grant create on schema public to usher;
alter table orphan of badge;
set role usher;
alter type badge add attribute late int cascade;
alter type badge rename attribute guest to host cascade;
reset role;
drop type badge cascade;
drop schema hall;
revoke create on schema public from usher;
drop role usher;
