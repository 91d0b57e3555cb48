-- names: runs runner lap secs
create table runs (runner text, lap int, secs numeric);
insert into runs values ('ann', 1, 61.5), ('ann', 2, 60.0), ('bob', 1, 59.9), ('bob', 2, null), ('cid', 1, 61.5), ('cid', 2, 70), ('dan', 1, null);
select * from runs order by runner, lap;
select * from runs order by secs, runner, lap;
select * from runs order by secs desc, runner, lap;
select * from runs order by secs nulls first, runner, lap;
select * from runs order by secs desc nulls last, runner desc, lap desc;
select runner, secs from runs order by 2, 1;
select runner as who, lap from runs order by who desc, lap;
select runner, secs * 2 as twice from runs where secs is not null order by twice, runner;
select runner from runs order by lap * -1, runner;
select runner, lap from runs order by runner || lap desc;
select runner from runs order by 3;
select runner from runs order by 0;
select runner from runs order by 'x';
select runner from runs order by nosuch;
select runner as lap, lap as runner from runs order by runner, lap;
select runner, lap from runs order by case when lap = 2 then 0 else 1 end, runner;
-- Limits.
select runner, lap from runs order by runner, lap limit 3;
select runner, lap from runs order by runner, lap limit 3 offset 2;
select runner, lap from runs order by runner, lap offset 5;
select runner, lap from runs order by runner, lap limit 0;
select runner, lap from runs order by runner, lap limit all offset 6;
select runner, lap from runs order by runner, lap limit null;
select runner, lap from runs order by runner, lap offset 100;
select runner, lap from runs order by runner, lap limit 1 + 1;
select runner, lap from runs order by runner, lap limit (select min(lap) from runs);
select runner, lap from runs order by runner, lap fetch first 2 rows only;
select runner from runs limit -1;
select runner from runs offset -1;
select runner from runs limit 'x';
select runner from runs limit runner;
-- Distinct.
select distinct runner from runs order by runner;
select distinct secs from runs order by secs;
select distinct lap, secs is null as missing from runs order by lap, missing;
select distinct on (runner) runner, lap, secs from runs order by runner, lap desc;
select distinct on (lap) lap, runner from runs order by lap, runner desc;
select distinct on (runner) runner, lap
from runs order by lap;
select distinct runner from runs order by lap;
select count(distinct runner), count(distinct secs), sum(distinct lap), count(*) from runs;
select distinct runner from runs order by runner limit 2 offset 1;
-- Unions and their kin.
select runner from runs where lap = 1 union select runner from runs where lap = 2 order by 1;
select runner from runs where lap = 1 union all select runner from runs where lap = 2 order by 1;
select runner from runs where lap = 1 intersect select runner from runs where lap = 2 order by 1;
select runner from runs where lap = 1 except select runner from runs where lap = 2;
select lap from runs union all select lap from runs order by lap limit 3;
(select runner from runs order by runner limit 1) union all (select runner from runs order by runner desc limit 1);
select 1, 2 union select 3;
-- Many rows.
select count(*), sum(x) from (select g * 7919 % 10007 as x from generate_series(1, 10006) g order by 1 limit 5000) s;
select g from generate_series(1, 10000) g order by g % 1000 desc, g limit 5;
select g from generate_series(5, 1, -2) g;
select g from generate_series(1, 3) g offset 1;
drop table runs;
