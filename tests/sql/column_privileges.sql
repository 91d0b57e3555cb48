-- names: ledger entry amount remark clerk bookkeeper summary auditing teller
\pset null '(null)'
create role clerk;
create role bookkeeper;
create role auditing in role pg_read_all_data;
create table ledger(entry int primary key, amount numeric default 7, remark text);
insert into ledger values (1, 10, 'a'), (2, 20, 'b');

-- Nothing, then some columns.
set role clerk;
select entry from ledger;
reset role;
grant select (entry, amount) on ledger to clerk;
set role clerk;
select entry, amount from ledger order by entry;
select * from ledger;
select ledger.* from ledger;
select remark from ledger;
select count(*) from ledger;
select 1 from ledger;
select entry from ledger where remark = 'a';
select entry from ledger order by remark;
select entry from ledger group by entry, remark;
select max(amount) from ledger having max(remark) = 'b';
select (select amount from ledger l where l.entry = o.entry) from ledger o order by 1;
select (select l.remark from ledger l where l.entry = o.entry) from ledger o;
select (select o.remark) from ledger o;
select a.entry from ledger a join ledger b using (entry) order by 1;
select a.entry from ledger a join ledger b using (remark);
select a.entry from ledger a natural join ledger b;
select entry from (select entry, amount from ledger) s order by 1;
select entry from (select * from ledger) s order by 1;
with w as (select remark from ledger) select 1 from w;
select entry from ledger order by entry for update;
select entry from ledger order by entry for share;
copy ledger (entry, amount) to stdout;
copy ledger to stdout;
copy ledger (remark) to stdout;
reset role;

-- INSERT.
grant insert (entry, remark) on ledger to clerk;
set role clerk;
insert into ledger (entry) values (3);
insert into ledger (entry, remark) values (4, 'd');
insert into ledger (entry, amount) values (5, 1);
insert into ledger values (6);
insert into ledger values (7, 1);
insert into ledger default values;
insert into ledger (entry) select 8;
insert into ledger (entry, amount) select 9, 1;
insert into ledger (entry) values (10) returning entry, amount;
insert into ledger (entry) values (10);
insert into ledger (entry) values (11) returning remark;
insert into ledger (entry) values (12) returning *;
insert into ledger (entry) values (10) on conflict do nothing;
insert into ledger (entry) values (10) on conflict (entry) do nothing;
insert into ledger (entry) values (10) on conflict on constraint ledger_pkey do nothing;
insert into ledger (entry) values (10) on conflict (entry) do update set remark = 'x';
reset role;
copy (select entry, amount, remark from ledger order by entry) to stdout;

-- UPDATE.
grant update (remark) on ledger to clerk;
set role clerk;
update ledger set remark = 'y' where entry = 10;
update ledger set amount = 1;
update ledger set remark = 'z', amount = 1;
update ledger set remark = remark || '!';
update ledger set remark = 'w' where remark = 'b';
update ledger set remark = 'v' where entry = 2 returning entry;
update ledger set remark = 'v' where entry = 2 returning remark;
update ledger set remark = 'u' from ledger o where o.remark = 'b';
update ledger set (remark, amount) = ('p', 2) where entry = 1;
select entry from ledger order by entry for update;
insert into ledger (entry) values (10) on conflict (entry) do update set remark = 'x';
insert into ledger (entry) values (10) on conflict (entry) do update set amount = 3;
insert into ledger (entry, remark) values (10, 'q') on conflict (entry) do update set remark = excluded.remark;
insert into ledger (entry, remark) values (10, 'q') on conflict (entry) do update set remark = excluded.entry;
delete from ledger;
reset role;

-- What needs SELECT besides.
create role teller;
grant update on ledger to teller;
grant delete on ledger to teller;
set role teller;
update ledger set remark = 'k';
update ledger set remark = 'k' where entry = 1;
update ledger set remark = 'k' where true;
delete from ledger where entry = 1;
delete from ledger returning 1;
reset role;
grant select (entry) on ledger to teller;
set role teller;
update ledger set remark = 'm' where entry = 1;
delete from ledger where entry = 12 or entry = 11;
delete from ledger where amount = 1;
reset role;

-- Views, whose owner needs what they read.
create view summary as select entry, remark from ledger;
alter view summary owner to bookkeeper;
grant select on summary to clerk;
set role clerk;
select * from summary order by entry;
reset role;
grant select (entry) on ledger to bookkeeper;
set role clerk;
select entry from summary order by entry;
reset role;
grant select (remark) on ledger to bookkeeper;
set role clerk;
select * from summary where entry < 3 order by entry;
reset role;
revoke select on summary from clerk;
grant select (remark) on summary to clerk;
set role clerk;
select remark from summary where remark = 'm';
select entry from summary;
select count(*) > 1 from summary;
reset role;

-- Taken back, and through roles.
revoke select (amount) on ledger from clerk;
set role clerk;
select entry, amount from ledger;
reset role;
set role clerk;
insert into ledger (remark, entry) values ('t', 10);
reset role;
revoke select on ledger from clerk;
set role clerk;
insert into ledger (entry) values (10);
insert into ledger (entry) values (10) on conflict (entry) do nothing;
reset role;
grant select (remark) on ledger to public;
set role clerk;
select entry, remark from ledger where entry = 1;
select remark from ledger where remark = 'm';
select has_column_privilege('ledger', 'amount', 'select'), has_column_privilege('ledger', 'remark', 'select'), has_any_column_privilege('ledger', 'update'), has_table_privilege('ledger', 'select');
reset role;
set role auditing;
select entry, amount, remark from ledger where entry = 1;
update ledger set remark = 'n';
reset role;
drop view summary;
drop table ledger;
drop role clerk, bookkeeper, auditing, teller;
