-- names: zsc
-- SEARCH and CYCLE of WITH RECURSIVE.
create table zsc_edges (f int, t int, label text);
insert into zsc_edges values (1, 2, 'a'), (1, 3, 'b'), (2, 3, 'c'), (1, 4, 'd'), (4, 5, 'e'), (5, 1, 'f');
with recursive g(f, t, label) as (select * from zsc_edges e where f = 1 union all select e.* from zsc_edges e, g where e.f = g.t and g.t < 5) search depth first by f, t set seq select * from g order by seq;
with recursive g(f, t) as (select f, t from zsc_edges e where f = 1 union all select e.f, e.t from zsc_edges e join g as up on e.f = up.t where up.t < 5) search breadth first by f, t set seq select * from g order by seq;
with recursive g(f, t, label) as (select * from zsc_edges e union all select e.* from zsc_edges e, g where e.f = g.t) cycle f, t set is_cycle using path select * from g order by path;
with recursive g(f, t) as (select f, t from zsc_edges e union select e.f, e.t from zsc_edges e, g where e.f = g.t and not g.mark = 'Y') search depth first by f, t set seq cycle f, t set mark to 'Y' default 'N' using path select * from g order by seq, path;
with recursive a as (select 1 as b union all select * from a) cycle b set c using p select * from a;
with recursive n(x) as (select 1 union all select x + 1 from n where x < 3) search depth first by x set "Order" select x, n."Order"[1] from n order by n."Order" desc;
with recursive n(x) as (values (1) union all select x + 1 from n where x < 3) search breadth first by x set y select n.y from n order by y;
with recursive n(x) as (select 1 union all select (x + 1) % 3 from n) cycle x set m to 1 default 2.5 using p select x, m, p from n;
with recursive n(x) as (select 1 union all select x + 1 from n where x < 4) search depth first by x set y, m as (select max(y) from n) select * from m;
create view zsc_view as with recursive n(x) as (select 1 union all select x % 3 + 1 from n) cycle x set again using p select x, again from n;
select * from zsc_view order by 1, 2;
prepare zsc as with recursive n(x) as (select $1::int union all select x + 1 from n where x < $2) search depth first by x set y select * from n order by y;
execute zsc (1, 3);
execute zsc (5, 6);
-- What is wrong with them.
with recursive n(x) as (select 1) search depth first by x set y select * from n;
with n(x) as (select 1 union all select 2) search depth first by x set y select * from n;
with recursive n(x) as (select 1 union all select x + 1 from n) search depth first by z set y select * from n;
with recursive n(x) as (select 1 union all select x + 1 from n) search depth first by x, x set y select * from n;
with recursive n(x) as (select 1 union all select x + 1 from n) cycle z set m using p select * from n;
with recursive n(x) as (select 1 union all select x + 1 from n) cycle x, x set m using p select * from n;
with recursive n(x) as (select 1 union all select x + 1 from n) cycle x set m using m select * from n;
with recursive n(x) as (select 1 union all select x + 1 from n) cycle x set m to true default 5 using p select * from n;
with recursive n(x) as (select 1 union all select 2 union all select x + 1 from n) search depth first by x set y select * from n;
with recursive n(x) as (select 1 union all (select 2 union all select x + 1 from n)) search depth first by x set y select * from n;
with recursive n(x) as (select 1 union all select x + 1 from (select * from n) s where x < 3) search depth first by x set y select * from n;
with recursive n(x) as (select 1 union (with n as (select * from n) select * from n)) search depth first by x set y select * from n;
drop view zsc_view;
drop table zsc_edges;
