-- names: stock itemid label total upward viewed numbers fixed
create table stock (itemid int generated always as identity primary key, label text default 'none', total int generated always as (length(label)) stored);
copy stock (label) from stdin;
pen
paper
\.
select * from stock order by itemid;
copy stock to stdout;
copy stock (itemid, total) to stdout;
copy stock (itemid, label) to stdout csv header;
copy stock from stdin;
7	ink
\.
copy stock (label, total) from stdin;
\.
copy stock (itemid, label, total) from stdin;
\.
select * from stock order by itemid;
insert into stock (label) values ('after');
select * from stock order by itemid;
create view viewed as select itemid, label from stock;
copy viewed to stdout;
copy viewed from stdin;
\.
copy (select * from viewed order by itemid) to stdout;
create sequence numbers;
copy numbers to stdout;
copy numbers from stdin;
\.
create table upward (itemid int default nextval('numbers'), label text default 'made on ' || 'demand', fixed serial);
copy upward (label) from stdin;
one
two
\.
copy upward (itemid) from stdin;
10
\.
select * from upward order by itemid;
copy upward from stdin;
5	five	100
\.
copy upward to stdout;
drop view viewed;
drop table stock;
drop table upward;
drop sequence numbers;
