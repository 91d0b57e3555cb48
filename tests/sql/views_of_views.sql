-- names: ledger near narrow wide caller amount remark chief clerk teller basis guarded
create role chief;
create role clerk;
create role teller;
create table ledger(amount int primary key, remark text, c int);
insert into ledger values (1, 'x', 1);
create view near as select amount, remark from ledger;
alter view near owner to chief;
create view narrow as select amount from near;
alter view narrow owner to clerk;
create view wide as select near.remark, near.amount from near;
alter view wide owner to clerk;
grant all on narrow, wide to teller;
grant all on ledger to chief;

-- What is written through a view of a view needs the privileges of both owners, column by column.
set role teller;
update narrow set amount = 5; update wide set amount = 5; update wide set remark = 'x';
reset role; grant update (remark) on near to clerk; set role teller;
update narrow set amount = 5; update wide set amount = 5; update wide set remark = 'y';
reset role; revoke update (remark) on near from clerk; grant update (amount) on near to clerk; set role teller;
update narrow set amount = 6; update wide set amount = 7; update wide set remark = 'z';

-- Whoever reads what is written needs to read all that the views between look at.
update narrow set amount = amount; update wide set amount = amount; update wide set amount = 8 where remark is not null;
reset role; grant select (amount) on near to clerk; set role teller;
update narrow set amount = 6; update wide set amount = 7; update wide set remark = 'z';
update narrow set amount = amount; update wide set amount = amount; update wide set remark = remark;
update wide set amount = 8 where remark is not null; update wide set amount = 8 where amount is not null;
reset role; grant select (remark) on near to clerk; set role teller;
update wide set amount = amount; update wide set remark = remark; update wide set amount = 8 where remark is not null;

-- INSERT and DELETE.
delete from wide; insert into wide values ('nine', 9); insert into wide(amount) values (10); insert into narrow values (11);
reset role; grant insert (amount) on near to clerk; set role teller;
insert into wide values ('nine', 9); insert into wide(amount) values (10); insert into narrow values (11);
delete from narrow;
reset role; grant delete on near to clerk; set role teller;
delete from narrow;

-- The owner of the view that is nearest needs them too.
reset role; revoke update on ledger from chief; grant update (remark) on ledger to chief; set role teller;
update narrow set amount = 5; update wide set amount = 5; update wide set remark = 'x';
reset role; revoke all on ledger from chief; grant update (amount), select (c) on ledger to chief; set role teller;
update narrow set amount = 5; update narrow set amount = 5 where amount = 0; update wide set remark = 'x';
reset role; grant select (amount) on ledger to chief; set role teller;
update narrow set amount = 5 where amount = 0; update wide set amount = 5 where amount = 0; update wide set remark = 'x';
select * from narrow; select 1 from wide; select amount from wide;
reset role; grant select (remark), insert on ledger to chief; set role teller;
select * from narrow; select 1 from wide; select amount from wide;
insert into narrow values (50) on conflict do nothing;
insert into narrow values (50) on conflict (amount) do update set amount = 52;
insert into narrow values (53) returning amount;
reset role;

-- Columns of the view that is named.
revoke all on narrow, wide from teller;
grant update (amount), select (amount) on wide to teller;
set role teller;
update wide set remark = 'x'; update wide set amount = 5 where amount = 0; update wide set amount = 5 where remark = 'x';
update wide set amount = 5 where amount = 0 returning amount; update wide set amount = 5 where amount = 0 returning remark;
reset role;

-- What a view's condition looks at besides is read whatever the statement does.
create table basis(i int);
create view guarded as select amount from near where amount in (select i from basis);
alter view guarded owner to clerk;
grant all on guarded to teller;
set role teller;
update guarded set amount = 1; insert into guarded values (91); delete from guarded;
reset role; grant select on basis to clerk; set role teller;
update guarded set amount = 1; delete from guarded;
reset role;
drop view guarded; drop table basis;

-- For whoever asks.
create view caller with (security_invoker) as select amount, remark from near;
grant all on caller to teller;
grant all on ledger to chief;
set role teller;
update caller set amount = 5; insert into caller(amount) values (90); select * from caller;
reset role; grant update (amount), insert (amount) on near to teller; set role teller;
update caller set amount = 5 where false; update caller set amount = 54; insert into caller(amount) values (90); select * from caller;
update caller set remark = 's';
insert into caller(amount, remark) values (91, 'x');
reset role;
select amount, remark from ledger order by amount;

drop view caller, narrow, wide, near;
drop table ledger;
drop role chief, clerk, teller;
-- Over what is a view itself in the catalog.
create view vov_roles as select rolname from pg_roles where rolname <> 'postgres' and not rolsuper;
create view vov_tables as select tablename, (select count(*) from pg_views as v where v.schemaname = t.schemaname) as views from pg_tables as t where tablename ~ '^vov';
create view vov_columns as select c.column_name, r.rolname from information_schema.columns as c join pg_roles as r on r.rolname = c.table_name where c.table_name = 'vov_roles';
create materialized view vov_kept as select schemaname, indexname from pg_indexes where schemaname = 'nowhere';
create function vov_body() returns bigint begin atomic select count(*) from pg_tables where tablename = 'nothing'; end;
select count(*) from vov_roles where rolname = 'nobody';
select count(*) from vov_tables where tablename = 'nothing';
select * from vov_columns;
select * from vov_kept;
select vov_body();
select pg_get_viewdef('vov_roles'::regclass);
select pg_get_viewdef('vov_tables'::regclass);
drop view vov_roles, vov_tables, vov_columns;
drop materialized view vov_kept;
drop function vov_body();
