-- names: zes
-- Plain strings with escapes: standard_conforming_strings off, and what escape_string_warning says of them.
\set SHOW_CONTEXT never
create table zes (id serial, t text default 'a\b');
prepare zes_on as select 'x\ty';
select 'a\nb', E'a\nb';
set standard_conforming_strings = off;
show standard_conforming_strings;
select 'a\nb', E'a\nb';
select 'a\'b';
select '\\', '\'';
select 'ä', 'b\\', 'c\x41\u00e4\101';
select 'no escape', "id", $$d\$$, $a$'\n'$a$ from zes;
select 'a' 
  '\tb', length('\n');
select B'1', X'1F', n'\n' -- '\n'
  /* '\n' */;
select U&'\0061';
select U&'a';
select U&"\0069d" from zes;
execute zes_on;
prepare zes_off as select 'x\ty';
set escape_string_warning = off;
select 'a\nb', '\\';
insert into zes (t) values ('c\\d'), ('e\'f') returning t;
alter table zes alter t set default 'g\\h';
create view zes_v as select 'v\\w' as v, t like 'c\\\\%' as l from zes;
create function zes_plain(x text) returns text language sql as 'select x || \'!\'';
select zes_plain('p\\q');
do $$ begin raise notice '%', 'no escape'; execute 'select ''a\\b'''; end $$;
begin;
declare zes_c cursor for select 'a\tb';
fetch zes_c;
commit;
create table zes_ctas as select 'a\\b' as t;
select t from zes where t = 'c\\d';
set standard_conforming_strings = on;
execute zes_on;
execute zes_off;
select 'a\nb';
insert into zes default values returning t;
select * from zes_v order by 1, 2;
select * from zes_ctas;
\d zes
\d+ zes_v
set standard_conforming_strings = off;
set escape_string_warning = on;
select t from zes where t = 'c\\d';
select t from zes where t = 'c\\d';
prepare zes_p(text) as select $1 || '\\';
execute zes_p('x\\');
begin;
set local standard_conforming_strings = on;
select '\a';
rollback;
select '\a';
reset standard_conforming_strings;
select '\a';
deallocate all;
drop view zes_v;
drop function zes_plain;
drop table zes, zes_ctas;
