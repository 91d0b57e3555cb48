-- names: rus
create function rus_twice(i int) returns int language plpgsql immutable as 'begin return i * 2; end';
create function rus_volatile(i int) returns int language plpgsql as 'begin return i * 2; end';
create function rus_stable(i int) returns int language plpgsql stable as 'begin return i * 2; end';
create table rus_t (id int primary key, d int default rus_twice(21), c int constraint rus_positive check (rus_twice(c) > 0));
create table rus_g (id int, g int generated always as (rus_twice(id)) stored);
insert into rus_g values (4);
insert into rus_t (id, c) values (1, 1), (2, 2);
insert into rus_t (id, c) values (3, 0);
select * from rus_t order by id;
create table rus_wrong (id int, g int generated always as (rus_volatile(id)) stored);
create index rus_i on rus_t (rus_volatile(id));
create index rus_i on rus_t (rus_stable(id));
create index rus_i on rus_t (id) where rus_stable(id) > 1;
create index rus_i on rus_t (rus_twice(c));
create unique index rus_u on rus_t (rus_twice(c)) where rus_twice(id) > 2;
insert into rus_t (id, c) values (4, 2);
insert into rus_t (id, c) values (4, 1);
set enable_seqscan = off;
select id from rus_t where rus_twice(c) = 4;
select id from rus_t where rus_twice(c) = 2 order by id;
reset enable_seqscan;
\d rus_t
\d rus_g
select pg_get_indexdef('rus_u'::regclass);
select pg_get_constraintdef(oid) from pg_constraint where conname = 'rus_positive';
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'rus_t'::regclass order by adnum;
-- Names in stored text follow.
create view rus_v as select rus_twice(id) as twice, id from rus_t where rus_twice(id) > 1;
create schema rus_s;
alter function rus_twice(int) rename to rus_double;
select pg_get_viewdef('rus_v');
alter function rus_double(int) set schema rus_s;
select pg_get_viewdef('rus_v');
select pg_get_indexdef('rus_i'::regclass);
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'rus_t'::regclass order by adnum;
select * from rus_v order by id;
insert into rus_t (id, c) values (5, 5);
insert into rus_t (id, c) values (6, -5);
select * from rus_t order by id;
-- What depends on it.
drop function rus_s.rus_double(int);
alter table rus_t drop constraint rus_positive;
drop schema rus_s;
drop function rus_s.rus_double(int) restrict;
begin;
drop function rus_s.rus_double(int) cascade;
\d rus_t
\d rus_g
select * from rus_v;
rollback;
select * from rus_v order by id;
-- Replaced below them.
create or replace function rus_s.rus_double(i int) returns int language plpgsql immutable as 'begin return i * 20; end';
select * from rus_v order by id;
insert into rus_t (id, c) values (7, 7) returning *;
insert into rus_g values (8) returning *;
create or replace function rus_s.rus_double(i int) returns bigint language plpgsql immutable as 'begin return i * 20; end';
create or replace function rus_s.rus_double(j int) returns int language plpgsql immutable as 'begin return j * 20; end';
create or replace procedure rus_s.rus_double(i int) language sql as 'select i * 20';
-- Defaults, names and the rest of VARIADIC in views.
create function rus_args(a int, b int default 5, variadic c text[] default '{x}') returns text language sql as $$ select a::text || b || array_to_string(c, '-') $$;
create view rus_called as select rus_args(1) as a, rus_args(1, 2) as b, rus_args(a => 1) as c, rus_args(b => 3, a => 2) as d, rus_args(1, 2, 'p', 'q') as e, rus_args(1, 2, variadic array['r']) as f;
select * from rus_called;
select pg_get_viewdef('rus_called');
create or replace function rus_args(a int, b int default 6, variadic c text[] default '{y}') returns text language sql as $$ select a::text || b || array_to_string(c, '+') $$;
select * from rus_called;
create or replace function rus_args(a int, b int, variadic c text[] default '{y}') returns text language sql as $$ select a::text || b || array_to_string(c, '+') $$;
drop view rus_called;
create view rus_from as select * from generate_series(1, 2) n, lateral rus_args(n, n + 1) f;
select * from rus_from;
drop function rus_args;
drop view rus_from;
drop function rus_args;
-- Of rows of tables.
create table rus_rows (a int, b text);
insert into rus_rows values (1, 'x'), (2, 'y');
create function rus_all() returns setof rus_rows language sql as 'select * from rus_rows order by a';
create view rus_of as select * from rus_all() where a > 1;
select * from rus_of;
drop view rus_of;
alter table rus_rows add column c int default 3;
select * from rus_all();
create or replace function rus_all() returns setof rus_rows language sql as 'select a, b, 9 from rus_rows order by a';
select * from rus_all();
alter table rus_rows rename column b to bb;
select bb from rus_all();
alter table rus_rows drop column c;
select * from rus_all();
drop table rus_rows cascade;
select rus_all();
-- Bodies name what there is when they run.
create table rus_later (i int);
insert into rus_later values (7);
create function rus_looks() returns int language sql as 'select i from rus_later';
create function rus_looks_pl() returns int language plpgsql as 'begin return (select i from rus_later); end';
select rus_looks(), rus_looks_pl();
drop table rus_later;
select rus_looks();
select rus_looks_pl();
create table rus_later (i int);
insert into rus_later values (8);
select rus_looks(), rus_looks_pl();
alter table rus_later rename column i to j;
select rus_looks();
select rus_looks_pl();
alter table rus_later add column i bigint;
select rus_looks_pl();
select rus_looks();
drop table rus_later;
set check_function_bodies = off;
create function rus_blind() returns int language sql as 'select i from rus_nowhere';
create function rus_blind_pl() returns int language plpgsql as 'begin retrun 1; end';
reset check_function_bodies;
select rus_blind();
create function rus_sighted() returns int language sql as 'select i from rus_nowhere';
create function rus_sighted_pl() returns int language plpgsql as 'begin return i from rus_nowhere; end';
select rus_sighted_pl();
-- Comments.
comment on function rus_looks() is 'looks';
select obj_description('rus_looks()'::regprocedure, 'pg_proc');
comment on function rus_looks() is null;
select obj_description('rus_looks()'::regprocedure, 'pg_proc');
-- Types of one's own.
create type rus_mood as enum ('sad', 'happy');
create function rus_better(m rus_mood) returns rus_mood language sql as $$ select 'happy'::rus_mood $$;
create function rus_moods(variadic m rus_mood[] default '{sad}') returns int language sql as $$ select cardinality(m) $$;
select rus_better('sad'), rus_moods(), rus_moods('sad', 'happy');
drop type rus_mood;
alter type rus_mood rename to rus_temper;
select pg_get_functiondef('rus_moods'::regproc);
drop type rus_temper cascade;
select rus_better('sad');
drop table rus_t, rus_g cascade;
drop schema rus_s cascade;
set client_min_messages = warning;
do $$
declare
  r record;
begin
  for r in select oid::regprocedure as it from pg_proc where proname like 'rus\_%' order by oid desc loop
    execute format('drop routine %s cascade', r.it);
  end loop;
end $$;
