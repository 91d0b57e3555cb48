-- names: zdm
-- Domains: checks where values become theirs, defaults, arrays, ALTER and DROP, what the catalog says, and doors.
\set SHOW_CONTEXT never
create domain zdmpos as int check (value > 0);
create domain zdmpos as int;
create domain zdmsmall as zdmpos constraint zdmlow check (value < 100) not null default 7;
select 5::zdmpos, (-5)::zdmpos;
select 0::zdmsmall;
select 200::zdmsmall;
select null::zdmsmall;
select null::zdmpos, '12'::zdmsmall + 1, '12'::zdmpos = 12;
select 'x'::zdmpos;
do $$ declare s text; d text; c text; begin perform 200::zdmsmall; exception when others then get stacked diagnostics s = schema_name, d = pg_datatype_name, c = constraint_name; raise notice '% % % %', sqlstate, s, d, c; end $$;
do $$ declare s text; d text; c text; begin perform null::zdmsmall; exception when others then get stacked diagnostics s = schema_name, d = pg_datatype_name, c = constraint_name; raise notice '% % % %', sqlstate, s, d, c; end $$;
select pg_typeof(5::zdmpos), pg_typeof(5::zdmpos + 1), pg_typeof(array[5]::zdmpos[]);
select array[5, -5]::zdmpos[];
select '{1,2}'::zdmpos[], array[1, null]::zdmpos[];
select array[1, null]::zdmsmall[];
create domain zdmname as varchar(4) collate "C" default 'ab' constraint zdmno_x check (value <> 'x') check (length(value) > 1);
select 'abcdef'::zdmname;
create domain zdmlist as int[] check (array_length(value, 1) < 3);
select '{1,2}'::zdmlist, array[1,2]::zdmlist;
select '{1,2,3}'::zdmlist;
create domain zdmlists as zdmpos[] check (cardinality(value) < 3);
select '{1,2}'::zdmlists;
select array[1,-2]::zdmlists;
select '{1,2,3}'::zdmlists;
create domain zdmtaken as zdmsmall;
alter domain zdmsmall set default 8;
select typname, typdefault from pg_type where typname in ('zdmtaken', 'zdmsmall') order by 1;
alter domain zdmsmall set default 7;
drop domain zdmtaken;
-- Refused definitions.
create domain zdmbad as int unique;
create domain zdmbad as int primary key;
create domain zdmbad as int references pg_class (oid);
create domain zdmbad as int not null null;
create domain zdmbad as int default 1 default 2;
create domain zdmbad as int check (value > 0) no inherit;
create domain zdmbad as int check (other > 0);
create domain zdmbad as int check (value);
create domain zdmbad as int check (value > (select 1));
create domain zdmbad as int check (count(value) > 1);
create domain zdmbad as int collate "C";
create domain zdmbad as int constraint a check (value > 0) constraint a check (value > 1);
create domain zdmbad as int default 'x';
create domain zdmbad as int default true;
create domain zdmbad as anyelement;
create domain zdmbad as nosuch;
-- Columns.
create table zdmt (id int primary key, p zdmpos, s zdmsmall, n zdmname, l zdmlist, a zdmpos[]);
insert into zdmt (id) values (1);
insert into zdmt values (2, 3, 4, 'cd', '{1}', '{1,2}');
insert into zdmt values (3, -3, 4, 'cd', '{1}', '{1,2}');
insert into zdmt values (3, 3, null, 'cd', '{1}', '{1,2}');
insert into zdmt values (3, 3, 3, 'x', '{1}', '{1,2}');
insert into zdmt values (3, 3, 3, 'abcdef', '{1}', '{1,2}');
insert into zdmt values (3, 3, 3, 'y', '{1}', '{1,2}');
insert into zdmt values (3, 3, 3, 'cd', '{1,2,3}', '{1,2}');
insert into zdmt values (3, 3, 3, 'cd', '{1}', array[1,-2]);
insert into zdmt (id, p) select i, i - 10 from generate_series(9, 11) i;
insert into zdmt (id, p) select i, i from generate_series(10, 11) i;
update zdmt set p = p - 10;
update zdmt set p = -1 where id = 2;
update zdmt set s = default, n = default where id = 2;
update zdmt set a = array[0] where id = 2;
update zdmt set s = null where id = 2;
insert into zdmt values (2, 1) on conflict (id) do update set p = -excluded.p;
insert into zdmt values (2, 1) on conflict (id) do update set p = excluded.p returning *;
select * from zdmt order by id;
select sum(p), max(s), min(n), count(distinct p) from zdmt;
select p from zdmt where p > 1 order by p desc;
select p, count(*) from zdmt group by p order by p;
select pg_typeof(p), pg_typeof(a), pg_typeof(coalesce(p, 1)), pg_typeof(max(p)) from zdmt where id = 2 group by p, a;
select id from zdmt where p = any (a) order by id;
select x.id, y.id from zdmt x join zdmt y on x.p = y.p and x.id < y.id order by 1, 2;
select p from zdmt union select 4 order by 1;
create index zdmi on zdmt (p);
select id from zdmt where p = 10;
copy zdmt (id, p) from stdin;
20	5
21	-5
\.
copy zdmt (id, p, s) from stdin;
20	5	\N
\.
copy zdmt (id, n, a) from stdin;
20	ok	{1,0}
\.
copy zdmt (id, p, a) from stdin;
20	5	{1,3}
\.
select id, p, s, n, l, a from zdmt where id = 20;
copy (select p, a from zdmt where id = 20) to stdout;
-- A check of a table sees a domain's value; generated columns have one.
create table zdmg (i int, d zdmpos generated always as (i * 2) stored, check (d < 50));
insert into zdmg values (2);
insert into zdmg values (-2);
insert into zdmg values (30);
alter table zdmg add column e zdmsmall;
alter table zdmg add column f zdmpos default -1;
alter table zdmg add column f zdmpos not null;
alter table zdmg alter column i type zdmpos;
alter table zdmg add column h int default -1;
alter table zdmg alter column h type zdmpos;
alter table zdmg alter column h type zdmpos using -h;
alter table zdmg alter column h set default -3;
insert into zdmg (i) values (3);
alter table zdmg alter column h type int;
select * from zdmg order by i;
-- Views and tables from queries keep the domain.
create view zdmv as select p, p + 1 as q, 5::zdmpos as r, id::zdmpos as t from zdmt;
create table zdmc as select p, a, p + 1 as q from zdmt where id = 2;
insert into zdmc values (0);
select attname, atttypid::regtype, atttypmod from pg_attribute where attrelid in ('zdmv'::regclass, 'zdmc'::regclass, 'zdmt'::regclass) and attnum > 0 order by attrelid::regclass::text, attnum;
select pg_get_viewdef('zdmv'::regclass);
\d zdmt
\d zdmc
-- Prepared statements.
prepare zdmp (zdmpos) as select $1, $1 + 1;
execute zdmp (5);
execute zdmp (-5);
execute zdmp (null);
select name, parameter_types from pg_prepared_statements where name = 'zdmp';
deallocate zdmp;
-- Routines.
create function zdmf (x zdmpos) returns int language sql as 'select x + 1';
select zdmf(3), zdmf('4'), zdmf(5::zdmpos);
select zdmf(-3);
create function zdmr (x int) returns zdmpos language sql as 'select x - 10';
select zdmr(12), pg_typeof(zdmr(12));
select zdmr(3);
create function zdmb (x int) returns zdmpos language plpgsql as 'begin return x - 10; end';
select zdmb(12);
select zdmb(3);
do $$ declare v zdmpos; begin v := 3; raise notice '%', v; v := -3; end $$;
do $$ declare v zdmpos := -3; begin end $$;
do $$ declare v zdmsmall; begin end $$;
do $$ declare v zdmpos; begin raise notice '%', v is null; end $$;
select pg_typeof(coalesce(5::zdmpos, 6::zdmpos)), pg_typeof(case when true then 5::zdmpos else 6::zdmpos end), pg_typeof(case when true then 5::zdmpos else 6 end), pg_typeof(greatest(5::zdmpos, 6::zdmpos));
do $$ declare v zdmpos = 3; w zdmpos[]; begin w := array[1, 2]; v := w[2]; raise notice '% %', v, w; w := array[1, -2]; end $$;
do $$ declare v zdmt.p%type; begin select -1 into v; end $$;
do $$ begin perform (-1)::zdmpos; exception when check_violation then raise notice 'caught'; end $$;
drop function zdmf, zdmr, zdmb;
-- The catalog.
select typname, typtype, typlen, typcategory, typnotnull, typbasetype::regtype, typtypmod, typndims, typdefault, pg_get_expr(typdefaultbin, 0) from pg_type where typtype = 'd' and typnamespace = 'public'::regnamespace order by typname;
select conname, contype, convalidated, conrelid, contypid::regtype, pg_get_constraintdef(oid) from pg_constraint where contypid <> 0 and connamespace = 'public'::regnamespace order by conname;
select domain_name, data_type, character_maximum_length, numeric_precision, domain_default, udt_name from information_schema.domains where domain_schema = 'public' order by 1;
select constraint_name, domain_name from information_schema.domain_constraints where domain_schema = 'public' order by 1;
select constraint_name, check_clause from information_schema.check_constraints where constraint_schema = 'public' and constraint_name not like '%not_null' order by 1;
select column_name, data_type, domain_name, udt_name, is_nullable from information_schema.columns where table_name = 'zdmt' order by ordinal_position;
select table_name, column_name, domain_name from information_schema.column_domain_usage where table_schema = 'public' order by 1, 2;
select format_type('zdmname'::regtype, -1), 'zdmpos[]'::regtype, to_regtype('zdmnosuch');
\dD public.*
comment on domain zdmpos is 'above zero';
comment on constraint zdmlow on domain zdmsmall is 'below hundred';
comment on constraint zdmnosuch on domain zdmsmall is 'x';
comment on domain int4 is 'x';
\dD+ zdmpos
\dT public.*
select description from pg_description where objoid = (select oid from pg_constraint where conname = 'zdmlow');
-- ALTER.
alter domain zdmpos add constraint zdmtop check (value < 15);
alter domain zdmpos add constraint zdmtop check (value < 1000);
delete from zdmt where a is not null;
alter table zdmt drop column a;
drop table zdmc;
alter domain zdmpos add constraint zdmtop check (value < 8);
alter domain zdmpos add constraint zdmtop check (value < 8) not valid;
insert into zdmt (id, p) values (50, 9);
select 9::zdmpos;
alter domain zdmpos validate constraint zdmtop;
delete from zdmt where p >= 8;
alter domain zdmpos validate constraint zdmtop;
alter domain zdmpos validate constraint zdmtop;
alter domain zdmpos validate constraint zdmnosuch;
alter domain zdmpos add constraint zdmtop check (value < 1000);
alter domain zdmpos rename constraint zdmtop to zdmupper;
alter domain zdmpos rename constraint zdmtop to zdmupper;
select 9::zdmpos;
alter domain zdmpos drop constraint zdmtop;
alter domain zdmpos drop constraint if exists zdmtop;
alter domain zdmpos drop constraint zdmupper;
select 9::zdmpos;
alter domain zdmpos set not null;
delete from zdmt where p is null;
alter domain zdmpos set not null;
insert into zdmt (id, p) values (60, null);
insert into zdmt (id) values (60);
alter domain zdmpos drop not null;
insert into zdmt (id) values (60);
alter domain zdmpos set default 33;
insert into zdmt (id) values (61);
alter domain zdmpos drop default;
insert into zdmt (id) values (62);
select id, p from zdmt order by id;
alter domain zdmpos add check (value <> 77);
alter domain zdmpos add check (value <> 78);
select conname from pg_constraint where contypid = 'zdmpos'::regtype order by 1;
alter domain int4 set not null;
alter domain zdmnosuch set not null;
alter domain zdmsmall set default 'x';
alter domain zdmpos rename to zdmpositive;
alter type zdmpositive rename to zdmpos;
create schema zdmschema;
alter domain zdmpos set schema zdmschema;
select 5::zdmpos;
select (-5)::zdmschema.zdmpos;
alter domain zdmschema.zdmpos set schema public;
drop schema zdmschema;
create type zdmenum as enum ('a', 'b');
alter domain zdmenum rename to zdmx;
alter domain zdmenum set not null;
create domain zdme as zdmenum check (value <> 'b') default 'a';
select 'a'::zdme;
select 'b'::zdme;
create table zdmet (e zdme, es zdme[]);
insert into zdmet values (default, '{a}');
insert into zdmet values (default, array['a', 'b']::zdmenum[]);
alter type zdmenum rename value 'b' to 'c';
select 'c'::zdme;
select * from zdmet;
drop type zdmenum;
drop table zdmet;
-- Within a transaction.
begin;
create domain zdmtx as int;
create table zdmtxt (d zdmtx);
insert into zdmtxt values (1);
alter domain zdmtx add check (value > 1);
rollback;
begin;
alter domain zdmpos add constraint zdmgone check (value > 1000) not valid;
select 5::zdmpos;
rollback;
select 5::zdmpos;
begin read only;
create domain zdmro as int;
rollback;
do $$ begin create domain zdmdo as int check (value > 1); perform 0::zdmdo; end $$;
-- DROP, and what depends.
drop domain zdmpos;
drop domain zdmenum;
drop domain zdmnosuch;
drop domain if exists zdmnosuch;
create function zdmis_even (x int) returns bool language sql immutable as 'select x % 2 = 0';
create domain zdmeven as int check (zdmis_even(value));
select 4::zdmeven;
select 5::zdmeven;
drop function zdmis_even;
drop function zdmis_even cascade;
select 5::zdmeven;
drop domain zdmeven;
drop domain zdmpos cascade;
select attname from pg_attribute where attrelid = 'zdmt'::regclass and attnum > 0 and not attisdropped order by 1;
drop table zdmt, zdmg;
drop domain zdmname, zdmlist;
drop type zdme;
drop type zdmenum;
-- Privileges.
create role zdmrole;
create domain zdmown as int check (value > 0);
revoke usage on domain zdmown from public;
grant usage on domain int4 to zdmrole;
set role zdmrole;
alter domain zdmown set not null;
alter domain zdmown drop constraint zdmown_check;
comment on domain zdmown is 'x';
drop domain zdmown;
create temp table zdmtemp (d zdmown);
select 3::zdmown;
reset role;
grant usage on domain zdmown to zdmrole;
alter domain zdmown owner to zdmrole;
set role zdmrole;
alter domain zdmown set not null;
reset role;
\dD+ zdmown
drop domain zdmown;
drop role zdmrole;
