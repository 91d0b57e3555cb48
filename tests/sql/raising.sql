-- names: marks step
-- RAISE at all levels, and what catches it.
create table marks (step text);
do $$ begin raise debug 'debug'; raise log 'log'; raise info 'info'; raise notice 'notice'; raise warning 'warning'; end $$;
do $$ begin raise exception 'stop here'; end $$;
do $$ begin raise 'plain % and %', 1, 'two'; end $$;
do $$ begin raise notice '100%% of %', 'it'; end $$;
do $$ begin raise notice '%', null; end $$;
do $$ begin raise notice 'too few %'; end $$;
do $$ begin raise notice 'too many', 1; end $$;
do $$ begin raise exception 'with code' using errcode = '22012'; end $$;
do $$ begin raise exception 'with name' using errcode = 'unique_violation', detail = 'the detail', hint = 'the hint'; end $$;
do $$ begin raise notice 'with more' using detail = 'the detail', hint = 'the hint', errcode = '01234'; end $$;
do $$ begin raise division_by_zero; end $$;
do $$ begin raise sqlstate '12345'; end $$;
do $$ begin raise sqlstate '12345' using message = 'custom'; end $$;
do $$ begin raise exception using message = 'built ' || 1 + 1, column = 'c', table = 't1', schema = 's', datatype = 'd', constraint = 'k'; end $$;
do $$ begin raise nosuchcondition; end $$;
do $$ begin raise; end $$;
-- Catching.
do $$ begin perform 1 / 0; exception when division_by_zero then raise notice 'caught % %', sqlstate, sqlerrm; end $$;
do $$ begin perform 1 / 0; exception when others then raise notice 'others % %', sqlstate, sqlerrm; end $$;
do $$ begin perform 1 / 0; exception when unique_violation then raise notice 'wrong'; end $$;
do $$ begin perform 1 / 0; exception when unique_violation or division_by_zero then raise notice 'either'; end $$;
do $$ begin raise exception 'mine' using errcode = 'P1234'; exception when sqlstate 'P1234' then raise notice 'by state'; end $$;
do $$ begin raise exception 'mine'; exception when raise_exception then raise notice 'raised %', sqlerrm; end $$;
do $$ begin perform 1 / 0; exception when numeric_value_out_of_range then raise notice 'no'; when data_exception then raise notice 'by class'; end $$;
do $$ declare m text; d text; h text; s text; begin raise exception 'msg' using detail = 'det', hint = 'hin'; exception when others then get stacked diagnostics m = message_text, d = pg_exception_detail, h = pg_exception_hint, s = returned_sqlstate; raise notice '% % % %', m, d, h, s; end $$;
do $$ begin begin perform 1 / 0; exception when others then raise; end; exception when others then raise notice 'again %', sqlerrm; end $$;
do $$ begin begin perform 1 / 0; exception when others then raise exception 'instead'; end; exception when others then raise notice 'got %', sqlerrm; end $$;
do $$ begin perform 1 / 0; exception when others then raise exception 'from the handler'; end $$;
-- What a caught block wrote is gone, what its variables hold stays.
do $$ declare x int := 1; begin
  insert into marks values ('before');
  begin
    insert into marks values ('inside');
    x := 2;
    perform 1 / 0;
  exception when division_by_zero then
    insert into marks values ('handler ' || x);
  end;
  insert into marks values ('after');
end $$;
select * from marks order by step;
do $$ begin insert into marks values ('lost'); raise exception 'all of it'; end $$;
select count(*) from marks;
do $$ begin
  for i in 1..4 loop
    begin
      insert into marks values ('loop ' || i);
      if i % 2 = 0 then raise exception 'even'; end if;
    exception when raise_exception then raise notice 'skipped %', i;
    end;
  end loop;
end $$;
select * from marks where step like 'loop%' order by step;
do $$ begin raise notice 'first'; raise exception 'then'; end $$;
begin;
insert into marks values ('in block');
do $$ begin perform 1 / 0; exception when others then null; end $$;
select count(*) from marks;
do $$ begin perform 1 / 0; end $$;
select count(*) from marks;
rollback;
select count(*) from marks;
do $$ begin
  perform 1;
  perform nosuch();
end $$;
do $$
declare
  x int;
begin
  x := 1;
  x := x / 0;
end $$;
do $$
begin
  if 1 / 0 = 1 then
    null;
  end if;
end $$;
do $$ begin perform nosuch from marks; exception when undefined_column then raise notice 'no such column: %', sqlerrm; end $$;
do $$ begin insert into nosuch values (1); exception when undefined_table then raise notice 'no such table: %', sqlerrm; end $$;
do $$ begin perform 'x'::int; exception when invalid_text_representation then raise notice 'bad: %', sqlerrm; end $$;
drop table marks;
