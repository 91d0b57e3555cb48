-- names: vzq
-- What is written through a view to one with INSTEAD OF triggers is for these to write.
create table vzq_tb(a int primary key, b text default 'Unspec');
insert into vzq_tb values (1,'one'), (2,'two');
-- INSTEAD OF below
create view vzq_iv as select a, b from vzq_tb where a > 0 offset 0;
create function vzq_if() returns trigger language plpgsql as $$
begin
  raise notice '% % %', tg_op, tg_table_name, coalesce(new, old);
  if tg_op = 'INSERT' then insert into vzq_tb values (new.a, new.b); return new;
  elsif tg_op = 'UPDATE' then update vzq_tb set a = new.a, b = new.b where a = old.a; return new;
  else delete from vzq_tb where a = old.a; return old; end if;
end $$;
create trigger vzq_it instead of insert or update or delete on vzq_iv for each row execute function vzq_if();
create view vzq_ov as select b as bb, a as aa, a * 2 as twice from vzq_iv where a < 10;
create view vzq_zv as select aa as x, bb as y from vzq_ov where aa > 1;
insert into vzq_ov (aa, bb) values (3, 'three') returning *;
insert into vzq_ov values ('four', 4) returning aa, bb, twice;
insert into vzq_ov values ('four', 4, 5);
update vzq_ov set bb = bb || '!' where twice > 4 returning *;
update vzq_ov set aa = aa + 10 where aa = 2 returning *;
update vzq_ov set twice = 3;
delete from vzq_ov where bb like 'three%' returning twice;
insert into vzq_zv values (5, 'five') returning *;
update vzq_zv set y = upper(y) returning *;
delete from vzq_zv where x = 5 returning *;
select * from vzq_tb order by 1;
update vzq_ov v set bb = o.b from vzq_tb o where o.a = v.aa + 11 returning v.*, o.*;
delete from vzq_ov v using vzq_tb o where o.a = 12 and v.aa = 4 returning v.aa, o.a;
insert into vzq_ov (aa) values (6) returning *;
insert into vzq_ov (aa, bb) select a + 6, b from vzq_tb where a < 3 returning *;
with w as (insert into vzq_ov (aa, bb) values (8, 'w') returning aa) select * from w;
insert into vzq_ov (aa, bb) values (9, 'c') on conflict do nothing;
insert into vzq_ov (aa, bb) values (9, 'c') on conflict (aa) do update set bb = 'x';
select * from vzq_tb order by 1;
explain (costs off) insert into vzq_ov (aa, bb) values (1, 'q');
-- check options
create view vzq_cv as select a, b from vzq_iv where a < 5 with local check option;
insert into vzq_cv values (50, 'n');
insert into vzq_cv values (-1, 'n');
update vzq_cv set a = a + 40 where a = 1;
create or replace view vzq_cv as select a, b from vzq_iv where a < 5 with cascaded check option;
insert into vzq_cv values (51, 'n');
insert into vzq_cv values (-2, 'n');
select * from vzq_tb order by 1;
select table_name, is_updatable, is_insertable_into, is_trigger_updatable from information_schema.views where table_schema = 'public' and table_name in ('vzq_iv','vzq_ov','vzq_zv','vzq_cv') order by 1;
-- only some events
drop trigger vzq_it on vzq_iv;
create trigger vzq_it instead of insert on vzq_iv for each row execute function vzq_if();
insert into vzq_ov (aa, bb) values (7, 'seven') returning *;
update vzq_ov set bb = 'no';
delete from vzq_zv;
-- privileges
create role vzq_or; create role vzq_ur;
create schema vzq_sc; grant all on schema vzq_sc to vzq_or, vzq_ur;
drop view vzq_cv, vzq_zv, vzq_ov;
alter view vzq_iv owner to vzq_or; grant select, insert on vzq_tb to vzq_or;
grant select, insert on vzq_iv to vzq_ur;
set role vzq_ur;
create view vzq_sc.vzq_ov as select a, b from public.vzq_iv;
insert into vzq_sc.vzq_ov values (60, 'x');
set role vzq_or;
insert into vzq_sc.vzq_ov values (60, 'x');
reset role;
revoke insert on vzq_iv from vzq_ur;
insert into vzq_sc.vzq_ov values (61, 'x');
drop view vzq_sc.vzq_ov; drop schema vzq_sc;
drop view vzq_iv; drop function vzq_if; drop table vzq_tb; drop role vzq_ur; drop owned by vzq_or; drop role vzq_or;
