-- names: measured
-- What EXPLAIN ANALYZE says of the rows of each node. How a plan comes about may differ, so what is
-- asked has one way; of the answer those lines are shown that both have.
create table measured_t (a int primary key, b int, c text);
insert into measured_t select i, i % 10, 'x' || i from generate_series(1, 1000) i;
create table measured_u (x int, y int);
insert into measured_u select i, i * 2 from generate_series(1, 100) i;
analyze measured_t;
analyze measured_u;
create function measured_told(query text) returns setof text language plpgsql as $$
declare line text;
begin
  for line in execute 'explain (analyze, costs off, timing off, summary off) ' || query loop
    if line ~ 'actual|never|Removed' then return next line; end if;
  end loop;
end $$;

select measured_told('select * from measured_t where b = 3 limit 5');
select measured_told('select b, count(*) from measured_t group by b order by b');
select measured_told('select * from measured_u limit 0');
select measured_told('select * from measured_t where a = 5');
select measured_told('select * from measured_t where a = 5 and b = 6');
select measured_told('select 1 union all select x from measured_u');
select measured_told('select * from measured_u order by y desc limit 3');
select measured_told('select rank() over (order by y) from measured_u');
select measured_told('select generate_series(1, 4)');

-- It is done.
select measured_told('insert into measured_u values (1, 2), (3, 4)');
select measured_told('insert into measured_u values (1, 2), (3, 4) returning x');
select measured_told('update measured_u set y = y + 1 where x = 3 returning *');
select measured_told('delete from measured_u where x = 3');
select count(*), sum(y) from measured_u;
explain (analyze, costs off, timing off, summary off) insert into measured_t values (1, 1, 'there');
begin;
explain (analyze, costs off, timing off, summary off) delete from measured_u;
select count(*) from measured_u;
rollback;
select count(*) from measured_u;

-- Foreign keys and triggers act, and their errors are those of the statement.
create table measured_of (a int references measured_t);
create function measured_fire() returns trigger language plpgsql as $$
begin
  raise notice '% of %', tg_op, new.a;
  return new;
end $$;
create trigger measured_fires before insert on measured_of for each row execute function measured_fire();
select measured_told('insert into measured_of values (7)');
explain (analyze, costs off, timing off, summary off) insert into measured_of values (7000);
select * from measured_of;

-- With parameters, and where nothing may be written.
prepare measured_p (int) as select * from measured_t where a = $1;
explain (analyze, costs off, timing off, summary off) declare measured_c cursor for select 1;
select measured_told('execute measured_p (5)');
select measured_told('execute measured_p (5000)');
begin read only;
explain analyze delete from measured_t;
rollback;
explain (analyze, costs off, timing off, summary off) delete from measured_t where a = 1 / 0;
explain (analyze, costs off, timing off, summary off) checkpoint;

-- The options.
explain (wal) select 1;
explain (timing) select 1;
explain (analyze off, timing) select 1;
explain (analyze maybe) select 1;

create function measured_fields(query text, out node text, out actual numeric[], out more text[])
language plpgsql as $$
declare answer json;
begin
  execute query into answer;
  node := answer -> 0 -> 'Plan' ->> 'Node Type';
  actual := array[(answer -> 0 -> 'Plan' ->> 'Actual Rows')::numeric,
    (answer -> 0 -> 'Plan' ->> 'Actual Loops')::numeric];
  select array_agg(key order by key) into more
    from (select json_object_keys(answer -> 0 -> 'Plan') union all
      select json_object_keys(answer -> 0)) keys (key)
    where key ~ 'Time|Actual';
end $$;
select * from measured_fields('explain (analyze, format json) select * from measured_t where a < 10');
select * from measured_fields('explain (analyze, timing off, format json) select * from measured_t where a < 10');
select * from measured_fields('explain (analyze, summary off, format json) select * from measured_t where a < 10');
select * from measured_fields('explain (summary, format json) select * from measured_t where a < 10');

drop table measured_of;
drop table measured_t, measured_u;
drop function measured_told, measured_fire, measured_fields;
