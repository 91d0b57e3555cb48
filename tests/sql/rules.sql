-- names: rul
create table rul_t (id int, a int, g int generated always as (a * 2) stored, s serial, b text default 'dflt');
create table rul_log (what text, x int, y int, t text);

-- what is made
create rule rul_i as on insert to rul_t do also insert into rul_log values ('ins', new.id, new.g, new.b);
create rule rul_i as on insert to rul_t do nothing;
create or replace rule rul_i as on insert to rul_t do insert into rul_log values ('ins', new.id, new.g, new.b);
insert into rul_t (id, a) values (1, 10), (2, 20), (3, 30);
insert into rul_t (id, a, b) select id + 10, a + 10, b || '!' from rul_t;
select * from rul_log;
select * from rul_t;
insert into rul_t default values;
select what, x, y, t from rul_log where x is null;
delete from rul_t where id is null;
truncate rul_log;

-- several actions, both rows, conditions
create rule rul_u as on update to rul_t where old.a <> new.a do also (
  insert into rul_log values ('old', old.id, old.a, null), ('new', new.id, new.a, new.g::text);
  update rul_log set t = 'seen ' || new.b where x = new.id and what = 'old';
);
update rul_t set a = a + 1 where id < 10;
select * from rul_log order by what desc, x;
update rul_t set b = 'x';
select count(*) from rul_log;
truncate rul_log;
create rule rul_d as on delete to rul_t where old.id > 10 do instead insert into rul_log (what, x) values ('kept', old.id);
delete from rul_t where id <> 2;
\echo :ROW_COUNT
select * from rul_log order by x;
select id from rul_t order by id;

create rule rul_j as on insert to rul_t where a > 50 and b is not null and not exists (select from rul_log where what = 'never' and b = t) do instead insert into rul_log select 'big', new.*;
create rule rul_j as on insert to rul_t where a > 50 and b is not null and not exists (select from rul_log where what = 'never' and b = t) do instead insert into rul_log (what, x) select 'big', new.a from (select new.id) q (k) where k is not null;
insert into rul_t (id, a) values (60, 60), (61, 40);
select what, x from rul_log where what = 'big';
select id from rul_t where id >= 60;

-- as they are shown
select rulename, definition from pg_rules where tablename like 'rul%' order by rulename;
select rulename, ev_type, ev_enabled, is_instead from pg_rewrite where ev_class = 'rul_t'::regclass order by 1;
select pg_get_ruledef(oid, true) from pg_rewrite where ev_class = 'rul_t'::regclass order by rulename;
select pg_get_ruledef(0);
select relhasrules from pg_class where relname in ('rul_t', 'rul_log') order by relname;
\d rul_t
alter table rul_t rename a to aa;
alter table rul_log rename x to xx;
alter table rul_t rename to rul_tt;
select definition from pg_rules where rulename = 'rul_u';
truncate rul_log;
update rul_tt set aa = aa + 100 where id = 2;
select * from rul_log order by what;
alter table rul_tt rename to rul_t;
alter table rul_t rename aa to a;
alter table rul_log rename xx to x;

-- what is wrong
create rule rul_w as on insert to rul_t do also insert into rul_log (x) values (old.a);
create rule rul_w as on delete to rul_t do also insert into rul_log (x) values (new.a);
create rule rul_w as on update to rul_t do insert into rul_log (x) values (new.zz);
create rule rul_w as on update to rul_t do insert into rul_log (x) values (2) returning x;
create rule rul_w as on update to rul_t where true do instead insert into rul_log (x) values (2) returning x;
create rule rul_w as on update to rul_t do instead insert into rul_log (x) values (2) returning x;
create rule rul_w as on update to rul_t do instead update rul_log set x = 2 returning x, x, x, x, what, t;
create rule rul_w as on update to rul_t do instead update rul_log set x = 2 returning x, x, x, t, what;
create rule rul_w as on update to rul_t where sum(old.a) > 1 do nothing;
create rule rul_w as on update to rul_t where old.a do nothing;
create rule rul_w as on update to rul_t where a > 1 do nothing;
create rule rul_w as on insert to rul_t do insert into rul_log (x) values (a);
create rule rul_w as on update to rul_t do with q as (select old.a) insert into rul_log (x) select a from q;
create rule rul_w as on update to rul_t where old.a = 1 do insert into rul_log (x) select 1 union select 2;
create rule rul_w as on update to rul_t where old.a = 1 do notify rul_n;
create rule rul_w as on update to rul_nosuch do nothing;
create rule "_RETURN" as on update to rul_t do nothing;
create sequence rul_q;
create rule rul_w as on update to rul_q do nothing;
create materialized view rul_m as select 1 as x;
create rule rul_w as on update to rul_m do nothing;
insert into rul_t (id) values (1) on conflict do nothing;
merge into rul_t using rul_log on true when matched then do nothing;

-- names, and whether they are applied
alter rule rul_i on rul_t rename to rul_u;
alter rule rul_z on rul_t rename to rul_y;
alter rule rul_i on rul_t rename to rul_a;
alter rule rul_a on rul_t rename to rul_i;
comment on rule rul_i on rul_t is 'said of it';
select obj_description(oid, 'pg_rewrite') from pg_rewrite where rulename = 'rul_i';
comment on rule rul_z on rul_t is 'said of it';
alter table rul_t disable rule rul_i;
truncate rul_log;
insert into rul_t (id) values (50);
select * from rul_log;
alter table rul_t enable replica rule rul_i;
insert into rul_t (id) values (51);
select * from rul_log;
set session_replication_role = replica;
insert into rul_t (id) values (52);
select * from rul_log;
alter table rul_t enable rule rul_i;
insert into rul_t (id) values (53);
select * from rul_log;
alter table rul_t enable always rule rul_i;
insert into rul_t (id) values (54);
reset session_replication_role;
insert into rul_t (id) values (55);
select * from rul_log;
select rulename, ev_enabled from pg_rewrite where rulename like 'rul%' order by 1;
alter table rul_t enable rule rul_z;
drop rule rul_z on rul_t;
drop rule if exists rul_z on rul_t;
drop rule rul_z on rul_nosuch;
drop rule if exists rul_z on rul_nosuch;

-- what depends
alter table rul_t drop column b;
alter table rul_t alter b type varchar(9);
drop table rul_log;
begin;
drop table rul_log cascade;
select rulename from pg_rules where tablename = 'rul_t' order by 1;
rollback;
select rulename from pg_rules where tablename = 'rul_t' order by 1;
begin;
drop rule rul_i on rul_t;
savepoint sp;
drop rule rul_u on rul_t;
rollback to sp;
select rulename from pg_rules where tablename = 'rul_t' order by 1;
commit;
drop table rul_t;
drop table rul_log;

-- views
create table rul_base (id int primary key, name text, n int default 7);
create view rul_v as select id, upper(name) as name, n + 1 as n from rul_base;
create rule rul_vi as on insert to rul_v do instead insert into rul_base values (new.id, new.name, new.n - 1) returning id, upper(name), n + 1;
create rule rul_vu as on update to rul_v do instead update rul_base set name = new.name, n = new.n - 1 where id = old.id returning rul_base.id, upper(rul_base.name), rul_base.n + 1;
create rule rul_vd as on delete to rul_v do instead delete from rul_base where id = old.id returning id, upper(name), n + 1;
insert into rul_v values (1, 'one', 11), (2, 'two', 22);
\echo :ROW_COUNT
insert into rul_v values (3, 'three', 33) returning *, n * 2 as twice;
select * from rul_base order by id;
update rul_v set name = lower(name) || '!', n = n + 1 where id < 3 returning id, name as nm;
update rul_v v set name = 'x' from rul_base b where b.id = v.id and b.n > 30;
\echo :ROW_COUNT
delete from rul_v where id = 1 returning *;
delete from rul_v using rul_base b where rul_v.id = b.id and b.n > 30;
select * from rul_base order by id;
alter view rul_v alter n set default 5;
insert into rul_v (id, name) values (9, 'nine') returning n;
prepare rul_p (int, text) as insert into rul_v values ($1, $2, $1 + 1) returning n;
execute rul_p (70, 'seventy');
execute rul_p (71, 'seventyone');
deallocate rul_p;
with w as (select 80 as k) insert into rul_v select k, 'w', k from w;
with w as (insert into rul_v values (81, 'c', 1) returning id) select * from w;
with w as (select 80 as k) delete from rul_v using w where id = k;
do $$ declare c int; begin
  insert into rul_v values (90, 'do', 1); get diagnostics c = row_count; raise notice '% %', c, found;
  update rul_v set n = n + 1 where id >= 70; get diagnostics c = row_count; raise notice '% %', c, found;
  insert into rul_v values (91, 'do', 1) returning n into c; raise notice '%', c;
  delete from rul_v where id = 12345; raise notice '%', found;
end $$;
select * from rul_base order by id;
create rule rul_vz as on delete to rul_v do instead nothing;
delete from rul_v where id > 9;
\echo :ROW_COUNT
select count(*) from rul_base;
drop rule rul_vd on rul_v;
delete from rul_v where id > 9;
\echo :ROW_COUNT
delete from rul_v where id > 9 returning id;
select count(*) from rul_base;
\d+ rul_v

-- tags of what others than the statement do
create view rul_v2 as select id, name from rul_base;
create rule rul_x as on update to rul_v2 do instead insert into rul_base values (new.id + 1000, new.name);
update rul_v2 set name = 'u' where id = 9;
\echo :ROW_COUNT
create rule rul_y as on update to rul_v2 do instead update rul_base set n = 0 where id = old.id or id = old.id + 1000;
update rul_v2 set name = 'u' where id = 2;
\echo :ROW_COUNT
select * from rul_base order by id;
create rule rul_c as on insert to rul_v2 where new.id > 5 do instead nothing;
insert into rul_v2 values (1, 'x');
drop rule rul_c on rul_v2;
insert into rul_v2 values (1, 'plain');
create rule rul_c as on insert to rul_v2 do also insert into rul_base values (new.id + 100, new.name || ' also');
insert into rul_v2 values (4, 'four');
\echo :ROW_COUNT
select * from rul_base where name like '%four%' order by id;

-- recursion
create table rul_r (a int);
create rule rul_r1 as on insert to rul_r do also insert into rul_r values (new.a + 1);
insert into rul_r values (1);
drop rule rul_r1 on rul_r;
create table rul_r2 (a int);
create rule rul_r1 as on insert to rul_r do instead insert into rul_r2 values (new.a * 10);
create rule rul_r2 as on insert to rul_r2 where new.a > 50 do instead insert into rul_log2 values (new.a);
create table rul_log2 (a int);
create rule rul_r2 as on insert to rul_r2 where new.a > 50 do instead insert into rul_log2 values (new.a);
create rule rul_r3 as on insert to rul_log2 do also delete from rul_r2 where a < 20;
insert into rul_r values (1), (2), (6), (7);
\echo :ROW_COUNT
select * from rul_r;
select * from rul_r2;
select * from rul_log2;
create rule rul_r4 as on delete to rul_r2 do also insert into rul_r values (old.a);
insert into rul_r values (9);
drop rule rul_r4 on rul_r2;

-- values that change, order, queries inside
create sequence rul_seq;
create table rul_s (n int default nextval('rul_seq'), v text);
create rule rul_s1 as on insert to rul_s do also insert into rul_log2 select length(new.v) where new.v is not null;
insert into rul_s (v) values ('abc');
select currval('rul_seq');
select * from rul_log2;
truncate rul_log2;
create rule rul_s2 as on update to rul_s do also insert into rul_log2 select q.n + old.n from (select r.a * new.n as n from rul_r2 r where r.a > old.n) q;
update rul_s set n = (select max(a) from rul_r2) + n where exists (select from rul_r2);
select * from rul_log2 order by a;
update rul_s set (n, v) = (select 100, 'row') where v = 'abc';
select * from rul_log2 order by a;
select * from rul_s;
create rule rul_s3 as on update to rul_s where new.n > 500 or exists (select from rul_r2 where a = new.n) do instead nothing;
update rul_s set n = 501;
update rul_s set n = 20;
update rul_s set n = 21;
select * from rul_s;
delete from rul_log2;
create rule rul_s4 as on delete to rul_s do also insert into rul_log2 values (1);
delete from rul_s;
delete from rul_s where n = 12345;
select * from rul_log2;

-- NOTIFY, and what explains
create rule rul_s5 as on delete to rul_s do also (notify rul_n, 'it''s'; delete from rul_log2 where a = old.n);
select definition from pg_rules where rulename = 'rul_s5';
listen rul_n;
insert into rul_s values (1, 'x');
begin;
delete from rul_s where n = 1;
rollback;
unlisten *;
drop rule rul_r3 on rul_log2;
drop rule rul_s5 on rul_s;
create rule rul_s5 as on delete to rul_s do also notify rul_n;
select definition from pg_rules where rulename = 'rul_s5';
explain (costs off) delete from rul_s;
explain (costs off) insert into rul_v values (1);
create or replace rule rul_vi as on insert to rul_v do instead nothing;
explain (costs off) insert into rul_v values (1);

-- rights
create role rul_owner;
create role rul_user;
create table rul_own (a int);
create table rul_hidden (a int);
alter table rul_own owner to rul_owner;
grant insert on rul_own to rul_user;
set role rul_user;
create rule rul_p as on insert to rul_own do nothing;
alter rule rul_p on rul_own rename to rul_q;
drop rule if exists rul_p on rul_own;
set role rul_owner;
create rule rul_p as on insert to rul_own do also insert into rul_hidden values (new.a);
insert into rul_own values (1);
reset role;
grant insert on rul_hidden to rul_owner;
set role rul_user;
insert into rul_own values (2);
drop rule rul_p on rul_own;
comment on rule rul_p on rul_own is 'x';
alter table rul_own disable rule rul_p;
reset role;
select * from rul_hidden;
begin read only;
insert into rul_own values (2);
rollback;

-- COPY
copy (insert into rul_own values (5) returning a) to stdout;
drop rule rul_p on rul_own;
create rule rul_p as on insert to rul_own do instead nothing;
copy (insert into rul_own values (5)) to stdout;
create or replace rule rul_p as on insert to rul_own do also delete from rul_hidden;
copy (insert into rul_own values (5)) to stdout;
create or replace rule rul_p as on insert to rul_own do instead (delete from rul_hidden; delete from rul_log2);
copy (insert into rul_own values (5)) to stdout;
create or replace rule rul_p as on insert to rul_own where new.a > 1 do instead delete from rul_hidden;
copy (insert into rul_own values (5)) to stdout;
with w as (insert into rul_own values (5) returning a) select * from w;
create or replace rule rul_p as on insert to rul_own do instead nothing;
with w as (insert into rul_own values (5)) select 1;
insert into rul_own values (5) returning a;
copy rul_own from stdin;
77
\.
select * from rul_own order by a;

drop table rul_own, rul_hidden, rul_s, rul_r, rul_r2, rul_log2 cascade;
drop view rul_v2;
drop view rul_v;
drop table rul_base;
drop sequence rul_q, rul_seq;
drop materialized view rul_m;
drop role rul_owner;
drop role rul_user;
