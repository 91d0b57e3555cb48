-- names: made
-- Functions use what their own transaction has made: types, casts, rights.
create schema made;
set search_path to made;

begin;
create domain few as int[] check (cardinality(value) < 3);
create type pair as (a few, b text);
create function of_few(int, int) returns few language plpgsql as
  'declare x few; begin x := array[$1, $2]; return x; end';
select of_few(1, 2);
create function of_pair(int) returns pair language plpgsql as
  'declare x pair; y few; begin x := row(array[$1], 7); y := x.a; x.a := y || $1; return x; end';
select of_pair(5);
select (of_pair(5)).b;
create function texts(pair[]) returns text language plpgsql as
  'declare a few; b text; t text := ''''; begin
     foreach a, b in array $1 loop t := t || a::text || b; end loop;
     return t;
   end';
select texts(array[of_pair(1), of_pair(2)]);
create function too_many() returns few language plpgsql as
  'declare x few; begin x := array[1, 2, 3]; return x; end';
savepoint before;
select too_many();
rollback to before;
create function last_few(int) returns few language sql as 'select array[$1]';
select last_few(3), pg_typeof(last_few(3));
rollback;

select of_few(1, 2);

-- An operator over a domain calls its function, which uses that of the type below.
begin;
create domain lot as int[];
create function made(int, int) returns lot language plpgsql as
  'declare x lot; begin x := array[$1, $2]; return x; end';
create function lots_equal(lot, lot) returns boolean language plpgsql as
  'begin return array_eq($1, $2); end';
create operator = (procedure = lots_equal, leftarg = lot, rightarg = lot);
select case made(1, 2)
  when array[2, 4]::lot then 'wrong'
  when array[2, 5]::lot then 'wrong, too'
  when array[1, 2]::lot then 'right'
  end;
rollback;

-- Casts.
begin;
create type shade as enum ('dark', 'light');
create function shade_of(int) returns shade language sql immutable as
  $$select case when $1 > 50 then 'light'::made.shade else 'dark' end$$;
create cast (int as shade) with function shade_of(int) as assignment;
create function shaded(int) returns shade language plpgsql as
  'declare x shade; begin x := $1; return x; end';
select shaded(10), shaded(60);
create function shaded_too(int) returns shade language sql as 'select $1';
select shaded_too(10), shaded_too(60);
rollback;

drop schema made cascade;
