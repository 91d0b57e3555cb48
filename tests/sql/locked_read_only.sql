-- names: parcel
-- Row locks anywhere in a statement are refused where a transaction only reads, but for those of
-- temporary tables; REINDEX changes nothing that a dump would show.
create table parcel_a (a int primary key);
create table parcel_b (b int, c int not null);
insert into parcel_a values (1), (2);
insert into parcel_b values (1, 1);
create view parcel_view as select * from parcel_b for update;
create temp table parcel_temp (a int);
insert into parcel_temp values (1);
begin read only; select * from (select * from parcel_a for update) s; rollback;
begin read only; select * from (select * from parcel_a for share) s for update; rollback;
begin read only; with x as (select * from parcel_a for share) select * from x; rollback;
begin read only; select 1 where exists (select * from parcel_a for key share); rollback;
begin read only; select * from parcel_view; rollback;
begin read only; select * from parcel_temp for update; rollback;
begin read only; select * from parcel_temp, parcel_a for update of parcel_temp; rollback;
begin read only; select * from parcel_temp, parcel_a for update of parcel_a; rollback;
begin read only; reindex table parcel_a; reindex index parcel_a_pkey; rollback;
begin read only; select (select a from parcel_a limit 1 for share) from parcel_b for update; rollback;
begin read only; declare parcel_cursor cursor for select * from (select * from parcel_a for no key update) s; rollback;
-- tableoid is NULL where an outer join found no row; a join has none of its own.
select parcel_a.tableoid::regclass, parcel_b.tableoid::regclass from parcel_a left join parcel_b on a = b order by a;
select x.tableoid::regclass, y.tableoid::regclass from parcel_b y right join parcel_a x on a = b order by a;
select parcel_b.tableoid is null, count(*) from parcel_a full join parcel_b on a = b and a = 7 group by parcel_b.tableoid order by 1;
select parcel_b.tableoid::regclass from parcel_a left join parcel_b on a = b and parcel_b.tableoid = 'parcel_b'::regclass order by a;
select c.relname, i.tableoid::regclass from pg_class c left join pg_index i on i.indrelid = c.oid and i.indisunique where c.relname in ('parcel_a', 'parcel_b') order by 1;
select tableoid from parcel_a join parcel_b on a = b;
select tableoid from parcel_a, parcel_b;
select tableoid from parcel_a cross join parcel_b where false;
drop view parcel_view;
drop table parcel_a, parcel_b, parcel_temp;
