-- names: pkt
-- Keys and indexes over partitions, tables that become partitions and cease to be, and the catalog.
create table pkt_m (id int, day date not null, v text default 'new', primary key (id)) partition by range (day);
create table pkt_m (id int, day date not null, v text default 'new', unique (id)) partition by range (day);
create table pkt_m (id int, day date not null, v text default 'new', primary key (id, day)) partition by range (extract(year from day));
create table pkt_m (id int, day date not null, v text default 'new', primary key (id, day)) partition by range (day);
create table pkt_m1 partition of pkt_m for values from ('2024-01-01') to ('2024-02-01');
create table pkt_m2 partition of pkt_m (constraint pkt_m2_v check (v <> 'x')) for values from ('2024-02-01') to ('2024-03-01');
create table pkt_bad partition of pkt_m (primary key (id)) for values from ('2025-02-01') to ('2025-03-01');
insert into pkt_m (id, day) values (1, '2024-01-15'), (1, '2024-02-15');
insert into pkt_m values (2, '2024-01-16', 'two');
insert into pkt_m values (1, '2024-01-15');
insert into pkt_m values (1, null);
insert into pkt_m values (3, '2024-02-15', 'x');
insert into pkt_m values (1, '2024-01-15', 'again') on conflict do nothing;
insert into pkt_m values (1, '2024-01-15', 'again') on conflict (id) do nothing;
insert into pkt_m values (1, '2024-01-15', 'again'), (4, '2024-01-15', 'four')
  on conflict (id, day) do update set v = pkt_m.v || '+' || excluded.v returning *;
insert into pkt_m values (1, '2024-02-15', 'third') on conflict on constraint pkt_m_pkey do update set v = excluded.v
  where pkt_m.v = 'new' returning *;
create index pkt_v on pkt_m (v);
create unique index on pkt_m (lower(v), day);
create index concurrently on pkt_m (v);
create unique index on pkt_m (v);
insert into pkt_m values (9, '2024-01-15', 'FOUR');
create table pkt_m3 (v text default 'own', gone int, day date not null, id int not null);
alter table pkt_m3 drop column gone;
insert into pkt_m3 values ('third', '2024-03-15', 7), ('late', '2024-05-15', 8);
alter table pkt_m attach partition pkt_m3 for values from ('2024-03-01') to ('2024-04-01');
delete from pkt_m3 where id = 8;
alter table pkt_m attach partition pkt_m3 for values from ('2024-02-01') to ('2024-04-01');
alter table pkt_m attach partition pkt_m3 for values from ('2024-03-01') to ('2024-04-01');
alter table pkt_m attach partition pkt_m3 for values from ('2024-03-01') to ('2024-04-01');
create table pkt_odd (id int not null, day timestamp not null, v text);
alter table pkt_m attach partition pkt_odd default;
drop table pkt_odd;
create table pkt_odd (id int not null, day date not null, v text, w text);
alter table pkt_m attach partition pkt_odd default;
drop table pkt_odd;
create table pkt_odd (id int, day date not null, v text);
alter table pkt_m attach partition pkt_odd default;
drop table pkt_odd;
insert into pkt_m values (9, '2024-03-16', 'nine') returning tableoid::regclass, *;
insert into pkt_m values (9, '2024-03-16', 'nine') on conflict do nothing returning *;
insert into pkt_m values (9, '2024-03-16', 'nine');
update pkt_m set day = day + 29 where id = 2 returning tableoid::regclass, *;
update pkt_m set day = '2024-03-16', id = 10 where id = 2 returning tableoid::regclass, *;
update pkt_m set v = 'here' where day = '2024-03-15' returning tableoid::regclass, *;
update pkt_m set day = day - 30 where id = 10 returning tableoid::regclass, *;
delete from pkt_m where id = 9 returning *;
select tableoid::regclass, * from pkt_m order by id, day;
select * from pkt_m where day = '2024-03-15' for update;
select * from pkt_m3;
create view pkt_view as select id, v from pkt_m;
select * from pkt_view order by id, v;
-- the catalog
select relname, relkind, relispartition, relhassubclass, pg_get_expr(relpartbound, oid), relhasindex
  from pg_class where relname like 'pkt\_%' order by relname;
select inhrelid::regclass, inhparent::regclass, inhseqno, inhdetachpending from pg_inherits
  where inhparent::regclass::text like 'pkt\_%' order by inhrelid::regclass::text collate "C";
select partrelid::regclass, partstrat, partnatts, partdefid, partattrs, partcollation, partexprs is null, pg_get_partkeydef(partrelid)
  from pg_partitioned_table where partrelid = 'pkt_m'::regclass;
select indexrelid::regclass, pg_get_indexdef(indexrelid) from pg_index where indrelid::regclass::text like 'pkt\_m%' order by indexrelid::regclass::text collate "C";
create table pkt_forms (a int, b text, c bigint, d numeric, e boolean, f timestamptz)
  partition by range (a, lower(b), c, d, e, (a + 1));
create table pkt_forms1 partition of pkt_forms for values from (-1, 'it''s', 7, 1.5, false, minvalue) to (maxvalue, maxvalue, maxvalue, maxvalue, maxvalue, maxvalue);
select pg_get_partkeydef('pkt_forms'::regclass), pg_get_expr(relpartbound, oid) from pg_class where relname = 'pkt_forms1';
create table pkt_list (a text, e boolean) partition by list (e);
create table pkt_list1 partition of pkt_list for values in (true, null);
create table pkt_list2 partition of pkt_list default partition by hash (a);
create table pkt_list3 partition of pkt_list2 for values with (modulus 2, remainder 1);
select relname, pg_get_expr(relpartbound, oid), pg_get_partkeydef(oid) from pg_class where relname like 'pkt\_list%' order by 1;
select *, pg_partition_root(relid) from pg_partition_tree('pkt_list');
select * from pg_partition_tree('pkt_list2');
select * from pg_partition_ancestors('pkt_list3');
select * from pg_partition_ancestors('pkt_view');
select * from pg_partition_tree('pkt_m_pkey');
-- what is a part of something cannot go alone
drop index pkt_m1_v_idx;
alter table pkt_m1 drop constraint pkt_m1_pkey;
drop index pkt_m_pkey;
alter table pkt_m detach partition pkt_m3;
alter table pkt_m detach partition pkt_m3;
select * from pkt_m3;
insert into pkt_m3 values ('anything', '2030-01-01', 1);
select count(*) from pkt_m;
drop index pkt_v;
alter table pkt_m drop constraint pkt_m_pkey;
insert into pkt_m values (1, '2024-01-15', 'twice');
select relname from pg_class where relkind in ('i', 'I') and relname like 'pkt\_m%' order by 1;
alter table pkt_m add primary key (id, day);
delete from pkt_m where v = 'twice';
alter table pkt_m add primary key (id, day);
insert into pkt_m values (1, '2024-01-15', 'twice');
-- as pg_dump does it
create table pkt_d (id int not null, v text) partition by list (id);
create table pkt_d1 (id int not null, v text);
alter table only pkt_d attach partition pkt_d1 for values in (1);
alter table only pkt_d add constraint pkt_d_pkey primary key (id);
alter table only pkt_d1 add constraint pkt_d1_pkey primary key (id);
create index pkt_d_v on only pkt_d (v);
create index pkt_d1_v on pkt_d1 (v);
alter index pkt_d_pkey attach partition pkt_d1_pkey;
alter index pkt_d_v attach partition pkt_d1_v;
alter index pkt_d_v attach partition pkt_d1_v;
alter index pkt_d_v attach partition pkt_d1_pkey;
select inhrelid::regclass, inhparent::regclass from pg_inherits where inhparent::regclass::text like 'pkt\_d%' order by inhrelid::regclass::text collate "C";
insert into pkt_d values (1, 'a'), (1, 'b') on conflict (id) do update set v = 'c';
insert into pkt_d values (1, 'a') on conflict (id) do update set v = pkt_d.v || '!' returning *;
drop view pkt_view;
drop table pkt_m, pkt_m3, pkt_forms, pkt_list, pkt_d;
