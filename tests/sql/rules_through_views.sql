-- names: rzq
-- Rules of what is below a view apply to what is written through it.
create table rzq_tb(a int primary key, b text default 'Unspec', c int default 7);
create table rzq_lg(what text, x int, y text);
insert into rzq_tb values (1,'one'), (2,'two'), (3, 'three');
create view rzq_wv as select a, b from rzq_tb where a > 0 offset 0;
create rule ri as on insert to rzq_wv do instead insert into rzq_tb values (new.a, new.b) returning a, b;
create rule ru as on update to rzq_wv do instead update rzq_tb set a = new.a, b = new.b where a = old.a returning new.a, new.b;
create rule rd as on delete to rzq_wv do instead delete from rzq_tb where a = old.a returning old.a, old.b;
create view rzq_ov as select b as bb, a as aa, a * 2 as twice from rzq_wv where a < 10;
create view rzq_xv as select aa as x, bb as y from rzq_ov where aa > 1;
insert into rzq_ov (aa, bb) values (4, 'four') returning *;
insert into rzq_ov values ('five', 5) returning aa, bb, twice;
insert into rzq_ov values ('five', 5, 5) returning aa, bb, twice;
update rzq_ov set bb = bb || '!' where twice > 4 returning *;
update rzq_ov set aa = aa + 10 where aa = 2 returning *;
update rzq_ov set twice = 3;
delete from rzq_ov where bb like 'four%' returning twice;
insert into rzq_xv values (6, 'six') returning *;
update rzq_xv set y = upper(y) returning *;
delete from rzq_xv where x = 6 returning *, x + 1;
select * from rzq_tb order by 1;
insert into rzq_ov (aa) values (7) returning *;
insert into rzq_ov (aa, bb) select a + 6, b from rzq_tb where a between 2 and 3 returning *;
insert into rzq_ov (aa, bb) values (20, 'a'), (21, default) returning *;
update rzq_ov v set bb = o.b from rzq_tb o where o.a = v.aa + 11;
delete from rzq_ov v using rzq_tb o where o.a = 12 and v.aa = 5;
insert into rzq_ov (aa, bb) values (9, 'c') on conflict do nothing;
with w as (insert into rzq_ov (aa, bb) values (8, 'w') returning aa) select * from w;
select * from rzq_tb order by 1;
drop view rzq_xv, rzq_ov, rzq_wv;
-- rules of a table below, ALSO and INSTEAD with conditions
create view rzq_uv as select b, a from rzq_tb;
create view rzq_tv as select a + 1 as a1, b as bb, a as aa from rzq_uv where a < 100;
create rule rta as on insert to rzq_tb do also insert into rzq_lg values ('ins', new.a, new.b);
create rule rtc as on update to rzq_tb where old.a <> new.a do instead insert into rzq_lg values ('no', new.a, old.b);
create rule rte as on update to rzq_tb do also insert into rzq_lg values ('upd', new.c, new.b);
create rule rtd as on delete to rzq_tb where old.a > 5 do instead nothing;
create rule rtf as on delete to rzq_tb do also insert into rzq_lg values ('del', old.a, old.b);
insert into rzq_tv (aa, bb) values (30, 'thirty') returning *;
update rzq_tv set bb = 'x' || bb where a1 = 2 returning *;
update rzq_tv set bb = 'x' || bb where a1 = 2;
update rzq_tv set aa = 99 where aa = 3;
update rzq_tv set aa = 99;
delete from rzq_tv where aa in (1, 30);
select * from rzq_tb order by 1; select * from rzq_lg order by 1, 2, 3;
truncate rzq_lg;
-- rules of the view itself and of what is below
create rule rva as on insert to rzq_tv do also insert into rzq_lg values ('view', new.aa, new.bb);
insert into rzq_tv (aa, bb) values (40, 'fourty'), (41, 'x');
create rule rvb as on update to rzq_tv do also insert into rzq_lg values ('vupd', old.aa, new.bb);
update rzq_tv set bb = 'y' where aa = 40;
select * from rzq_lg order by 1, 2, 3;
drop rule rva on rzq_tv; drop rule rvb on rzq_tv;
-- the condition of a view
create view rzq_cv as select a, b from rzq_tb where a > 5 with check option;
insert into rzq_cv values (4, 'q');
insert into rzq_cv values (44, 'q');
update rzq_cv set b = 'zz' where a = 44;
select * from rzq_lg order by 1, 2, 3;
-- conditional on a view
create view rzq_qv as select a, b from rzq_tb;
create rule rqi as on insert to rzq_qv where new.a > 100 do instead nothing;
create view rzq_pv as select a, b from rzq_qv;
insert into rzq_pv values (200, 'n');
insert into rzq_qv values (200, 'n');
create rule rqj as on insert to rzq_qv do instead nothing;
insert into rzq_pv values (200, 'n') returning *;
insert into rzq_pv values (200, 'n');
-- volatile and default columns
alter view rzq_pv alter b set default 'view default';
drop rule rqj on rzq_qv; drop rule rqi on rzq_qv;
create rule rqj as on insert to rzq_qv do instead insert into rzq_lg values ('q', new.a, new.b);
insert into rzq_pv (a) values (201);
insert into rzq_pv values (202, default);
insert into rzq_qv (a) values (203);
insert into rzq_pv values (204, default), (205, 'given');
select * from rzq_lg where what = 'q' order by 2;
-- security barrier
create view rzq_sv with (security_barrier) as select a, b from rzq_qv where a < 50;
create rule rsd as on delete to rzq_qv do instead update rzq_tb set b = 'gone' where a = old.a;
delete from rzq_sv where a = 40;
select * from rzq_tb order by 1;
-- recursion
create table rzq_ra(a int); create table rzq_rb(a int);
create view rzq_rv as select a from rzq_rb;
create rule rr1 as on insert to rzq_ra do instead insert into rzq_rv values (new.a);
create rule rr2 as on insert to rzq_rb do instead insert into rzq_ra values (new.a);
insert into rzq_rv values (1);
insert into rzq_ra values (1);
copy rzq_tv (aa, bb) from stdin;
\.
merge into rzq_tv using rzq_lg on false when not matched then insert (aa) values (1);
select table_name, is_updatable, is_insertable_into from information_schema.views where table_name in ('rzq_tv','rzq_cv','rzq_qv','rzq_pv','rzq_sv') order by 1;
-- privileges
create role rzq_or; create role rzq_ur; grant select on rzq_tb to rzq_or;
create view rzq_mv as select a, b from rzq_tb; alter view rzq_mv owner to rzq_or;
grant insert, update, select on rzq_mv to rzq_ur;
set role rzq_ur;
insert into rzq_mv values (70, 'x');
reset role;
grant insert on rzq_tb to rzq_or;
set role rzq_ur;
insert into rzq_mv values (70, 'x');
update rzq_mv set b = 'q';
reset role;
select a, b from rzq_tb where a = 70; select * from rzq_lg where x = 70;
drop view rzq_mv, rzq_rv, rzq_sv, rzq_pv, rzq_qv, rzq_cv, rzq_tv, rzq_uv; drop table rzq_ra, rzq_rb, rzq_tb, rzq_lg; drop role rzq_or, rzq_ur;
