-- names: strict code kind
-- Where an error is, what it is called, and what is said beside it.
create table strict (code int primary key, kind text not null default 'plain');
selec 1;
select 1 frm strict;
select * form strict;
select from where;
select (1;
select 1);
select 'a;
';
select "unfinished
";
select * from strict where;
insert strict values (1);
insert into strict value (1);
insert into strict values 1;
update strict kind = 'x';
delete strict;
create table (code int);
create strict (code int);
create table strict2 (code);
create table strict2 code int;
drop strict;
;
;;
select 1 ; ; select 2;
-- A position may stand on a later line.
select code,
       kind,
       nosuch
from strict;
select code
from strict
where kind = 'é' and nosuch = 1;
select '→', nosuch;
insert into strict values (1, null);
insert into strict (code, kind) values (null, 'x');
insert into strict values (1, 'one');
insert into strict values (1, 'two');
update strict set kind = null;
update strict set code = null;
select * from strict;
select * from nosuch;
select * from nosuch.strict;
select * from nosuchdb.public.strict;
select nosuch.* from strict;
select count(nosuch) from strict;
select kind from strict group by code having nosuch > 1;
select code from strict order by nosuch;
select nosuchfunction(code) from strict;
select length(code) from strict;
select length();
select kind * 2 from strict;
select -kind from strict;
select not kind from strict;
select code like 'x' from strict;
select code and true from strict;
select kind > 1 from strict;
select code = kind from strict;
select code in ('x') from strict;
select code in (1, 'x') from strict;
select kind between 1 and 2 from strict;
select coalesce(code, kind) from strict;
select case when code = 1 then kind else code end
from strict;
select strict from nosuch;
select code as from strict;
select 9999999999999999999999999::int8;
select 1::numeric(3, 2) + 99999999999::int4;
select substring('x' from 1 for -5);
select $1;
select 1 limit 1 limit 2;
select all distinct code from strict;
select * from strict, strict;
select code code2 code3 from strict;
select 1 from strict s, nosuch n;
select current_setting('nosuch.setting');
select 'x'::nosuch;
select repeat('x', -1) = '', repeat('ab', 0);
select 1 as "a""b", 2 as "";
select 1 as "";
select e'\q', e'\\';
select @ -5, !!3;
select 1 /* a comment /* inside another */ */ + 1;
select 1 -- the rest of the line
  + 2;
select /* unfinished;
*/ 1;
-- The table is as it was.
select * from strict;
drop table strict;
