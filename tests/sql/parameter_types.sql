-- names: zpt
-- What parameters without a type become where they are written to columns.
create domain zpt_d as int check (value > 0);
create table zpt (d zpt_d, e zpt_d[], i int, t date);
prepare zpt_insert as insert into zpt values ($1, $2, $3, $4);
prepare zpt_select as insert into zpt (d, i, t) select $1, $2, $3;
prepare zpt_sorted as insert into zpt (t) select $1 order by 1;
prepare zpt_apart as insert into zpt (i) select distinct $1::int;
prepare zpt_cast as select $1::zpt_d;
prepare zpt_update as update zpt set d = $1, t = $2 where d = $3;
prepare zpt_either as select coalesce(d, $1) from zpt;
prepare zpt_plain as select $1;
select name, parameter_types from pg_prepared_statements where name like 'zpt%' order by name;
execute zpt_insert(1, '{2,3}', 4, '2020-01-01');
execute zpt_insert(-1, '{2,3}', 4, '2020-01-01');
execute zpt_select(5, 6, '2021-01-01');
execute zpt_select(-5, 6, '2021-01-01');
execute zpt_select(null, '7', null);
execute zpt_update(9, '2022-02-02', 5);
execute zpt_update(0, '2022-02-02', 1);
select * from zpt order by i;
execute zpt_cast(0);
deallocate all;
drop table zpt;
drop domain zpt_d;
