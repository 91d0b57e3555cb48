-- names: voids tallied own
-- ALTER COLUMN … SET (…), defaults that are NULL, default_with_oids, types by text, functions of types.

create table tallied (a int, b text, c numeric(4, 2));
insert into tallied select i % 7, 'x', 1 from generate_series(1, 100) i;
alter table tallied alter column a set (n_distinct = -0.5), alter b set (n_distinct = 20, n_distinct_inherited = 3);
select attname, array(select o from unnest(attoptions) as o where o not like 'pg_attver=%') as options from pg_attribute where attrelid = 'tallied'::regclass and attnum > 0 order by attnum;
analyze tallied;
select attname, n_distinct from pg_stats where tablename = 'tallied' order by 1;
alter table tallied alter column a reset (n_distinct), alter b reset (n_distinct, nothing);
select attname, array(select o from unnest(attoptions) as o where o not like 'pg_attver=%') as options from pg_attribute where attrelid = 'tallied'::regclass and attnum > 0 order by attnum;
analyze tallied;
select attname, n_distinct from pg_stats where tablename = 'tallied' order by 1;
alter table tallied alter column a set (n_distinct = -2);
alter table tallied alter column a set (n_distinct = many);
alter table tallied alter column a set (nothing = 1);
alter table tallied alter column d set (n_distinct = 1);
create view tallied_view as select * from tallied;
alter table tallied_view alter column a set (n_distinct = 1);
create role options_user;
set role options_user;
alter table tallied alter column a set (n_distinct = 1);
reset role;
drop role options_user;
drop view tallied_view;

create domain small as int default 7;
create table voids (a int default null, b varchar(5) default null, c text default null, d timestamp default null::timestamp,
  e numeric(4, 2) default null, f small default null, g int default 1, h text default null::varchar);
select attname, pg_get_expr(adbin, adrelid) from pg_attribute a left join pg_attrdef d on d.adrelid = attrelid and d.adnum = attnum
  where attrelid = 'voids'::regclass and attnum > 0 order by attnum;
alter table voids alter g set default null;
alter table voids add i uuid default null;
\d voids
insert into voids default values;
select * from voids;
drop table voids, tallied;
drop domain small;

set default_with_oids = off;
show default_with_oids;
set default_with_oids = on;
select count(*) from pg_settings where name = 'default_with_oids';

select 'character varying(30)'::regtype, 'numeric(4,2)'::regtype, 'timestamp(6) without time zone'::regtype, 'bit(3)[]'::regtype, 'varchar ( 5 )'::regtype;
select to_regtype('numeric(4, 2)');

select typname, typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze, typsubscript from pg_type
  where typname in ('bool', 'int4', '_int4', 'varchar', '_varchar', 'numeric', 'int4range', 'int4multirange', 'record', 'jsonb', 'name', 'oidvector', 'tsvector', 'time', 'any')
  order by typname;
create type mood as enum ('fine');
create type two as (a int, b text);
create domain few as varchar(4);
create table own (a int);
select typname, typinput, typoutput, typreceive, typsend, typmodin, typanalyze from pg_type
  where typname in ('mood', '_mood', 'two', 'few', '_few', 'own') order by typname = 'own', typname;
select 'array_in(cstring,oid,integer)'::regprocedure, 'array_in'::regproc, 'enum_in(cstring, oid)'::regprocedure;
select int4in('7'), textout('x'), int4send(258), numeric_in('1.25', 0, -1), boolout(true), array_send(array[1, 2]), enum_out('fine'::mood), int4in('x');
drop table own;
drop domain few;
drop type mood, two;

select normalize(U&'e\0301') = U&'\00e9', normalize(U&'\00e9', nfd) = U&'e\0301', normalize(U&'\fb01', nfkc), normalize(U&'\fb01', nfkd), normalize('');
select U&'e\0301' is normalized, U&'e\0301' is nfd normalized, U&'\fb01' is not nfkc normalized, '' is nfc normalized;
select "normalize"('a', 'def');
select is_normalized('a', 'def');
select normalize(null), is_normalized(null, 'nfc');

create database plain_letters lc_collate 'C' lc_ctype 'C' template template0;
create database plain_too lc_ctype 'C';
select datcollate, datctype from pg_database where datname = 'plain_letters';
\set own :DBNAME
\c plain_letters
show lc_ctype;
select upper('aé'), lower('AÉ'), initcap('éa ébc'), 'É' ilike 'é', 'A' ilike 'a';
\c :own
select upper('aé'), lower('AÉ'), initcap('éa ébc'), 'É' ilike 'é';
drop database plain_letters;

select array['int'::regtype]::oidvector, array[1, 2]::int2vector, array[2, 1]::oidvector;
select count(*) > 0 from pg_proc where proname = 'lower' and proargtypes = array['text'::regtype]::oidvector;
select array['x']::oidvector;
