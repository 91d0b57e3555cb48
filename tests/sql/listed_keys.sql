-- names: listed worded paired parted manyways
-- Rows whose keys are elements of a list: by IN, by ANY of an array, by OR.
create table listed(id int primary key, grp int, txt text, big int8, opt int);
insert into listed select i, i % 10, 'w' || i % 50, i * 1000000000::int8, case when i % 3 = 0 then null else i % 7 end
  from generate_series(1, 300) i;
create index listed_grp on listed(grp);
create index listed_txt_grp on listed(txt, grp desc);
create index listed_opt on listed(opt nulls first);
create unique index listed_big on listed(big);
analyze listed;
-- Lists of all forms.
select id from listed where id in (5, 3, 9, 3) order by id;
select id from listed where id in (5) order by id;
select id from listed where id = any('{7,1,7,400,-1,null}') order by id;
select id from listed where id = any(array[2, 4, null]) order by id;
select id from listed where id = any('{}');
select id from listed where id = any(null::int[]);
select id from listed where id = any('{{1,2},{3,4}}'::int[]) order by id;
select id from listed where id = 8 or id = 6 or id = 8 order by id;
select id from listed where id = 8 or id = null order by id;
select id from listed where id = 8 or 6 = id or id = 1 + 1 order by id;
select id from listed where id = 8 or grp = 3 and id < 30 order by id;
select id from listed where id = any(array[5000000000, 3, 4]) order by id;
select id from listed where id in (5000000000, 3);
select id from listed where big in (3000000000, 7000000000, 1) order by id;
select id from listed where big = 3000000000 or big = 5 order by id;
select id from listed where id = any(array[3.0, 4.5]) order by id;
select id from listed where not id in (1, 2) and id < 6 order by id;
select id from listed where id <> all('{1,2}') and id < 6 order by id;
select id from listed where id > any('{297,298}') order by id;
-- Orders, limits, backwards.
select id from listed where id in (200, 9, 100, 4) order by id desc;
select id from listed where id in (200, 9, 100, 4) order by id desc limit 2;
select id from listed where id in (200, 9, 100, 4) order by id limit 2 offset 1;
select grp, count(*) from listed where grp in (7, 2, 2) group by grp order by grp;
select grp, min(id), max(id) from listed where grp in (7, 2) group by 1 order by 1 desc;
select distinct grp from listed where grp = any('{9,4,1}') order by grp;
select id, grp from listed where grp in (3, 1) order by grp, id limit 5;
select id, grp from listed where grp in (3, 1) order by grp desc, id desc limit 5;
-- A list beside other keys.
select id from listed where txt = 'w7' and grp in (7, 8) order by id;
select id from listed where txt in ('w7', 'w9', 'none') and grp = 7 order by id;
select id from listed where txt in ('w7', 'w9') and grp in (7, 9) order by id;
select id from listed where txt in ('w7', 'w19') and grp > 7 order by id;
select id from listed where txt in ('w7', 'w19') and grp between 7 and 8 order by id;
select txt, grp, id from listed where txt in ('w7', 'w19', 'w3') order by txt, grp desc, id;
select txt, grp, id from listed where txt in ('w7', 'w19', 'w3') order by txt desc, grp, id desc limit 4;
select id from listed where txt = any('{w7,w8}'::varchar[]) and id < 60 order by id;
select id from listed where opt in (1, null, 2) and id < 20 order by id;
select id from listed where (opt = 1 or opt is null) and id < 10 order by id;
-- Parameters, and lists that are computed.
prepare by_list(int[]) as select id from listed where id = any($1) order by id;
execute by_list('{4,2}');
execute by_list('{}');
execute by_list(null);
execute by_list('{300,301,1,1}');
prepare by_three(int, int, int) as select id from listed where id in ($1, $2, $3) order by id;
execute by_three(3, 1, 3);
execute by_three(null, 1, 900);
select id from listed where id = any((select array_agg(i) from generate_series(10, 12) i)::int[]) order by id;
select id from listed where id = any(array(select 2 * i from generate_series(1, 3) i)) order by id;
select count(*) from listed where id = any((select array_agg(i) from generate_series(1, 5000) i)::int[]);
select l.id, r.id from listed l join listed r on r.id = any(array[l.id, l.id + 1]) where l.id in (1, 50) order by 1, 2;
select l.id, r.id from listed l, lateral (select id from listed r where r.id in (l.id, l.id * 2) order by id desc limit 1) r
  where l.id in (3, 4) order by 1;
select id from listed where id in (select unnest('{3,5}'::int[])) order by id;
select id, (select count(*) from listed s where s.grp in (l.grp, l.grp + 1)) from listed l where id in (8, 9) order by id;
-- What writes and locks.
begin;
select id from listed where id in (3, 1, 2) order by id for update;
select id from listed where grp = 4 or grp = 5 order by id limit 3 for share;
update listed set opt = 77 where id in (3, 1, 999) returning id;
update listed set grp = grp + 100 where grp in (2, 3) and id < 30;
select id, grp from listed where grp in (102, 103) order by id;
delete from listed where id = 5 or id = 7 returning id;
select count(*) from listed where id in (5, 6, 7);
rollback;
update listed set id = id + 1000 where id in (299, 300);
select id from listed where id in (299, 300, 1299, 1300) order by id;
-- Other types.
create type worded_mood as enum ('sad', 'ok', 'happy');
create table worded(u uuid, m worded_mood, d date, c char(4), n numeric, f float8, b bool, t timestamptz);
insert into worded select ('00000000-0000-0000-0000-0000000000' || lpad(i::text, 2, '0'))::uuid,
  (enum_range(null::worded_mood))[1 + i % 3], date '2024-01-01' + i, 'c' || i % 4, i * 1.50, i / 4.0, i % 2 = 0,
  timestamptz '2024-01-01 00:00+00' + i * interval '1 hour'
  from generate_series(0, 40) i;
insert into worded(f, n) values ('nan', 'nan'), ('-0', 0), ('infinity', null);
create index on worded(u);
create index on worded(m, d);
create index on worded(c);
create index on worded(n);
create index on worded(f);
create index on worded(t);
analyze worded;
select d from worded where u in ('00000000-0000-0000-0000-000000000007', '00000000-0000-0000-0000-000000000003') order by d;
select count(*) from worded where m in ('sad', 'happy');
select d from worded where m = any('{ok,ok,null}') and d < '2024-01-08' order by d;
select d from worded where d = '2024-01-05' or d = '2024-01-03' order by d;
select count(*) from worded where c in ('c1', 'c2  ', 'c9');
select n from worded where n in (3, 4.5, 'nan', 0) order by n;
select f from worded where f in ('nan', 0.5, 'infinity', 0.25) order by f;
select count(*) from worded where f in (0, 1);
select d from worded where t in (timestamptz '2024-01-01 05:00+00', '2024-01-01 03:00:00+02') order by d;
drop table worded;
drop type worded_mood;
-- Two columns as a key.
create table paired(a int, b int, c int, primary key (a, b));
insert into paired select i / 10, i % 10, i from generate_series(0, 99) i;
analyze paired;
select c from paired where a in (3, 5) and b = 4 order by c;
select c from paired where a = 3 and b in (9, 1, 1) order by c;
select c from paired where a in (3, 5) and b in (9, 1) order by c;
select c from paired where a in (3, 5) and b >= 8 order by c;
select c from paired where a = 3 and b in (9, 1) order by a, b desc;
select c from paired where (a = 3 or a = 1) and b < 2 order by a, b;
select c from paired where (a, b) in ((1, 2), (3, 4)) order by c;
select a, count(*) from paired where a in (2, 8) group by a order by a;
delete from paired where a in (1, 2) and b in (1, 2, 3);
select count(*) from paired;
-- Partitions.
create table parted(k int, v int, primary key (k)) partition by range (k);
create table parted_1 partition of parted for values from (0) to (50);
create table parted_2 partition of parted for values from (50) to (100);
insert into parted select i, i from generate_series(0, 99) i;
analyze parted;
select v from parted where k in (70, 3, 45) order by k;
select v from parted where k = any('{70,3}') order by k desc;
update parted set v = -v where k = 3 or k = 70;
select v from parted where k in (3, 70) order by v;
-- By which ways.
set enable_seqscan = off;
set enable_bitmapscan = off;
explain (costs off) select * from listed where id in (1, 5, 9);
explain (costs off) select * from listed where id = any('{1,2}');
explain (costs off) select * from listed where txt = 'w1' and grp in (1, 2);
explain (costs off) select * from paired where a in (1, 2) and b = 3;
explain (costs off) select * from listed where id in (1, 5, 9) order by id;
explain (costs off) select * from listed where id in (1, 5, 9) order by id desc;
explain (costs off) select * from listed where txt in ('w1', 'w2');
explain (costs off) update listed set opt = 1 where id in (1, 2);
reset enable_seqscan;
reset enable_bitmapscan;
-- Several indexes for one condition.
create table manyways(id int primary key, grp int, txt text, n int);
insert into manyways select i, i % 40, 'w' || i % 30, i % 3 from generate_series(1, 600) i;
create index manyways_grp on manyways(grp);
create index manyways_txt on manyways(txt, n);
create index manyways_part on manyways(n) where grp > 35;
analyze manyways;
select id from manyways where id = 7 or grp = 3 order by id;
select id from manyways where grp = 3 or txt = 'w3' order by id;
select id from manyways where grp = 3 and n = 1 or txt = 'w3' and n = 0 order by id;
select id from manyways where (grp in (3, 4) or id in (3, 4, 5)) and n = 0 order by id;
select id from manyways where id < 4 or id > 597 or grp = 39 order by id desc limit 7;
select id from manyways where grp = 3 or id = 3 or n = 5 order by id;
select id from manyways where grp = null or id = 3 order by id;
select count(*) from manyways where grp = 3 or n + 1 = 2;
select count(*) from manyways where grp = 3 or txt like 'w2%';
select count(*) from manyways where not (grp = 3 or id = 3);
select count(*) from manyways where (grp = 3 or id = 4) is not true;
select m.id, o.id from manyways m join manyways o on o.id = m.grp or o.grp = m.id where m.id in (3, 5) order by 1, 2;
prepare by_either(int, int) as select id from manyways where id = $1 or grp = $2 order by id;
execute by_either(3, 3);
execute by_either(null, 12);
execute by_either(600, null);
select id from manyways where id = 3 or grp = 3 order by id limit 2 for update;
update manyways set n = 100 where id = 9 or grp = 9 returning id;
delete from manyways where id = 10 or grp = 10;
select count(*), sum(n) from manyways where id = 9 or grp = 9 or id = 10 or grp = 10;
-- Lists of what is computed.
create index manyways_upper on manyways(upper(txt), (n + grp));
analyze manyways;
select count(*) from manyways where upper(txt) in ('W2', 'W3', 'none');
select id from manyways where upper(txt) = any('{W2,W2}') and n + grp = 5 order by id;
select id from manyways where (upper(txt) = 'W2' or upper(txt) = 'W4') and id < 70 order by id;
select id from manyways where (upper(txt) = 'W2' or upper(txt) = 'W4' or txt = 'w4') and id < 70 order by id;
deallocate by_either;
drop table manyways;
deallocate by_list;
deallocate by_three;
drop table listed, paired, parted;
