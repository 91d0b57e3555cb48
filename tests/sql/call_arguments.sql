-- names: clp cln clf
-- CALL: outputs are arguments that nobody computes, by place and by name, and they say which procedure is meant.
create procedure clp_one(out a int, inout b int, c int default 3) language plpgsql as $$begin a := coalesce(b, 0) + c; b := 7; end$$;
call clp_one(null, 2);
call clp_one(null, 2, 9);
call clp_one(b => 4, a => null);
call clp_one(c => 4, b => 1, a => null);
call clp_one(null, c => 4, b => 1);
call clp_one(c => 4, b => 1);
call clp_one(1./0., 2);
call clp_one(1/0, 2);
call clp_one('x', 2);
call clp_one(b => 4, a => 'x');
create procedure clp_two(a int, out b int, c int) language sql as $$select a + c$$;
call clp_two(1, null, 3);
call clp_two(1, 3);
create procedure clp_two(a int, out b text, c int, d int default 4) language sql as $$select a + c + d$$;
call clp_two(1, null, 3, 4);
call clp_two(1, null::text, 3);
call clp_two(1, null::int, 3);
create procedure clp_rest(a int, out b int, variadic c int[]) language sql as $$select a + c[1]$$;
call clp_rest(1, null, 3, 4);
call clp_rest(1, null, variadic array[5, 4]);
create procedure clp_all() language plpgsql as $$
declare x int; y int;
begin
  call clp_one(b => y, a => x);
  raise notice '% %', x, y;
  call clp_one(c => 1, b => y, a => x);
  raise notice '% %', x, y;
end$$;
call clp_all();

-- In functions in SQL.
create table cln (a int, b text);
create procedure clp_in(x text) language sql as $$insert into cln values (1, x)$$;
create procedure clp_through(y text) language sql as $$call clp_in(y); call clp_in($1);$$;
call clp_through('b');
select * from cln;
create function clf_out() returns void language sql as $$call clp_one(null, 2)$$;
create procedure clp_out() language sql as $$call clp_one(null, 2)$$;

-- What is no procedure, and what is no function.
call sum(1);
call count(*);
call upper('x');
call clp_no(1);
create function clf_int(int) returns int language sql as 'select 1';
call clf_int(1);
select clp_two(1, 2);
select clp_in('x');
select clp_in(x => 'x');

-- Options, with their places.
create procedure clp_opt() language sql window as $$select 1$$;
create procedure clp_opt() language sql strict as $$select 1$$;
create procedure clp_opt() language sql immutable as $$select 1$$;
create procedure clp_opt() language sql cost 3 as $$select 1$$;
create function clf_opt() returns int language sql strict strict as $$select 1$$;
alter procedure clp_in(text) strict;
alter procedure clp_in(text) security definer security invoker;
alter function clf_int(int) strict called on null input;

-- EXECUTE says which parameter it is.
prepare clf_ex (int, float8) as select $1, $2;
execute clf_ex (1, true);
execute clf_ex (now(), 1);
execute clf_ex ('x', 1);
execute clf_ex (1.5, 1);
