-- names: items itemid label price stock copies
create table items (itemid int primary key, label text, price numeric(8, 2) default 1.50, stock int default 10);
insert into items values (1, 'pen', 2.25, 5);
insert into items (itemid, label) values (2, 'ink');
insert into items (label, itemid) values ('pad', 3);
insert into items values (4), (5);
insert into items values (6, 'six'), (7, 'seven', 7.777, 7), (8, null, null, null);
insert into items (itemid, price) values (9, default);
insert into items values (10, default, default, 1 + 2 * 3);
select * from items order by itemid;
insert into items values (11, 'a', 1, 1, 1);
insert into items (itemid, label) values (11);
insert into items (itemid) values (11, 'x');
insert into items values (11, 'x'), (12);
insert into items (itemid, itemid) values (1, 2);
insert into items (nosuch) values (1);
insert into nosuch values (1);
insert into items values ('x');
insert into items values (true);
insert into items (itemid, price) values (11, 1234567.891);
insert into items (label) values ('no key');
insert into items (itemid, label) values (null, 'no key');
insert into items values (1, 'again');
select count(*) from items;
-- Returning.
insert into items values (20, 'twenty') returning *;
insert into items values (21, 'more'), (22, 'most') returning itemid, upper(label) as loud, price * 2;
insert into items (itemid) values (23) returning nosuch;
-- From queries.
create table copies (itemid int, label text);
insert into copies select itemid, label from items where itemid < 4;
insert into copies select itemid + 100, label || '!' from copies;
insert into copies (label) select label from items where itemid = 1;
select * from copies order by itemid nulls first, label;
insert into copies select 1;
insert into copies (itemid) select 1, 2;
insert into copies select 'x', 'y';
insert into copies values ((select max(itemid) from items), (select label from items where itemid = 2));
select * from copies where itemid = 23;
insert into copies default values;
select count(*), count(itemid) from copies;
-- All or nothing.
insert into items values (50, 'good'), (51, 'good'), (50, 'bad');
select * from items where itemid >= 50;
insert into items select itemid + 49, label from items where itemid <= 3;
select itemid, label from items where itemid >= 50 order by itemid;
-- Generated.
insert into copies select g, 'row ' || g from generate_series(1000, 1999) g;
select count(*), min(itemid), max(itemid), min(label), max(label) from copies where itemid >= 1000;
drop table items, copies;
