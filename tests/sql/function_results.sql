-- names: frs vdt
-- What functions in SQL give: rows of no type, rows of a type with modifiers, and rows that are not what was asked for.
create function frs_open(anyarray) returns setof record language sql strict immutable as 'select i as "index", $1[i] as "value" from generate_subscripts($1, 1) i';
select frs_open(array['one', 'two']);
select * from frs_open(array['one', 'two']) as t(a int, b text);
select * from frs_open(array['one', 'two']) as t(a numeric(4,2), b text);
select * from frs_open(array['one', 'two']) as t(a point, b text);
select * from frs_open(array['one', 'two']) as t(a int);
select * from frs_open(array['one', 'two']) as t(a int, b text, c int);
select * from frs_open(array['one', 'two']);
create function frs_plain(anyarray) returns setof record language sql immutable as 'select i as "index", $1[i] as "value" from generate_subscripts($1, 1) i';
select frs_plain(array['one', 'two']);
select * from frs_plain(array['one', 'two']) as t(a numeric(4,2), b text);
select * from frs_plain(array['one', 'two']) as t(a point, b text);
create function frs_row() returns record language sql as 'select row(1, 2)';
select frs_row();
select * from frs_row() t(a int, b int);
select * from frs_row() t(a text, b text);
select * from frs_row() t(a int);
select * from frs_row() t(a int, b int, c int);
create function frs_two() returns record language sql as 'select 1, 2';
select frs_two();
select * from frs_two() t(a text, b text);
create function frs_rows() returns setof record language sql as 'select row(1, 2) union all select null';
select frs_rows();
select * from frs_rows() t(a int, b int);
create function frs_out(out int, out numeric) language sql as 'select (1, 2.1)';
select * from frs_out();
create or replace function frs_out(out int, out numeric) language sql as 'select (1, 2)';
select * from frs_out();
create or replace function frs_out(out int, out numeric) language sql as 'select (1, 2.1, 3)';
select * from frs_out();

-- Modifiers.
create type frs_type as (a numeric(5,2), b varchar(3));
create function frs_set() returns setof frs_type language sql as $$select 1.255, 'abc'::text$$;
select * from frs_set();
select frs_set();
select (frs_set()).*;
create or replace function frs_set() returns setof frs_type language sql immutable as $$select 1.255, 'abc'::text$$;
select * from frs_set();
select frs_set();
create or replace function frs_set() returns setof frs_type language sql as $$select row(1.255, 'abc'::text)$$;
select * from frs_set();
select frs_set();
create function frs_one() returns frs_type language sql as $$select 1.255, 'abc'::text$$;
select * from frs_one();
select frs_one();
select (frs_one()).a;
create table frs_table (a numeric(5,2), b char(4));
create function frs_of_table() returns setof frs_table language sql as $$select 1.255, 'ab'$$;
select * from frs_of_table();
select frs_of_table();
create view frs_view as select * from frs_of_table();
\d frs_view
select * from frs_view;

-- Nothing.
create table vdt (a int);
create function frs_void(int) returns setof void language sql as 'select generate_series(1, $1)';
select * from frs_void(2);
select frs_void(2);
create function frs_writes() returns setof void language sql as 'insert into vdt values (1) returning a';
select frs_writes();
select * from frs_writes();
select * from vdt;

-- In PL/pgSQL, rows of no type are given only to who says what they are.
create function frs_pl() returns setof record language plpgsql as $$begin return query select 1, 'a'::text; end$$;
select * from frs_pl() t(a int, b text);
select frs_pl();

-- The kind of a function's result is settled before its body.
create or replace function frs_set() returns int language sql as 'select 1, 2';
create function frs_set() returns int language sql as 'select 1, 2';

-- ROWS FROM: what looks at no row around it is called once.
create sequence frs_seq;
create sequence frs_seq2;
create function frs_sql(int, int, out i int, out s bigint) returns setof record language sql as $$select i, nextval('frs_seq') from generate_series($1, $2) i$$;
create function frs_mat(int, int, out i int, out s bigint) returns setof record language plpgsql as $$begin for i in $1..$2 loop s := nextval('frs_seq2'); frs_mat.i := i; return next; end loop; end$$;
select * from (values (1),(2),(3)) v(r), rows from (frs_sql(11, 11), frs_mat(10 + r, 13));
select setval('frs_seq', 1, false), setval('frs_seq2', 1, false);
select * from (values (1),(2),(3)) v(r), rows from (frs_sql(10 + r, 13), frs_mat(11, 11));
select setval('frs_seq', 1, false), setval('frs_seq2', 1, false);
select * from (values (1),(2),(3)) v(r), rows from (frs_sql(11, 11), frs_mat(11, 11));
drop function frs_set(), frs_one();
drop type frs_type;
