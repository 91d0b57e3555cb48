-- names: twb twv twx
-- Columns of a view that are the same column of its table.
create table twb (a int primary key, b text);
create view twv as select a, b, a as aa from twb;
insert into twv values (3, 'row 3', 3);
insert into twv values (3, 'row 3');
insert into twv (a, b) values (4, 'row 4');
insert into twv (aa, b) values (5, 'row 5');
insert into twv (a, b, aa) values (6, 'row 6', 6);
insert into twv select 7, 'row 7', 7;
insert into twv select 8, 'row 8';
update twv set a = 3, aa = -3 where a = 3;
update twv set aa = -3, a = 3 where a = 3;
update twv set aa = -3 where a = 3;
update twv set a = 1, a = 2;
update twb set (a, b) = (1, 'x'), b = 'y';
select * from twv order by a;
create view twx as select b, a as one, a as two, upper(b) as up from twb;
insert into twx values ('row 9', 9, 9);
insert into twx values ('row 9', 9);
update twx set two = 10 where one = 9 returning *;
delete from twx where two = 10 returning up;
drop view twx, twv;
drop table twb;
