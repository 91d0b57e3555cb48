-- The answers of a directory that an older build made, and of a new one, are the same.
\set ON_ERROR_STOP off
\pset format aligned
\pset tuples_only off
\d people
\d orders
\d s.doubled
\d+ older
\d own
set enable_seqscan = off;
select id, born, name from people where born > '2000-07-01' order by born desc, name limit 5;
select count(*) from people where lower(name) = 'name 3';
select id, score from people where score > 8 order by score, id;
select sum(id) from people where score > 5;
select * from orders where person between 3 and 5 order by person;
select * from older order by id limit 3;
select * from counted order by name;
select * from s.doubled order by b desc, a;
select * from s.doubled order by b desc nulls last;
select nextval('own') > 15;
select id, length(text), md5(text) from long;
-- What is there is changed, and what is new stands beside it.
insert into people (name, born) values ('Name 1', '2000-01-02'), ('New', null);
insert into people (name) values ('New') returning id > 200;
insert into people (id, name, born) values (301, 'Later', '2001-01-02'), (302, 'Later', null) returning score;
insert into people (id, name, score) values (303, 'Less', -1);
insert into orders select 60 + g, '2020-01-01 00:00:00+00', g, 'note' from generate_series(1, 5) g;
insert into orders values (1000);
delete from people where id = 1;
select count(*) from orders;
update people set name = upper(name) where born < '2000-01-10';
select id, name from people where lower(name) = 'name 3' order by id limit 5;
refresh materialized view counted;
select count(*), sum(n) from counted;
create index people_born_first on people (born nulls first, score desc nulls last);
select born, score from people order by born nulls first, score desc nulls last limit 3;
alter table people add column mood json default '{"a": 1}', add column state jsonb;
create type color as enum ('red', 'green');
alter table people add column color color default 'green';
update people set state = mood::jsonb, color = 'red' where id < 10;
create index people_state on people (state);
select id, mood, state, color from people where state = '{"a": 1}' order by id;
set role reader;
select count(*) from people;
reset role;
drop index people_born_down;
reindex table people;
select id, born, name from people where born > '2000-07-01' order by born desc, name limit 5;
drop table s.doubled;
drop schema s;
create collation swedish (provider = icu, locale = 'sv');
alter table people add column town text collate swedish default 'Åby';
update people set town = 'Zinkgruvan' where id < 5;
select distinct town from people order by town;
drop collation swedish;
alter table people drop column town;
drop collation swedish;
create role keeper;
select lo_from_bytea(7001, decode(repeat('00ff41', 1500), 'hex'));
select pageno, length(data) from pg_largeobject order by pageno;
grant select on large object 7001 to keeper;
alter large object 7001 owner to reader;
comment on large object 7001 is 'kept';
select lo_put(7001, 4000, 'here'), lo_get(7001, 3998, 8);
select lo_get(7001, 3998, 8), obj_description(7001, 'pg_largeobject');
select lomowner::regrole, lomacl from pg_largeobject_metadata;
drop role keeper;
select lo_unlink(7001);
drop role keeper;
