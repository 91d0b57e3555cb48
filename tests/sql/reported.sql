-- names: repd
-- What clients are told of: modifiers of NULLs' types, and when statements were prepared.
select null::numeric(10, 2) as a, null::varchar(3) as b, null::varchar(3)[] as c, null::timestamp(2) as d \gdesc
select null::bit(3) as a, null::bit varying(3) as b, null::interval(2) as c, null::char(4) as d \gdesc
select null::time(0) as a, null::timetz(6) as b, null::numeric(2, -1) as c, null::interval day to second(3) as d \gdesc
select null::text as a, null::int as b, null as c, null::bpchar as d \gdesc
select case when true then null::varchar(3) else null::varchar(3) end as a, coalesce(null::varchar(3), null::varchar(4)) as b \gdesc
select case when true then 'a'::varchar(3) end as a, greatest('a'::varchar(3), 'b'::varchar(3)) as b, case 1 when 1 then null::numeric(3, 1) else 2.5::numeric(3, 1) end as c \gdesc
select null::varchar(3) as a union all select null::varchar(3) \gdesc
create table repd_table as select null::varchar(3) as a, null::numeric(4, 1)[] as b;
\d repd_table
create view repd_view as select null::varchar(3) as a, null::text as b, null::interval second(2) as c;
\d+ repd_view
insert into repd_table values (null, null), (null::varchar(9), null);
select * from repd_table;
alter table repd_table alter a set default null::varchar(5), alter b set default null;
\d repd_table
prepare repd_statement as select 1;
select prepare_time = statement_timestamp(), prepare_time between now() - interval '1 minute' and now() from pg_prepared_statements;
deallocate repd_statement;
drop view repd_view;
drop table repd_table;
