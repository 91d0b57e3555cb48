-- names: ledger entry remark clerk keeper reader summary digest
create role clerk;
create role keeper;
create role reader;
create table ledger(entry int primary key, remark text);
insert into ledger values (1, 'x');

-- SELECT on a column says nothing of a system column, and the other way around.
grant select (entry) on ledger to clerk;
grant select (tableoid) on ledger to keeper;
grant select (ctid) on ledger to reader;
set role clerk;
select entry from ledger;
select tableoid::regclass from ledger;
select entry, tableoid::regclass from ledger;
select count(*) from ledger where tableoid is not null;
select 1 from ledger l where l.tableoid > 0;
select (select tableoid from ledger limit 1) is null;
select entry from ledger order by tableoid;
select entry from ledger group by entry, tableoid;
select 1 from ledger;
set role keeper;
select tableoid::regclass from ledger;
select tableoid::regclass, entry from ledger;
select entry from ledger;
select 1 from ledger;
select count(*) from ledger;
select * from ledger where tableoid > 0;
update ledger set remark = 'y' where tableoid > 0;
delete from ledger where tableoid > 0;
set role reader;
select tableoid > 0 from ledger;
reset role;
grant insert, update (remark) on ledger to keeper;
set role keeper;
insert into ledger values (2, 'y') returning tableoid::regclass;
insert into ledger values (3, 'y') returning entry;
update ledger set remark = 'z' returning tableoid::regclass;
update ledger set remark = 'z' where tableoid > 0;
select has_column_privilege('ledger', 'tableoid', 'select'), has_column_privilege('ledger', 'ctid', 'select');
select has_column_privilege('ledger', (-6)::int2, 'select'), has_column_privilege('ledger', (-1)::int2, 'select');
select has_column_privilege('ledger', (-7)::int2, 'select') is null as is_none;
reset role;
select has_column_privilege('clerk', 'ledger', 'tableoid', 'select'), has_column_privilege('reader', 'ledger', 'ctid', 'select');
select has_any_column_privilege('clerk', 'ledger', 'select'), has_any_column_privilege('keeper', 'ledger', 'select');
select has_any_column_privilege('reader', 'ledger', 'select');

-- Which of several.
select tableoid from ledger a, ledger b;
select a.tableoid = b.tableoid as same from ledger a, ledger b limit 1;
select tableoid from (select * from ledger) l;

-- Views have none.
create view summary as select entry, remark from ledger;
select tableoid from summary;
select ctid from summary;
select s.xmin from summary s;
grant select (ctid) on summary to clerk;
grant select (tableoid) on summary to clerk;
select has_column_privilege('clerk', 'summary', 'ctid', 'select');
create materialized view digest as select entry from ledger;
select tableoid::regclass from digest limit 1;

-- Below a view the owner needs them.
create view over as select tableoid::regclass as which from ledger;
alter view over owner to clerk;
select * from over;
grant select (tableoid) on ledger to clerk;
select * from over limit 1;
revoke select on ledger from clerk;
select * from over;

drop view summary, over;
drop materialized view digest;
drop table ledger;
drop role clerk, keeper, reader;
