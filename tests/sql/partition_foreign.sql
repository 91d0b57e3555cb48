-- names: pfk
-- Foreign keys from and to partitioned tables, with what they do, and what becomes of them with partitions.
create table pfk_p (a int, b text, primary key (a)) partition by range (a);
create table pfk_p1 partition of pfk_p for values from (0) to (10);
create table pfk_p2 (b text, gone int, a int not null primary key);
alter table pfk_p2 drop column gone;
alter table pfk_p attach partition pfk_p2 for values from (10) to (20);
create table pfk_plain (id int primary key, a int references pfk_p);
create table pfk_c (id int, a int references pfk_p on delete cascade on update cascade, n int) partition by list (id);
create table pfk_c1 partition of pfk_c for values in (1, 2);
create table pfk_c2 (n int, a int, id int);
insert into pfk_c2 values (0, 99, 3);
alter table pfk_c attach partition pfk_c2 for values in (3, 4);
delete from pfk_c2;
alter table pfk_c attach partition pfk_c2 for values in (3, 4);
insert into pfk_p values (1, 'one'), (2, 'two'), (11, 'eleven'), (12, 'twelve');
insert into pfk_plain values (1, 1), (2, 12), (3, null);
insert into pfk_plain values (4, 5);
insert into pfk_plain values (4, 25);
insert into pfk_c values (1, 1, 10), (3, 11, 30), (4, null, 40);
insert into pfk_c values (3, 13, 30);
insert into pfk_c2 values (30, 13, 3);
update pfk_c set a = 7 where id = 1;
update pfk_c set id = 2 where id = 3 returning tableoid::regclass, *;
update pfk_c set id = 3, a = 8 where id = 2;
select conrelid::regclass, conname, confrelid::regclass, conparentid <> 0, conislocal, coninhcount, pg_get_constraintdef(oid) from pg_constraint
  where contype = 'f' and conrelid::regclass::text like 'pfk\_%' order by conrelid::regclass::text collate "C", conname;
delete from pfk_p where a = 12;
delete from pfk_p2 where a = 12;
update pfk_p set a = 13 where a = 12;
update pfk_p set a = 3 where a = 12;
update pfk_p set b = 'new', a = 12 where a = 12 returning tableoid::regclass, *;
update pfk_p set a = 14 where a = 11 returning tableoid::regclass, *;
update pfk_p set a = 4 where a = 14 returning tableoid::regclass, *;
select tableoid::regclass, * from pfk_c order by id;
delete from pfk_p where a = 4;
select tableoid::regclass, * from pfk_c order by id;
delete from pfk_p where a = 1;
-- partitions come and go
create table pfk_p3 partition of pfk_p for values from (20) to (30);
insert into pfk_p values (25, 'late');
insert into pfk_plain values (5, 25);
alter table pfk_p detach partition pfk_p3;
drop table pfk_p3;
delete from pfk_plain where a = 25;
alter table pfk_p detach partition pfk_p3;
select conname, confrelid::regclass from pg_constraint where contype = 'f' and conrelid = 'pfk_plain'::regclass order by 1;
alter table pfk_p attach partition pfk_p3 for values from (20) to (30);
insert into pfk_plain values (5, 25);
truncate pfk_p3;
truncate pfk_p;
alter table pfk_c1 drop constraint pfk_c_a_fkey;
alter table pfk_c detach partition pfk_c1;
select conrelid::regclass, conname, confrelid::regclass, conparentid <> 0, conislocal, coninhcount from pg_constraint
  where contype = 'f' and conrelid::regclass::text like 'pfk\_c%' order by conrelid::regclass::text collate "C", conname;
insert into pfk_c1 values (1, 77, 1);
delete from pfk_c1;
alter table pfk_c attach partition pfk_c1 for values in (1, 2);
insert into pfk_c values (1, 77, 1);
select conrelid::regclass, conname, confrelid::regclass, conparentid <> 0 from pg_constraint
  where contype = 'f' and conrelid::regclass::text like 'pfk\_c%' order by conrelid::regclass::text collate "C", conname;
-- made later
create table pfk_d (x int, y int) partition by hash (x);
create table pfk_d1 partition of pfk_d for values with (modulus 2, remainder 0);
create table pfk_d2 partition of pfk_d for values with (modulus 2, remainder 1);
insert into pfk_d select i, 12 from generate_series(1, 10) i;
insert into pfk_d values (11, 13);
alter table pfk_d add constraint pfk_d_y foreign key (y) references pfk_p;
delete from pfk_d where y = 13;
alter table only pfk_d add constraint pfk_d_y foreign key (y) references pfk_p;
alter table pfk_d add constraint pfk_d_y foreign key (y) references pfk_p not valid;
alter table pfk_d add constraint pfk_d_y foreign key (y) references pfk_p on delete set null;
update pfk_d set y = 13 where x = 3;
delete from pfk_plain where a = 12;
delete from pfk_p where a = 12;
select count(*), count(y) from pfk_d;
alter table pfk_d drop constraint pfk_d_y;
update pfk_d set y = 13 where x = 3;
-- to a partition alone
create table pfk_e (a int references pfk_p1);
insert into pfk_e values (2);
update pfk_p set a = 3 where a = 2;
update pfk_p set a = 15 where a = 2;
drop table pfk_p;
drop table pfk_p cascade;
select conname from pg_constraint where contype = 'f' and conrelid::regclass::text like 'pfk\_%' order by 1;
-- within one table, deferred
create table pfk_t (id int primary key, up int references pfk_t deferrable initially deferred) partition by range (id);
create table pfk_t1 partition of pfk_t for values from (0) to (10);
create table pfk_t2 partition of pfk_t for values from (10) to (20);
begin;
insert into pfk_t values (1, 11);
insert into pfk_t values (11, 1);
commit;
begin;
insert into pfk_t values (2, 12);
commit;
alter table pfk_t1 alter constraint pfk_t_up_fkey not deferrable;
alter table pfk_t alter constraint pfk_t_up_fkey not deferrable;
select conrelid::regclass, conname, condeferrable, condeferred from pg_constraint
  where conname = 'pfk_t_up_fkey' order by conrelid::regclass::text collate "C";
begin;
insert into pfk_t values (2, 12);
rollback;
delete from pfk_t;
select * from pfk_t;
drop table pfk_t, pfk_c, pfk_d, pfk_e, pfk_plain;
