-- names: fkman
-- Statements that set off more checks of foreign keys than wait at a time.
\set VERBOSITY sqlstate
create table fkman_p (k int primary key, alias int unique);
create table fkman_c (id int primary key, k int references fkman_p, alias int references fkman_p (alias));
insert into fkman_p select g, -g from generate_series(1, 100) g;
insert into fkman_c select g, g % 100 + 1, -(g % 100 + 1) from generate_series(1, 30000) g;
select count(*), count(distinct k), sum(alias) from fkman_c;

-- One that is not there, soon and late.
insert into fkman_c select g, case g when 30005 then 101 else g % 100 + 1 end from generate_series(30001, 50000) g;
insert into fkman_c select g, case g when 49999 then 101 else g % 100 + 1 end from generate_series(30001, 50000) g;
insert into fkman_c select g, null, case g when 49999 then -101 else -(g % 100 + 1) end from generate_series(30001, 50000) g;
update fkman_c set k = case when id = 29990 then 101 else k % 100 + 1 end;
select count(*), count(distinct k), sum(alias) from fkman_c;
update fkman_c set k = k % 100 + 1;
select count(*), min(k), max(k) from fkman_c where k <> -alias;

-- Rows that refer to rows of the same statement, before and behind them.
create table fkman_t (id int primary key, up int references fkman_t on update cascade on delete cascade);
create index on fkman_t (up);
insert into fkman_t select g, nullif(g - 1, 0) from generate_series(1, 12000) g;
insert into fkman_t select g, case g when 32000 then 32001 else 32000 - g % 3 end from generate_series(12001, 32000) g;
insert into fkman_t select g, 32000 - g % 3 from generate_series(12001, 32000) g;
update fkman_t set up = id;
update fkman_t set up = 32000 where id < 32000;
update fkman_t set id = 50000 where id = 32000;
select count(*), min(up), max(up) from fkman_t;
delete from fkman_t where id = 50000;
select count(*) from fkman_t;

-- What is referred to goes in the same statement.
insert into fkman_p values (200, -200);
with gone as (delete from fkman_p where k = 200)
insert into fkman_c select g, 200 from generate_series(30001, 50000) g;
select count(*) from fkman_c where k = 200;
begin;
insert into fkman_c select g, 200 from generate_series(30001, 50000) g;
delete from fkman_p where k = 200;
rollback;
delete from fkman_p where k = 200;

-- Deferred to the end of the transaction.
create table fkman_d (k int references fkman_p deferrable initially deferred);
begin;
insert into fkman_d select 300 from generate_series(1, 20000) g;
insert into fkman_p values (300, -300);
commit;
begin;
insert into fkman_d select 301 from generate_series(1, 20000) g;
savepoint s;
insert into fkman_d select 302 from generate_series(1, 20000) g;
rollback to s;
insert into fkman_p values (301, -301);
commit;
begin;
insert into fkman_d select 303 from generate_series(1, 20000) g;
commit;
select k, count(*) from fkman_d group by k order by k;
drop table fkman_d, fkman_t, fkman_c, fkman_p;
