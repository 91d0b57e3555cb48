-- names: nbt nbv nbw
-- BETWEEN with NOT is two comparisons, which says more where neither of two values is less.
create table nbt (id int primary key, a int, x box);
insert into nbt values (1, 5, '(NaN,1),(0,0)'), (2, null, '(1,1),(0,0)'), (3, 7, null);
select id, x between null::box and x, x not between null::box and x from nbt order by id;
select id, x between x and x, x not between x and x from nbt order by id;
select id, a between 6 and 5, a not between 6 and 5, a between symmetric 6 and 5, a not between symmetric 6 and 5 from nbt order by id;
select id, a not between symmetric 7 and null, a not between null and 3, a between symmetric null and 9 from nbt order by id;
select id from nbt where a not between 1 and 5 order by id;
select id from nbt where not (a between 1 and 5) order by id;
create view nbv as select id, a not between 1 and 5 as p, a between symmetric 5 and 1 as q, a not between symmetric 5 and 1 as r from nbt where a not between 8 and 9;
select pg_get_viewdef('nbv'), pg_get_viewdef('nbv', true);
select * from nbv order by id;
create table nbw (a int check (a not between 10 and 20));
select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'nbw'::regclass;
insert into nbw values (9), (21), (null);
insert into nbw values (10);
drop view nbv;
drop table nbt, nbw;
