-- names: zuna zunb zunc zund zune zunf
-- What a block with a handler has made and taken back is not found by its name any more.
create function zunf() returns text language plpgsql as $$
begin
  begin
    create table zuna (a int);
    create type zunb as enum ('x', 'y');
    perform 1 / 0;
  exception when division_by_zero then
    null;
  end;
  return concat(to_regclass('zuna'), '|', to_regtype('zunb'));
end $$;
select zunf();
select to_regclass('zuna'), to_regtype('zunb');
select 'zuna'::regclass;

-- What stood before stays.
do $$ begin
  create table zunc (a int);
  begin
    create table zund (a int);
    alter table zunc rename to zune;
    raise exception 'back';
  exception when others then
    raise notice '%, %, %', to_regclass('zunc'), to_regclass('zund'), to_regclass('zune');
  end;
end $$;
select to_regclass('zunc'), to_regclass('zund'), to_regclass('zune');

-- A statement that fails within.
do $$ begin
  execute 'create table zund as select 1 / 0 as a';
exception when division_by_zero then
  raise notice '%', to_regclass('zund');
end $$;
select to_regclass('zund');
do $$ begin
  execute 'explain analyze create table zund as select 1 / 0 as a';
exception when division_by_zero then
  raise notice '%', to_regclass('zund');
end $$;
select to_regclass('zund');
