-- names: exmade exview excursor exprepared
-- The forms of EXPLAIN's answer, and what it takes. Costs are each server's own.
explain (costs off) select 1;
explain (costs off, format text) values (1), (2);
explain (costs off, format json) select 1;
explain (costs off, format json) select 1 union all select 2;
explain (costs off, format json) select count(*) from (values (1), (2)) v (i);
explain (costs off, format yaml) select 1 limit 1;
explain (costs off, format xml) select 1 limit 1;
explain (format json, format yaml, costs false) select 1;
explain (costs, costs off) select 1;
explain (costs off, format nope) select 1;
explain (costs off, summary nope) select 1;
explain (costs off, timing) select 1;
explain (costs off, timing off, summary off) select 1;
explain (format json) select 1 \gdesc
explain (format yaml) select 1 \gdesc
-- What is explained is not done.
prepare exprepared (int) as select $1;
explain (costs off) execute exprepared (1);
explain (costs off) execute exprepared;
explain (costs off) execute excursor;
explain (costs off) create table exmade as select 1 as a;
explain (costs off) create materialized view exview as select 1 as a;
explain (costs off) create table exmade as execute exprepared (1);
select to_regclass('exmade'), to_regclass('exview');
begin;
explain (costs off) declare excursor cursor for select 1;
fetch excursor;
rollback;
create table exmade (a int);
explain (costs off) insert into exmade values (1);
select count(*) from exmade;
explain (costs off) select * from nosuch;
deallocate exprepared;
