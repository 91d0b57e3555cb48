-- names: zcf
-- Cursors that a function in SQL declares, with its arguments in their queries.
create table zcf (a int, b text);
insert into zcf select n, 'row ' || n from generate_series(1, 12) n;
create function zcf_open(text, int) returns void language sql as 'declare zcf_cursor cursor for select a, b from zcf where b like $1 and a > $2 order by a';
select zcf_open('row 1%', 1);
begin;
select zcf_open('row 1%', 1);
fetch all from zcf_cursor;
select zcf_open('row 1%', 1);
rollback;
begin;
select zcf_open(null, 1);
fetch all from zcf_cursor;
rollback;
begin;
set transaction read only;
select zcf_open('%', 10);
fetch 1 from zcf_cursor;
commit;
drop function zcf_open(text, int);
drop table zcf;
