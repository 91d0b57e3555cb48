-- names: wheel spoke
-- The text of views with queries inside, as pg_get_viewdef lays it out, and functions in words.

\pset format unaligned
\pset tuples_only on

create table wheel (id int primary key, name text, at timestamp, kind int, data jsonb);
create table spoke (id int primary key, item int references wheel, price numeric(8, 2), note text);

-- Words.
create view words as select trim(both from name) a, trim(both 'x' from name) b, trim(leading from name) c,
  trim(trailing 'y' from name) d, btrim(name) e, ltrim(name, 'x') f,
  substring(name from 2) g, substring(name from 2 for 3) h, substring(name for 3) i, substring(name from 'a.b') j,
  substring(name similar 'x#"y#"z' escape '#') k, "substring"(name, 2) l,
  overlay(name placing 'x' from 2) m, overlay(name placing 'x' from 2 for 3) n, position('x' in name) o,
  extract(year from at) p, date_part('year', at) q, (at, at) overlaps (at, at) r,
  at at time zone 'UTC' s, timezone('UTC', at) t, normalize(name) u, normalize(name, nfkc) v,
  name is normalized w, name is not nfd normalized x, strpos(name, 'x') y from wheel;
select pg_get_viewdef('words');

-- Queries in FROM, in expressions, WITH, UNION.
create view q1 as select i.id, (select max(p.price) from spoke p where p.item = i.id) as dearest,
  exists (select 1 from spoke p where p.item = i.id and p.price > 5) as dear,
  i.id in (select item from spoke) as has, i.id not in (select item from spoke) as lacks,
  i.id > all (select item from spoke where note is not null) as beyond,
  array(select p.note from spoke p where p.item = i.id order by p.id desc) as notes from wheel i;
select pg_get_viewdef('q1');
select pg_get_viewdef('q1', true);
create view q2 as select s.kind, s.n from (select kind, count(*) as n from wheel group by kind having count(*) > 1) s
  where s.n > 2 order by s.n desc, s.kind limit 3 offset 1;
select pg_get_viewdef('q2');
create view q3 as with recent as (select * from wheel where at > '2020-01-01'), few as materialized (select id from recent limit 2)
  select r.id, f.id as few from recent r left join few f on f.id = r.id;
select pg_get_viewdef('q3');
create view q4 as select id, name from wheel where kind = 1 union all select id, note from spoke union select 0, 'x'::text order by id, 2 desc;
select pg_get_viewdef('q4');
create view q5 as select id from wheel intersect (select item from spoke except select kind from wheel);
select pg_get_viewdef('q5');
create view q6 as select distinct kind from wheel;
select pg_get_viewdef('q6');
create view q7 as select distinct on (kind) kind, id, name from wheel order by kind, id desc nulls last;
select pg_get_viewdef('q7');
create view q8 as select v.a, v.b from (values (1, 'x'), (2, null)) v(a, b);
select pg_get_viewdef('q8');
create view q9 as select i.id, l.price from wheel i cross join lateral (select p.price from spoke p where p.item = i.id limit 1) l;
select pg_get_viewdef('q9');
create view q10 as select g, case when g > 1 then (select count(*) from wheel where wheel.id > g) else 0 end as c from generate_series(1, 3) g;
select pg_get_viewdef('q10');
create view q11 as with recursive n(x) as (values (1) union all select x + 1 from n where x < 5) select x from n;
select pg_get_viewdef('q11');
create view q12 as select wheel.id, (select count(*) from wheel) as all_of from wheel where exists (select from wheel where kind is null);
select pg_get_viewdef('q12');
create view q13 as select sub.*, row_to_json(sub.*) as whole from (select id, name from wheel) sub;
select pg_get_viewdef('q13');
create view q14 as select a.id, b.n from wheel a, (select item, count(*) n from spoke group by item) b, unnest(array[1, 2]) with ordinality u(x, y)
  where a.id = b.item and a.kind = u.x;
select pg_get_viewdef('q14');
create view q15 as select id, case kind when 1 then case when name is null then 'a' else 'b' end else (select 'c') end as k from wheel;
select pg_get_viewdef('q15');

-- A view stands on the primary key by which it groups.
create view grouped as select i.id, i.name, count(p.id) as n from wheel i left join spoke p on p.item = i.id group by i.id;
select pg_get_viewdef('grouped');
alter table wheel drop constraint wheel_pkey;
alter table wheel drop constraint wheel_pkey cascade;

-- They are what they were.
insert into wheel values (1, 'one', '2021-02-03', 1, '{}'), (2, 'two', '2019-02-03', 1, null), (3, null, null, 2, null);
insert into spoke values (1, 1, 3.5, 'n'), (2, 1, 7, null), (3, 2, 1, 'm');
do $$
declare
  name text;
  text text;
begin
  foreach name in array array['words','q1','q2','q3','q5','q6','q8','q10','q11','q12','q13','q15'] loop
    text := pg_get_viewdef(name::regclass);
    execute 'create view again as ' || text;
    if pg_get_viewdef('again'::regclass) <> text then
      raise notice '% is another', name;
    end if;
    execute 'drop view again';
  end loop;
end $$;
select * from q1 order by 1;
select * from q3 order by 1;
select * from q4;
drop table wheel, spoke cascade;
drop view q8, q11;
