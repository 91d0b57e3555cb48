-- names: stock sku label qty price groups gname
create table stock (sku int primary key, label text, qty int, price numeric);
insert into stock select g, 'label ' || g, g % 5, g * 1.1 from generate_series(1, 20) g;
update stock set qty = 100 where sku = 3;
select * from stock where sku = 3;
update stock set qty = qty + 1, label = upper(label) where sku between 5 and 7;
select * from stock where sku between 4 and 8 order by sku;
update stock set price = default where sku = 9;
update stock set (qty, label) = (0, 'none') where sku = 10;
update stock set (qty, label) = row(7, 'row') where sku = 11;
select * from stock where sku between 9 and 11 order by sku;
update stock set qty = null where sku > 18 returning sku, qty, label;
update stock set qty = 1 where sku = 999;
update stock set nosuch = 1;
update nosuch set qty = 1;
update stock set qty = 'x' where sku = 1;
update stock set qty = 'x';
update stock set qty = 1, qty = 2;
update stock set qty = label where sku = 1;
update stock set qty = 2147483647 + sku where sku = 1;
update stock set qty = 5 where nosuch = 1;
update stock set qty = 5 where sku;
-- Old values on the right.
update stock set qty = sku, sku = qty + 1000 where sku = 3;
select * from stock where sku > 1000;
-- Keys move.
update stock set sku = sku + 100 where sku <= 2;
select sku from stock where sku between 100 and 110 order by sku;
update stock set sku = 5 where sku = 4;
update stock set sku = null where sku = 4;
select sku from stock where sku in (4, 5) order by sku;
update stock set sku = sku where sku = 5;
-- With a name of its own, from others, from subqueries.
update stock as s set qty = s.qty + 1 where s.sku = 12;
update stock s set qty = stock.qty where s.sku = 12;
create table groups (sku int, gname text);
insert into groups values (12, 'dozen'), (13, 'baker'), (14, 'other');
update stock set label = gname from groups where groups.sku = stock.sku and gname <> 'other';
update stock set label = (select gname from groups where groups.sku = stock.sku) where sku = 14;
select sku, label, qty from stock where sku between 12 and 15 order by sku;
update stock set label = (select gname from groups) where sku = 14;
-- Deletes.
delete from stock where sku = 12;
delete from stock where sku = 12;
delete from stock where qty is null returning sku;
delete from stock using groups where groups.sku = stock.sku and gname = 'baker';
select sku from stock order by sku;
delete from stock where sku in (select sku from groups) returning label;
delete from nosuch;
delete from stock where nosuch;
delete from stock s where s.label like 'LABEL%';
delete from only groups where sku = 13;
select count(*) from stock;
delete from stock;
select count(*) from stock;
insert into stock values (1, 'again', 1, 1);
select * from stock;
drop table stock, groups;
