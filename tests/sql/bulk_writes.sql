-- names: parcels weight
-- What a transaction has written in the order of its keys, read, written again and taken back.
create table parcels(id int primary key, weight int, note text);
create index parcels_weight on parcels(weight);
begin;
insert into parcels select n, n % 7, 'first' from generate_series(1, 3000) n;
select count(*), sum(weight), min(id), max(id) from parcels;
select * from parcels where id in (1, 1500, 3000) order by id;
select id from parcels where weight = 3 order by id desc limit 3;
savepoint a;
insert into parcels select n, n % 5, 'second' from generate_series(3001, 5000) n;
update parcels set note = 'changed' where id % 1000 = 0;
delete from parcels where id between 2990 and 3010;
select count(*), sum(weight), count(*) filter (where note = 'changed') from parcels;
select id, note from parcels where id > 2980 order by id limit 12;
select id, note from parcels where id < 3020 order by id desc limit 12;
rollback to a;
select count(*), sum(weight), min(id), max(id), count(distinct note) from parcels;
-- The same keys once more, and one behind them.
insert into parcels select n, 1, 'third' from generate_series(3001, 4000) n;
insert into parcels values (10000, 9, 'far');
select count(*), sum(weight), max(id) from parcels;
savepoint b;
insert into parcels select n, 0, 'twice' from generate_series(3500, 4500) n;
rollback to b;
insert into parcels select n, 100, 'again' from generate_series(3990, 4010) n on conflict do nothing;
insert into parcels select n, 100, 'again' from generate_series(3999, 4003) n
  on conflict (id) do update set weight = parcels.weight + excluded.weight, note = 'met';
select * from parcels where id between 3997 and 4012 order by id;
savepoint c;
insert into parcels values (20000, 1, 'x'), (20001, 1, 'x'), (20000, 2, 'y');
rollback to c;
insert into parcels values (20000, 1, 'x'), (20001, 1, 'x'), (20000, 2, 'y')
  on conflict (id) do update set weight = 2;
rollback to c;
insert into parcels values (20000, 1, 'x'), (20001, 1, 'x'), (20000, 2, 'y') on conflict do nothing;
select * from parcels where id >= 10000 order by id;
commit;
select count(*), sum(weight), count(distinct note) from parcels;
select count(*) from parcels where weight = 1;
-- A cursor shows what was there when it was opened.
begin;
declare c cursor for select id, note from parcels where id >= 20000 order by id;
insert into parcels values (20002, 5, 'late');
update parcels set note = 'later' where id = 20001;
fetch all from c;
select id, note from parcels where id >= 20000 order by id;
rollback;
-- Taken back as a whole, statement by statement of a block that fails.
do $$
begin
  for n in 30000..30200 loop
    begin
      insert into parcels values (n, 1, 'kept');
      if n % 3 = 0 then
        raise exception 'not this one';
      end if;
    exception when others then
      null;
    end;
  end loop;
end
$$;
select count(*), min(id), max(id) from parcels where note = 'kept';
drop table parcels;
