-- names: stagd
-- Scans of many rows, whose conditions are tested before all columns are read; joins, groups and
-- subqueries over them.
\set VERBOSITY verbose
create table stagd (
    id int primary key, small smallint, large bigint, amount numeric(15, 2), wide numeric,
    made date, at timestamp, code char(8), name text, note varchar(40)
);
insert into stagd
    select i, i % 50, i::bigint * 10000000000,
        case when i % 11 = 0 then null else (i * 37 % 1000) / 100.0 - 3 end,
        case i % 4 when 0 then 'NaN' when 1 then i * 1e20 when 2 then -i / 7.0 else i end,
        date '2020-01-01' + i % 365, timestamp '2020-01-01' + i * interval '1 hour',
        'c' || i % 13, case when i % 7 = 0 then null else 'n' || i % 17 end,
        case when i = 700 then repeat('ö', 40) else 'v' || i end
    from generate_series(1, 1000) as i;
alter table stagd add column late int default 5;
insert into stagd (id, late) values (2000, null), (2001, 6);
select count(*), sum(amount), min(made), max(code) from stagd
    where made >= date '2020-03-01' and made < date '2020-03-01' + interval '1' month and amount between 0 and 5;
select count(*) from stagd where 100 < id and 900 >= id and id <> 500;
select count(*) from stagd where small = 7 and large > 100000000000;
select count(*) from stagd where small < id and large = id * 10000000000;
select count(*), min(wide), max(wide) from stagd where wide > 3 and wide <= 1e22;
select count(*) from stagd where wide = 'NaN';
select count(*) from stagd where code = 'c5' and code = 'c5   ' and code <> 'c6' and 'c4' < code;
select count(*) from stagd where code::text = 'c5   ';
select count(*) from stagd where name >= 'n15' and name < 'n2';
select id, length(note), late from stagd where note >= 'ö' order by id;
select count(*) from stagd where at > timestamp '2020-02-01' and at <= '2020-02-02 00:00';
select count(*) from stagd where at > date '2020-02-01' and made < timestamp '2020-02-05 12:00';
select count(*) from stagd where late = 5;
select id, late from stagd where id > 999 and late is distinct from 5 order by id;
select count(*) from stagd where amount = null;
select count(*) from stagd where not (amount > 1 and name = 'n3');
select count(*) from stagd where amount > 1 or name = 'n3';
select count(*) from stagd where tableoid = 'stagd'::regclass and id > 990;
-- What an earlier condition drops raises nothing.
select count(*) from stagd where id <> 500 and 1 / (id - 500) = 0;
select count(*) from stagd where id > 100 and 1 / (id - 500) = 0;
select count(*) from stagd where amount > 100000 and 1 / (id - id) = 0;
select count(*) from stagd where amount is null and 1 / (id - id) = 0;
select count(*) from stagd where null::boolean and 1 / (id - id) = 0;
select count(*) from stagd where name > 'z' and 1 / (id - id) = 0;
select count(*) filter (where id > 5000 and 1 / (id - id) = 0) from stagd;
select count(*) from stagd where case when id > 0 then true else 1 / (id - id) = 0 end;
select sum(1 / (id - 500)) from stagd where id < 400;
-- Lists, other columns, other types.
select count(*) from stagd where code in ('c1', 'c2 ', 'd') and name in ('n1', null, 'n2');
select count(*) from stagd where name not in ('n1', 'n2');
select count(*) from stagd where name not in ('n1', null);
select count(*) from stagd where name <> all ('{}'::text[]);
select count(*) from stagd where name = any ('{}'::text[]);
select count(*) from stagd where name = any (null::text[]);
select count(*) from stagd where id = any ('{1, 500, 77777}') and amount in (0, 1.5, -2.63, 'NaN');
select count(*) from stagd where made in (date '2020-02-01', date '2020-02-01' + 1) and id < all (array[900, 800]);
select count(*) from stagd where made >= date '2020-02-01' + interval '12 hours' and made < date '2020-02-03' + interval '0 day';
select count(*) from stagd where made < timestamp 'infinity' and made > timestamp '-infinity';
select count(*) from stagd where timestamp '2020-02-01 12:00' > made;
select count(*) from stagd where amount < wide and name <= note and at >= at and made = made and small <> id;
select count(*) from stagd where substring(name from 1 for 2) in ('n1', 'n3') and code in (select code from stagd where id < 3);
-- Values that the statement is given.
prepare stagd_one (int, text) as select count(*) from stagd where id > $1 and name = $2;
execute stagd_one (500, 'n3');
execute stagd_one (null, 'n3');
deallocate stagd_one;
-- Long values.
create table stagd_long (id int primary key, body text, code text);
insert into stagd_long select i, repeat('x' || i % 3, 2000 + i), 'k' || i % 3 from generate_series(1, 200) as i;
select count(*) from stagd_long where body > 'x1' and code = 'k1';
select count(*), sum(length(body)) from stagd_long where code = 'k2' and body like 'x2%';
select count(*) from stagd_long as a join stagd_long as b on a.body = b.body;
select count(*) from stagd_long as a join stagd_long as b on a.body = b.body and a.id < b.id + length(b.code);
select count(*), sum(n) from (select body, count(*) as n from stagd_long group by body) as grouped;
-- Joins.
create table stagd_other (id int, name text, amount numeric);
insert into stagd_other select i % 300, case when i % 9 = 0 then null else 'n' || i % 23 end, i / 3.0 from generate_series(1, 600) as i;
analyze stagd, stagd_other;
select count(*), sum(b.amount) from stagd as a join stagd_other as b on a.name = b.name;
select count(*), sum(b.amount) from stagd as a join stagd_other as b on a.name = b.name and a.amount < b.amount and a.id > b.id;
select count(*), count(b.id), sum(a.id) from stagd as a left join stagd_other as b on a.id = b.id and a.name = b.name;
select count(*), count(a.id), sum(b.id) from stagd as a right join stagd_other as b on a.id = b.id and a.name = b.name;
select count(*), count(a.id), count(b.id) from stagd as a full join stagd_other as b on a.id = b.id and a.name = b.name;
select count(*) from stagd as a where exists (select from stagd_other as b where a.name = b.name and b.amount > a.id);
select count(*) from stagd as a where not exists (select from stagd_other as b where a.name = b.name and b.amount > a.id);
select count(*) from stagd as a where not exists (select from stagd_other as b where a.name = b.name);
select count(*) from stagd as a where name in (select name from stagd_other);
select count(*) from stagd as a join stagd_other as b on a.id + 1 = b.id * 2 and lower(a.name) = upper(lower(b.name));
select count(*) from stagd as a join stagd_other as b on a.id + 1 = b.id * 2 and lower(a.name) = lower(b.name);
select a.id, b.id, b.name from stagd as a left join stagd_other as b on a.id = b.id and b.name > 'n20' where a.id < 12 order by a.id, b.name;
-- Groups.
select code, count(*), sum(amount), count(distinct name), string_agg(distinct name, ',' order by name) from stagd where id < 40 group by code order by code;
select small % 3 as third, name is null as nameless, count(*), avg(amount) from stagd group by rollup (1, 2) order by 1, 2;
select amount, count(*) from stagd where id < 30 group by amount order by amount nulls first limit 3;
-- Subqueries that see few different rows.
select count(*), sum(best) from (select (select max(b.amount) from stagd_other as b where b.name = a.name) as best from stagd as a) as found;
select count(*) from stagd as a where amount < (select avg(b.amount) / 100 from stagd_other as b where b.name = a.name and b.id > a.small);
select name, (select array(select b.id from stagd_other as b where b.name = a.name order by b.id limit 2)) from stagd as a where id < 20 order by id;
create sequence stagd_numbers;
select count(distinct number) from (select (select nextval('stagd_numbers') + 0 * length(a.name)) as number from stagd as a where name is not null) as numbered;
select count(*) from stagd as a where (select (select count(*) from stagd_other as c where c.id = b.id and c.name = a.name) from stagd_other as b where b.name = a.name limit 1) > 1;
drop sequence stagd_numbers;
drop table stagd, stagd_other, stagd_long;
