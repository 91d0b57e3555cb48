-- names: sfa sfs sfn sfv sfc sff
-- What of a row is computed only once it is sorted.
create table sfa (a int, b int, t text);
insert into sfa select i, (i * 37) % 101, 't' || i from generate_series(1, 60) i;
create sequence sfs;

-- Numbers in the order of the rows, and no more of them than rows.
select a, nextval('sfs') from sfa order by b limit 4;
select currval('sfs');
select a, b, nextval('sfs') as n, nextval('sfs') - a as d from sfa order by b desc, a limit 3;
select currval('sfs');
select a, nextval('sfs') + b from sfa order by b offset 2 limit 2;
select currval('sfs');
select nextval('sfs'), a from sfa where a < 4 order by b desc;
select a, nextval('sfs') from sfa order by 2 limit 3;
select currval('sfs') > 60;
select setval('sfs', 100);
select nextval('sfs') as n, a from sfa where a < 6 order by t fetch first 2 rows with ties;
select count(*) from (select nextval('sfs') from sfa order by b limit 5) s;
select currval('sfs');
select a % 3 as g, count(*), nextval('sfs') from sfa group by 1 order by 2 desc, 1 limit 2;
select currval('sfs');
select a, row_number() over (order by b), nextval('sfs') from sfa order by b limit 2;
select distinct on (a % 2) a % 2, b from sfa order by a % 2, b;
-- Sets after the sort, unless it is by one.
select a, generate_series(1, 2) from sfa order by b limit 5;
select generate_series(1, 3) as g, a from sfa where a < 3 order by a desc;
select generate_series(1, 3) as g, a from sfa where a < 3 order by g desc, a limit 4;
select a, unnest(array[a, b]) from sfa order by t desc limit 3;
select generate_series(1, 2) + generate_series(1, 4), a from sfa order by b limit 3;
-- Calls of routines, and subqueries, of the rows that somebody looks at.
create table sfc (n int);
create function sff(int) returns int language plpgsql as $$ begin if $1 > 100 then raise exception 'too far: %', $1; end if; return $1; end $$;
select a, sff(b + 90) from sfa order by b limit 3;
select sff(b + 90), a from sfa order by b desc limit 3;
select a, (select max(s.b) from sfa s where s.a < sfa.b) from sfa order by b limit 3;
select a, (select 1 / (s.a - 30) from sfa s where s.a = sfa.a) from sfa order by a limit 3;
create function sfn(int) returns int volatile language plpgsql as $$ begin insert into sfc values ($1); return $1; end $$;
select a, sfn(a) from sfa order by b limit 3;
select * from sfc;
create view sfv as select a, nextval('sfs') as n from sfa order by b limit 3;
select a from sfv;
select count(n) from sfv;
insert into sfc select nextval('sfs') from sfa order by b limit 2 returning n > 0;
declare sfcur cursor with hold for select a, sfn(a) from sfa order by b desc limit 4;
select n from sfc order by n;
close sfcur;
drop view sfv;
drop table sfa, sfc;
drop sequence sfs;
drop function sff, sfn;
