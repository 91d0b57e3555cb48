-- names: spot mood lesser dist alike joined twice nearby listed opfirst opsecond opthird spots watched guarded ranked threes signed filled hidden unlike
-- Operators of one's own: made, called in every place where operators stand, kept in views and checks, dropped.
create type spot as (x int, y int);
create type mood as enum ('sad', 'ok', 'happy');
create domain lesser as int check (value < 100);
create function dist(spot, spot) returns int language sql immutable strict as 'select abs(($1).x - ($2).x) + abs(($1).y - ($2).y)';
create function lesser_alike(lesser, lesser) returns bool language sql immutable strict as 'select $1 % 10 = $2 % 10';
create function alike(int, int) returns bool language sql immutable strict as 'select $1 % 10 = $2 % 10';
create function joined(text, text) returns text language sql immutable as $$ select coalesce($1, '?') || '-' || coalesce($2, '?') $$;
create function plus_text(int, text) returns text language sql immutable as $$ select $1 || '/' || $2 $$;
create function twice(int) returns int language plpgsql immutable as 'begin return $1 * 2; end';

-- What is wrong with a definition.
create operator |+| (leftarg = int, rightarg = int);
create operator |+| (function = joined);
create operator |+| (function = joined, leftarg = text);
create operator |+| (function = joined, leftarg = text, rightarg = setof text);
create operator |+| (function = joined, leftarg = text, rightarg = nothing_such);
create operator |+| (function = joined, leftarg = text, rightarg = int);
create operator |+| (function = nothing.joined, leftarg = text, rightarg = text);
create operator nothing.|+| (function = joined, leftarg = text, rightarg = text);
create operator |+| (function = joined, leftarg, rightarg = text);
create operator |+| (function, leftarg = text, rightarg = text);
create operator |+| (function = joined, leftarg = text, rightarg = text, hashes);
create operator |+| (function = joined, leftarg = text, rightarg = text, merges);
create operator |+| (function = joined, leftarg = text, rightarg = text, restrict = eqsel);
create operator |+| (function = joined, leftarg = text, rightarg = text, join = eqjoinsel);
create operator |+| (function = joined, leftarg = text, rightarg = text, negator = |-|);
create operator |+| (function = joined, leftarg = text, rightarg = text, hashes = perhaps);
create operator @@> (function = twice, rightarg = int, commutator = @@>);
create operator @@> (function = twice, rightarg = int, join = eqjoinsel);
create operator @@> (function = twice, rightarg = int, merges);
create operator @@> (function = twice, rightarg = int, hashes);
create operator @@> (function = twice, leftarg = int);
create operator @@> (function = twice, leftarg = int, rightarg = none);
create operator === (function = alike, leftarg = int, rightarg = int, negator = ===);
create operator === (function = alike, leftarg = int, rightarg = int, restrict = eqjoinsel);
create operator === (function = alike, leftarg = int, rightarg = int, join = eqsel);
create operator === (function = alike, leftarg = int, rightarg = int, restrict = nothing_such);

-- What is not.
create operator |+| (function = joined, leftarg = text, rightarg = text, "Strange" = 1, stranger);
create operator |+| (function = joined, leftarg = text, rightarg = text);
create operator |+| (procedure = plus_text, leftarg = int, rightarg = text);
create operator @@> (function = twice, rightarg = int);
create operator === (function = alike, leftarg = int, rightarg = int, commutator = ===, negator = !===,
    restrict = eqsel, join = eqjoinsel, hashes, merges);
create operator <-> (function = dist, leftarg = spot, rightarg = spot, commutator = <->);
create operator ||| (function = int4pl, leftarg = int, rightarg = int);
create operator ~== (function = alike, leftarg = lesser, rightarg = lesser);
create operator ~== (function = lesser_alike, leftarg = lesser, rightarg = lesser);
select oprname, oprkind, oprleft::regtype, oprright::regtype, oprresult::regtype, oprcode, oprrest, oprjoin, oprcanhash,
    oprcanmerge, oprcom = oid as self, oprcom <> 0 as com, oprnegate <> 0 as neg, oprnamespace::regnamespace
    from pg_operator where oid >= 16384 and oprname in ('|+|', '@@>', '===', '!===', '<->', '|||', '~==') order by oprname, oprleft;
select oprrest::regprocedure, oprjoin::regprocedure from pg_operator where oprname = '===' and oprcode <> 0;
select 1 !=== 2;
create function unlike(int, int) returns bool language sql immutable strict as 'select not alike($1, $2)';
create operator !=== (function = unlike, leftarg = int, rightarg = int);
select o.oprname, n.oprname, n.oprcode from pg_operator o join pg_operator n on n.oid = o.oprnegate
    where o.oid >= 16384 and o.oprname = '===';

-- In expressions.
select 'a' |+| 'b', 'a' |+| null, 1 |+| 'b', 'a'::text |+| 'b'::varchar, @@> 4, @@> @@> 4, 1 |+| 'b' |+| 'c';
select 1 === 11, 1 === 12, 1 !=== 12, 1 === null, null === null;
select (1, 2)::spot <-> (4, 6)::spot, row(1, 2)::spot <-> null;
select 5 ||| 6, 5 ||| 6 * 2, 2 * 5 ||| 6;
select 1::smallint === 11::smallint, 5::lesser === 15::lesser, 5::lesser ~== 15, 5 ~== 15, 5::lesser ~== any (array[15]);
select 500 ~== 5;
select 5::lesser ~== 'x'::text;
select 1 === 'x';
select 1 === 1.5;
select true === 1;
select 'a'::text |+| 1;
select @@> 'a'::text;
select 1 @@> 2;
select 1 operator(public.===) 11, operator(public.@@>) 3, 1 operator(pg_catalog.+) 2;
select 1 operator(nothing.===) 2;
select 1 operator(pg_catalog.===) 2;
select 1 operator(public.+) 2;
select 1 === any (array[5, 11]), 1 === all (array[1, 11]), 1 === any (array[]::int[]), 1 === any (null);
select 1 === any (array[null, 2]), null === any (array[1]), 1 === all (array[11, null]), 1 !=== all ('{2,3}');
select 1 |+| any (array['a']);
select 1 === any (5);
select 'a' |+| any (array['a', 'b']);
select 1 === any (select 11), 1 === all (values (11), (12)), 1 operator(public.===) any (select null::int);
select 'a' |+| any (select 'b');
select 1 === any (select 1, 2);
select (1, 2) === (11, 12);
select row(1) === row(11);
select (1, 2) === any (select 11, 12);
select 'a' like 'a', 2 between 1 and 3;
prepare compared(int, int) as select $1 === $2, $1 ||| $2;
execute compared(3, 13);
execute compared(3, 14);
prepare untyped as select $1 === 3, $2 |+| 'x'::text;
execute untyped(13, 'w');
deallocate all;

-- Equality of one's own.
create function mood_alike(mood, mood) returns bool language sql immutable as 'select true';
create operator = (function = mood_alike, leftarg = mood, rightarg = mood);
select 'sad'::mood = 'happy'::mood as own, 'sad'::mood = 'happy' as literal, 'sad'::mood operator(pg_catalog.=) 'happy' as system;
select 'sad'::mood in ('ok', 'happy'), 'sad'::mood in (select 'ok'::mood), case 'sad'::mood when 'ok' then 1 end;
drop operator = (mood, mood);
select 'sad'::mood = 'happy'::mood;

-- Which of several.
create schema opfirst;
create schema opsecond;
create function opfirst.minus(int, int) returns int language sql immutable as 'select 111';
create function opsecond.minus(int, int) returns int language sql immutable as 'select 222';
create operator opfirst.## (function = opfirst.minus, leftarg = int, rightarg = int);
create operator opsecond.## (function = opsecond.minus, leftarg = int, rightarg = int);
create operator opfirst.- (function = opfirst.minus, leftarg = int, rightarg = int);
select 1 ## 2;
set search_path = opfirst, opsecond, public;
select 1 ## 2, 1 - 2;
set search_path = opsecond, opfirst, public;
select 1 ## 2, 1 - 2, 1 operator(opfirst.-) 2;
set search_path = opfirst, pg_catalog, public;
select 1 - 2, 1::bigint - 2, - 1;
select 1 operator(pg_catalog.-) 2;
create view opsecond.hidden as select 1 - 2 as own, 1 operator(pg_catalog.-) 2 as system;
select * from opsecond.hidden;
select pg_get_viewdef('opsecond.hidden');
set search_path = opfirst, public;
select * from opsecond.hidden;
select pg_get_viewdef('opsecond.hidden');
reset search_path;
create function pick_any(anyelement, anyelement) returns anyelement language sql immutable as 'select $2';
create operator @~@ (function = pick_any, leftarg = anyelement, rightarg = anyelement);
select 1 @~@ 2, 'a'::text @~@ 'b', (1, 2)::spot @~@ (3, 4)::spot;
select 'a' @~@ 'b';
select 1 @~@ 'b'::text;
create function of_big(bigint, bigint) returns text language sql immutable as $$ select 'big' $$;
create function of_double(float8, float8) returns text language sql immutable as $$ select 'double' $$;
create operator ~~> (function = of_big, leftarg = bigint, rightarg = bigint);
create operator ~~> (function = of_double, leftarg = float8, rightarg = float8);
select 1 ~~> 2, 1::bigint ~~> 2, 1.5 ~~> 2;
create function of_real(real, bigint) returns text language sql immutable as $$ select 'real' $$;
create function of_reals(bigint, real) returns text language sql immutable as $$ select 'reals' $$;
create operator <~~> (function = of_real, leftarg = real, rightarg = bigint);
create operator <~~> (function = of_reals, leftarg = bigint, rightarg = real);
select 1 <~~> 2;

-- Kept.
create table spots (id int primary key, at spot, n int check (n !=== 7), m int default 2 ||| 3,
    z int generated always as (id operator(public.|||) 1) stored);
insert into spots values (1, (1, 1), 1), (2, (5, 5), 12);
insert into spots values (3, null, 17);
create index near on spots ((n ||| 1)) where n === 1;
create view nearby as
    select s.id, s.at <-> '(0,0)' as d, @@> s.n as t, s.n === 1 as a, s.n === any (array[1, 2]) as l,
        'x' |+| (s.n |+| 'y') as j, s.n operator(public.|||) 2 * 3 as p, s.n in (select n from spots) as q,
        s.n === any (select n from spots) as r
    from spots s where s.n !=== 4 order by s.at <-> '(0,0)';
select * from nearby;
select pg_get_viewdef('nearby');
select pg_get_viewdef('nearby', true);
\d spots
set search_path = opfirst;
select pg_get_viewdef('public.nearby', true);
select pg_get_constraintdef(oid) from pg_constraint where conname = 'spots_n_check';
select * from public.nearby;
reset search_path;
create view opfirst.listed as select 1 operator(opfirst.##) 2 as a, 1 operator(opsecond.##) 2 as b, 1 - 2 as c, 1 operator(opfirst.-) 2 as d;
select * from opfirst.listed;
select pg_get_viewdef('opfirst.listed');
set search_path = opsecond, opfirst;
select pg_get_viewdef('listed');
reset search_path;
alter schema opfirst rename to opthird;
alter operator opsecond.## (int, int) set schema public;
select * from opthird.listed;
select pg_get_viewdef('opthird.listed');
alter operator ## (int, int) set schema opsecond;
alter schema opthird rename to opfirst;
alter table spots rename n to number;
select * from nearby;
create function in_body(a int) returns bool language sql return a === 3 and a operator(public.!===) 4;
select in_body(13), in_body(5);
select pg_get_function_sqlbody('in_body'::regproc);
create function in_text(a int) returns bool language sql as 'select a === 3';
create function in_block(a int) returns bool language plpgsql as 'begin if a === 3 then return a !=== 4; end if; return null; end';
select in_text(13), in_block(13), in_block(4);
select count(*) from spots a join spots b on a.id === b.id;
select count(*) from spots a left join spots b on a.number !=== b.number where b.id is null or a.id !=== 5;
update spots set number = number ||| 10 where id === 1 returning id, number;
delete from spots where at <-> '(5,5)' < 2 returning id;

create function signed(int, bool) returns int language sql immutable as 'select case when $2 then $1 else -$1 end';
create operator * (function = signed, leftarg = int, rightarg = bool);
create view opfirst.ranked as select 2 * true + 1 as a, 2 * (true or false) as b, 1 + 2 * false as c;
select * from opfirst.ranked;
select pg_get_viewdef('opfirst.ranked', true);
create domain threes as int check (value === 3 or value operator(public.===) 4);
select 13::threes, 14::threes;
select 15::threes;
create policy own_rows on spots using (id === 1) with check (id operator(public.===) 2);
select pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid) from pg_policy where polname = 'own_rows';
create function say_new() returns trigger language plpgsql as 'begin raise notice ''%'', new.id; return new; end';
create trigger threes_only before insert on spots for each row when (new.id === 3) execute function say_new();
insert into spots values (13, null, 1), (14, null, 1);
select pg_get_triggerdef(oid) from pg_trigger where tgname = 'threes_only';
create materialized view opfirst.filled as select id from spots where id === 3;
select * from opfirst.filled;
select id, count(*) over (partition by id === 3) from spots order by id === 3, id;
select id === 1 as ones, count(*) filter (where id === 3) from spots group by id === 1 having bool_or(id === id) order by 1;
select id from spots where id === (select max(id) from spots);
select t.at <-> t.at from (select at from spots where id = 1) t where exists (select from spots s where s.id === 3);
drop trigger threes_only on spots;
drop policy own_rows on spots;
delete from spots where id > 10;

-- What depends on what.
drop function alike(int, int);
drop operator === (int, int);
drop operator !=== (int, int);
drop operator !=== (int, int), <-> (spot, spot) restrict;
select pg_describe_object(d.classid, d.objid, 0), d.deptype from pg_depend d
    where d.refclassid = 'pg_operator'::regclass and d.classid in ('pg_proc'::regclass, 'pg_constraint'::regclass) order by 1, 2;
select pg_describe_object(d.classid, d.objid, 0), pg_describe_object(d.refclassid, d.refobjid, 0), d.deptype
    from pg_depend d join pg_operator o on o.oid = d.objid and o.oprname in ('|+|', '@@>', '===', '!===', '<->', '|||', '~==')
    where d.classid = 'pg_operator'::regclass and d.objid >= 16384 order by 1, 2;
begin;
drop function alike(int, int) cascade;
select 1 === 2;
rollback;
begin;
savepoint before;
drop operator <-> (spot, spot) cascade;
select * from nearby;
rollback to before;
select count(*) from nearby;
create operator |#| (function = int4mul, leftarg = int, rightarg = int);
select 3 |#| 4;
rollback;
select 3 |#| 4;

-- Names of DROP, ALTER and COMMENT.
drop operator === (int, text);
drop operator === (int, none);
drop operator nothing.=== (int, int);
drop operator if exists === (int, text), nothing.=== (int, int), === (int, nothing_such);
drop operator + (int, int);
drop operator @@> (none, int), @@> (none, int);
create operator @@> (function = twice, rightarg = int);
comment on operator === (int, int) is 'last digits';
comment on operator @@> (none, int) is 'twice';
comment on operator === (int, text) is 'none';
select oprname, obj_description(oid, 'pg_operator') from pg_operator where obj_description(oid) in ('last digits', 'twice') order by 1;
comment on operator @@> (none, int) is null;
select count(*) from pg_description d join pg_operator o on o.oid = d.objoid
    where d.classoid = 'pg_operator'::regclass and o.oid >= 16384 and o.oprname in ('===', '@@>');
alter operator === (int, int) set (restrict = none, join = neqjoinsel);
alter operator === (int, int) set (restrict = neqsel, restrict = eqsel);
select oprrest, oprjoin from pg_operator where oprname = '===';
alter operator === (int, int) set (restrict = eqjoinsel);
alter operator === (int, int) set (hashes = false);
alter operator === (int, int) set (strange = false);
alter operator === (int, text) set (restrict = none);
alter operator |+| (text, text) set (restrict = eqsel);
alter operator |+| (text, text) set (join = eqjoinsel);
alter operator @@> (none, int) set (join = eqjoinsel);
alter operator @@> (none, int) set (restrict = none, join = none);
alter operator === (int, int) set schema nothing;
alter operator === (int, int) owner to nothing_such;
alter operator ## (int, int) set schema opfirst;
alter operator opsecond.## (int, int) set schema opsecond;
select pg_operator_is_visible(oid), oprnamespace::regnamespace from pg_operator where oprname = '##' and oid >= 16384 order by 2;

-- Other roles'.
create role holder;
create role keeper;
grant usage on schema opfirst to holder;
create function guarded(int, int) returns bool language sql immutable as 'select $1 > $2';
revoke execute on function guarded(int, int) from public;
create operator |>| (function = guarded, leftarg = int, rightarg = int);
create view watched as select 2 |>| 1 as b;
grant select on watched to holder;
set role holder;
select 2 |>| 1;
select 2 |>| any (array[1]);
select 2 |>| any (select 1);
select * from watched;
prepare hidden as select 1 |>| $1;
execute hidden(1);
deallocate hidden;
do $$ begin perform 1 |>| 2; end $$;
create operator |<| (function = int4lt, leftarg = int, rightarg = int);
create operator opfirst.|<| (function = int4lt, leftarg = int, rightarg = int);
drop operator |>| (int, int);
alter operator |>| (int, int) owner to holder;
alter operator |>| (int, int) set (restrict = none);
alter operator |>| (int, int) set schema opfirst;
comment on operator |>| (int, int) is 'mine';
select 1 operator(opsecond.##) 2;
reset role;
grant create, usage on schema opsecond to holder;
grant create on schema public to holder;
set role holder;
create operator opsecond.|<| (function = guarded, leftarg = int, rightarg = int);
create operator opsecond.|<| (function = int4lt, leftarg = int, rightarg = int, commutator = |>|);
create operator opsecond.|<| (function = int4lt, leftarg = int, rightarg = int);
alter operator opsecond.|<| (int, int) owner to keeper;
alter operator opsecond.|<| (int, int) set schema opfirst;
reset role;
drop role holder;
grant execute on function guarded(int, int) to holder;
set role holder;
select 2 |>| 1;
select * from watched;
reset role;
reassign owned by holder to keeper;
select oprowner::regrole from pg_operator where oprname = '|<|';
drop owned by keeper;
select count(*) from pg_operator where oprname = '|<|';
drop owned by holder;
drop role holder;
drop role keeper;

-- In a transaction that only reads, and the end.
begin read only;
create operator |#| (function = int4mul, leftarg = int, rightarg = int);
rollback;
begin read only;
drop operator === (int, int);
rollback;
drop schema opfirst;
drop schema opfirst cascade;
drop schema opsecond cascade;
drop view nearby;
drop domain threes;
drop function say_new(), signed(int, bool) cascade;
drop function in_body(int), in_text(int), in_block(int);
drop table spots;
drop type spot cascade;
drop domain lesser;
drop operator ~== (lesser, lesser);
drop function lesser_alike(lesser, lesser);
drop domain lesser;
drop type mood cascade;
drop function joined(text, text) cascade;
drop function alike(int, int), unlike(int, int) cascade;
drop view watched;
drop function guarded(int, int) cascade;
drop function plus_text(int, text), twice(int), pick_any(anyelement, anyelement), of_big(bigint, bigint),
    of_double(float8, float8), of_real(real, bigint), of_reals(bigint, real) cascade;
drop operator ||| (int, int);
select oprname from pg_operator where oid >= 16384 and oprname in ('|+|', '@@>', '===', '!===', '<->', '|||', '~==') order by 1;
