//! The statements that are tried, and the objects that they name.

use super::{Kind, Way};

/// A statement of the matrix.
pub struct Statement {
    pub text: &'static str,
    pub kind: Kind,
    /// Whether nobody is refused.
    pub open: bool,
    /// What undoes it, if it cannot be rolled back.
    pub undo: Option<&'static str>,
}

const fn of(kind: Kind, text: &'static str) -> Statement {
    Statement {
        text,
        kind,
        open: false,
        undo: None,
    }
}

const fn query(text: &'static str) -> Statement {
    of(Kind::Query, text)
}

const fn outer(text: &'static str) -> Statement {
    of(Kind::Outer, text)
}

const fn write(text: &'static str) -> Statement {
    of(Kind::Write, text)
}

const fn returning(text: &'static str) -> Statement {
    of(Kind::Returning, text)
}

const fn utility(text: &'static str) -> Statement {
    of(Kind::Utility, text)
}

const fn open(text: &'static str) -> Statement {
    Statement {
        open: true,
        ..of(Kind::Utility, text)
    }
}

const fn alone(text: &'static str, undo: &'static str) -> Statement {
    Statement {
        undo: Some(undo),
        ..of(Kind::Alone, text)
    }
}

/// Statements that are ways to run others, and those that end or begin what the cells stand in.
pub const BY_WAYS: [&str; 9] = [
    "DeclareCursorStmt",
    "FetchStmt",
    "ClosePortalStmt",
    "ExplainStmt",
    "PrepareStmt",
    "ExecuteStmt",
    "DeallocateStmt",
    "DoStmt",
    "TransactionStmt",
];

/// What Quorate answers 0A000 to: in these ways (none: in all), statements that hold this text.
pub const UNSUPPORTED: &[(&[Way], &str)] = &[(&[], "load ")];

/// The roles and objects. `connect` goes over to the database of the test.
pub const SETUP: &str = "
create role m_owner;
create role m_granted;
create role m_column;
create role m_member in role m_owner;
create role m_noinherit noinherit in role m_owner;
create role m_stranger;
create role m_data in role pg_read_all_data, pg_write_all_data;
create role m_alone;
create database matrix;
connect;
grant create on database matrix to m_owner, m_granted;
create schema m authorization m_owner;
create schema closed authorization m_owner;
create schema room;
grant usage on schema m to public;
grant usage on schema closed to m_granted;
grant all on schema room to public;
create table room.sink (n bigint);
grant insert on room.sink to public;
set role m_owner;
create table m.t (k int primary key, v text, n int);
create index t_n on m.t (n);
insert into m.t values (1, 'one', 10), (2, 'two', 20);
create table m.u (k int, n int);
insert into m.u values (7, 70);
create table m.ref (k int primary key);
create table m.ser (k serial primary key, v text);
insert into m.ref values (1);
create table m.kid (k int references m.ref);
create table m.ide (k int generated always as identity, v text);
create table closed.t (k int);
create sequence m.s;
create type m.mood as enum ('sad', 'ok');
create type closed.mood as enum ('sad', 'ok');
create type m.pair as (k int);
create type m.stretch as range (subtype = float8);
revoke usage on type m.stretch from public;
grant usage on type m.stretch to m_granted;
revoke usage on type m.pair from public;
grant usage on type m.pair to m_granted;
revoke usage on type m.mood from public;
grant usage on type m.mood to m_granted;
create function m.to_mood(text) returns m.mood language sql as $$ select 'ok'::m.mood $$;
create cast (text as m.mood) with function m.to_mood(text);
create collation m.german (provider = icu, locale = 'de');
create statistics m.linked on k, n from m.u;
create function m.fo(int, int) returns bool language sql as 'select $1 < $2';
create operator m.@@@ (function = m.fo, leftarg = int, rightarg = int);
create table m.moody (k m.mood);
select lo_from_bytea(7001, 'kept');
grant select on large object 7001 to m_granted;
create domain m.above as int check (value > 0);
create domain closed.above as int check (value > 0);
revoke usage on domain m.above from public;
grant usage on domain m.above to m_granted;
insert into m.moody values ('ok');
create view m.view as select k, v from m.t;
create materialized view m.mat as select k, v from m.t;
create table m.guarded (k int primary key, n int);
insert into m.guarded values (1, 1), (2, 0), (3, 3);
alter table m.guarded enable row level security;
create policy shown on m.guarded using (k <> 2) with check (k <> 9);
create policy kept on m.guarded as restrictive for delete using (k = 1);
create view m.invoked with (security_invoker) as select k from m.guarded;
create function m.f(k int) returns int language sql as 'select k';
create function m.g2(int, int) returns int language sql as 'select $1 + $2';
create function m.g3(m.mood, m.mood) returns m.mood language sql as 'select $2';
create aggregate m.a (int) (sfunc = m.g2, stype = int, initcond = '0');
create function m.fs() returns setof int language plpgsql as 'begin return next 1; end';
create function m.fd() returns bigint language sql security definer as 'select count(*) from m.u';
create procedure m.p() language plpgsql as 'begin end';
create table m.trig (k int primary key, v text);
insert into m.trig values (1, 'one');
create function m.tf() returns trigger language plpgsql as 'begin delete from m.u where k = 0; return new; end';
create function m.td() returns trigger language plpgsql security definer as 'begin delete from m.u where k = 0; return null; end';
create trigger watch before insert on m.trig for each row execute function m.tf();
create trigger watched after update on m.trig execute function m.td();
create table m.ruled (k int primary key, v text);
insert into m.ruled values (1, 'one');
create rule marked as on update to m.ruled do also delete from m.u where k = old.k;
create rule moved as on delete to m.ruled do instead insert into m.u values (old.k, 0);
revoke execute on all routines in schema m from public;
grant execute on all routines in schema m to m_granted;
grant all on all tables in schema m, closed to m_granted;
grant all on all sequences in schema m to m_granted;
grant select (k), insert (k), update (k), references (k) on m.t, m.ref, m.view, m.guarded, m.invoked to m_column;
grant select (k) on m.mat to m_column;
grant insert (v) on m.ser, m.ide to m_column;
grant insert on m.kid to m_stranger;
grant usage on sequence m.s to m_column;
grant select (k) on closed.t to m_column;
reset role;
create table closed.other (k int);
alter table closed.other owner to m_granted;
create schema lost;
grant usage on schema lost to public;
create table lost.t (k int);
alter table lost.t owner to m_owner;
revoke execute on function m.stretch(float8, float8), m.stretch_multirange(m.stretch) from public;
grant execute on function m.stretch(float8, float8), m.stretch_multirange(m.stretch) to m_granted;
revoke execute on function sinh(double precision), bit_xor(integer) from public;
grant execute on function sinh(double precision), bit_xor(integer) to m_granted;
revoke usage on type timetz from public;
grant usage on type timetz to m_granted;
create schema strange authorization m_stranger;
";

/// All of them.
pub const STATEMENTS: &[Statement] = &[
    // ---- Queries ----
    // PostgreSQL drops subqueries that nobody looks at, with what they require, so those that it
    // could drop stand in no other query.
    outer("select sinh(k)::int as k from m.view"),
    outer("select bit_xor(k) as k from m.view"),
    query("select k from m.t"),
    query("select v from m.t"),
    query("select * from m.t"),
    query("select count(*) from m.t"),
    query("select k from m.t where k = 1"),
    query("select k from m.t where v = 'one'"),
    query("select k from m.t order by n"),
    query("select max(k) as k from m.t group by v"),
    query("select a.k from m.t a join m.u b on a.k = b.n"),
    query("select a.k from m.t a join m.t b using (k)"),
    query("select a.k from m.t a join m.t b using (v)"),
    query("select count(*) as k from m.u a natural join m.t b"),
    query("select count(*) as k from m.t a natural join m.u b"),
    query("select k from (select * from m.t) q"),
    query("select k from m.t where k in (select n from m.u)"),
    query("select t.k from m.t, lateral (select n from m.u where u.k = t.k) q"),
    query("select sum(k) filter (where v = 'one') as k from m.t"),
    outer("select (select max(k) from m.t) as k"),
    query("select 1 as k where exists (select from m.u)"),
    query("select k from m.t union select k from m.ref"),
    query("select row_number() over (order by n) as k from m.t"),
    query("select rank() over (partition by k order by k) as k from m.t"),
    query("with w as (select n as k from m.t) select k from w"),
    outer("values ((select v from m.t limit 1))"),
    query("select k from m.view"),
    query("select * from m.view"),
    query("select k from m.mat"),
    query("select * from m.mat"),
    query("select k from closed.t"),
    query("select k from m.guarded where 1 / (k - 2) >= 0"),
    query("select k from m.guarded where 1 / n >= 0"),
    query("select k from m.invoked where 1 / (k - 2) >= 0"),
    query("select a.k from m.guarded a join m.t b on 1 / (a.k - 2) >= 0"),
    outer("select k from m.guarded where 1 / (k - 2) >= 0 for update"),
    query("select last_value from m.s"),
    query("select 1 as k where 'ok'::m.mood > 'sad'"),
    query("select 1 as k from (values ('x'::text)) x(v) where v::m.mood = 'ok'"),
    query("select 1 as k where m.stretch(1, 2) @> 1.5::float8"),
    query("select 1 as k where '[1,2)'::m.stretch @> 1.5::float8"),
    query("select 1 as k where not isempty('[1,2)'::m.stretch::m.stretch_multirange)"),
    query("select 1 as k where 1::m.above > 0"),
    query("select k::text as k from m.moody where k = 'ok'"),
    query("select 1 as k where 'ok'::closed.mood > 'sad'"),
    outer("select nextval('m.s') as k"),
    query("select rolpassword from pg_authid where rolname = 'm_alone'"),
    outer("select currval('m.s')"),
    outer("select setval('m.s', 5)"),
    outer("select 'closed.t'::regclass"),
    outer("select k from m.t for update"),
    outer("select k from m.t for key share"),
    outer("select k from m.view for share"),
    outer("table m.u"),
    outer("select 1 from m.t limit (select max(n) from m.u)"),
    outer("select passwd from pg_shadow where usename = 'm_alone'"),
    // ---- INSERT ----
    write("insert into m.t values (100, 'x', 1)"),
    write("insert into m.t values (100)"),
    write("insert into m.t (k) values (100)"),
    write("insert into m.t default values"),
    write("insert into m.t (k) select 100"),
    write("insert into m.t (k) select k + 100 from m.u"),
    write("insert into m.t (k) values (1) on conflict do nothing"),
    write("insert into m.t (k) values (1) on conflict (k) do nothing"),
    write("insert into m.t (k) values (1) on conflict on constraint t_pkey do nothing"),
    write("insert into m.t (k) values (1) on conflict (k) do update set k = excluded.k"),
    write("insert into m.t (k) values (1) on conflict (k) do update set n = 1"),
    write("insert into m.t (k) values (1) on conflict (k) do update set k = 1 where t.n > 0"),
    write("insert into m.t (k) values (1) on conflict (k) do update set k = excluded.n"),
    write("insert into m.ser (v) values ('x')"),
    write("insert into m.ide (v) values ('x')"),
    write("insert into m.kid values (1)"),
    write("insert into m.view (k) values (100)"),
    write("insert into m.view values (100, 'x')"),
    write("insert into closed.t values (1)"),
    write("insert into m.guarded (k) values (9)"),
    write("insert into m.guarded (k) values (10)"),
    write("insert into m.guarded (k) values (2)"),
    write("insert into m.guarded (k) values (2) on conflict (k) do update set k = 11"),
    write("insert into m.guarded (k) values (1) on conflict (k) do update set k = 9"),
    write("insert into m.invoked values (9)"),
    returning("insert into m.guarded (k) values (10) returning k"),
    returning("insert into m.t (k) values (100) returning k"),
    returning("insert into m.t (k) values (100) returning v"),
    returning("insert into m.t (k) values (100) returning *"),
    // ---- UPDATE and DELETE ----
    write("update m.t set n = 1"),
    write("update m.t set k = 3 where k = 1"),
    write("update m.t set k = 3 where v = 'one'"),
    write("update m.t set k = 3"),
    write("update m.t set k = k + 10"),
    write("update m.t set k = n"),
    write("update m.t set k = default where false"),
    write("update m.t set k = u.k from m.u where t.k = u.n"),
    write("update m.t set k = (select max(n) from m.u) where k = 1"),
    write("update m.view set k = 3 where k = 1"),
    write("update m.view set v = 'x'"),
    write("update closed.t set k = 1"),
    write("update m.guarded set k = 9 where k = 1"),
    write("update m.guarded set k = k + 10 / (k - 2)"),
    write("update m.guarded set n = 1"),
    write("update m.invoked set k = 9 where k = 1"),
    write("delete from m.guarded where 1 / (k - 2) >= 0"),
    write("delete from m.guarded where 1 / (k - 3) < 1"),
    returning("update m.t set k = 3 where k = 1 returning k"),
    returning("update m.t set k = 3 where k = 1 returning n"),
    write("delete from m.t"),
    write("delete from m.t where k = 1"),
    write("delete from m.u using m.t where t.k = u.k"),
    write("delete from m.view where k = 1"),
    returning("delete from m.t where k = 1 returning k"),
    // ---- MERGE ----
    write("merge into m.t using m.u on t.k = u.k when matched then do nothing"),
    write("merge into m.t using (values (1)) s(k) on true when matched then do nothing"),
    write("merge into m.t using (values (1)) s(k) on t.k = s.k when matched then update set n = 1"),
    write("merge into m.t using (values (1)) s(k) on t.k = s.k when matched then delete"),
    write("merge into m.t using (values (100)) s(k) on t.k = s.k when not matched then insert values (100)"),
    write("merge into m.t using (values (100)) s(k) on t.k = s.k when not matched then insert (k) values (s.k)"),
    write("merge into m.t using (values (1)) s(k) on t.k = s.k when matched and t.v = 'x' then do nothing"),
    write("merge into m.guarded using (values (1)) s(k) on guarded.k = s.k when matched then update set n = 1"),
    write("merge into m.guarded using (values (2)) s(k) on guarded.k = s.k when matched then delete"),
    write("merge into m.guarded using (values (9)) s(k) on guarded.k = s.k when not matched then insert (k) values (9)"),
    write("merge into closed.t using (values (1)) s(k) on t.k = s.k when matched then delete"),
    // ---- Copying and locking ----
    utility("copy m.t to stdout"),
    utility("copy m.t (k) to stdout"),
    utility("copy m.t (k, v) to stdout"),
    utility("copy m.t from stdin"),
    utility("copy m.t (k) from stdin"),
    utility("copy closed.t to stdout"),
    utility("lock table m.t in access share mode"),
    utility("lock table m.t in row exclusive mode"),
    utility("lock table m.t in share mode"),
    utility("copy m.guarded to stdout"),
    utility("copy m.guarded (k) to stdout"),
    utility("copy m.guarded from stdin"),
    utility("copy m.guarded (k) from stdin"),
    utility("lock table m.t"),
    utility("lock table m.view"),
    utility("lock table m.invoked in access share mode"),
    utility("truncate m.u"),
    utility("truncate m.u, m.t"),
    utility("truncate m.ref cascade"),
    utility("truncate m.ser restart identity"),
    utility("checkpoint"),
    // ---- Making ----
    utility("create table m.made (k int)"),
    utility("create table made (k int)"),
    utility("create table room.made (k int references m.ref)"),
    utility("create table room.made (k int, foreign key (k) references m.t)"),
    utility("create table room.made (like m.t)"),
    utility("create table room.made (k timetz)"),
    utility("create table room.made as select null::timetz as k"),
    utility("create table m.made as select 1 as k"),
    utility("select k into room.made from m.u"),
    utility("create table room.made (k m.mood)"),
    utility("create table room.made (k m.mood[])"),
    utility("create table room.made as select null::m.mood as k"),
    utility("alter table m.u add column z m.mood"),
    utility("create table m.made of m.pair"),
    utility("create table room.made of m.pair"),
    utility("alter table m.kid of m.pair"),
    utility("create type m.made as enum ('a')"),
    open("create type room.made as enum ('a')"),
    utility("create cast (m.mood as int) with inout"),
    utility("create cast (closed.mood as m.mood) with inout"),
    utility("drop cast (text as m.mood)"),
    utility("comment on cast (text as m.mood) is 'x'"),
    utility("create collation m.french (provider = icu, locale = 'fr')"),
    utility("alter collation m.german refresh version"),
    utility("alter collation m.german rename to dutch"),
    utility("drop collation m.german"),
    utility("comment on collation m.german is 'x'"),
    utility("create statistics m.made on k, v from m.t"),
    utility("create statistics room.made on k, v from m.t"),
    utility("create statistics m.made on (k + 1) from m.t"),
    utility("alter statistics m.linked set statistics 7"),
    utility("alter statistics m.linked rename to bound"),
    utility("comment on statistics m.linked is 'x'"),
    utility("drop statistics m.linked"),
    utility("create operator m.### (function = int4pl, leftarg = int, rightarg = int)"),
    open("create operator room.### (function = int4pl, leftarg = int, rightarg = int)"),
    utility("create operator room.### (function = m.fo, leftarg = int, rightarg = int)"),
    utility("create operator room.### (function = m.g3, leftarg = m.mood, rightarg = m.mood)"),
    utility(
        "create operator room.### (function = int4lt, leftarg = int, rightarg = int, \
         commutator = operator(m.@@@))",
    ),
    utility("alter operator m.@@@ (int, int) set (restrict = eqsel)"),
    utility("alter operator m.@@@ (int, int) set schema room"),
    utility("alter operator m.@@@ (int, int) owner to m_alone"),
    utility("drop operator m.@@@ (int, int)"),
    utility("comment on operator m.@@@ (int, int) is 'x'"),
    query("select 1 operator(m.@@@) 2"),
    query("select 1 operator(m.@@@) any (array[2])"),
    utility("create type m.made as range (subtype = float8)"),
    open("create type room.made as range (subtype = float8)"),
    utility("create type room.made as range (subtype = float8, multirange_type_name = m.made)"),
    utility("create table room.made (k m.stretch)"),
    utility("create type m.made as (k int)"),
    open("create type room.made as (k int)"),
    utility("create type room.made as (k m.mood)"),
    utility("create table room.made (k m.pair)"),
    open("create table room.made (k m.t)"),
    utility("create domain m.made as int"),
    open("create domain room.made as int check (value > 0)"),
    utility("create domain room.made as m.above"),
    utility("create domain room.made as m.mood"),
    utility("create table room.made (k m.above)"),
    utility("create table room.made as select 1::m.above as k"),
    utility("create materialized view m.made as select 1 as k"),
    utility("create view m.made as select 1 as k"),
    utility("create or replace view m.view as select k, v from m.t"),
    utility("create sequence m.made"),
    utility("create index on m.t (v)"),
    utility("create index on lost.t (k)"),
    utility("create view room.made as select * from closed.t"),
    utility("create schema made"),
    utility("create schema made authorization m_owner"),
    utility("create policy made on m.t using (true)"),
    utility("create policy made on lost.t using (true)"),
    utility("create role m_made"),
    open("create extension if not exists plpgsql"),
    utility("alter extension plpgsql update"),
    alone("reindex schema m", "select 1"),
    alone(
        "create index concurrently made on m.t (v)",
        "drop index if exists m.made",
    ),
    alone("create database m_made", "drop database if exists m_made"),
    // ---- Changing ----
    utility("alter table m.t add column z int"),
    utility("alter table m.t alter column v set default 'x'"),
    utility("alter table m.u add foreign key (n) references m.ref not valid"),
    utility("alter table m.t alter column n type bigint"),
    utility("alter table m.t drop column n"),
    utility("alter table m.t add check (k > 0)"),
    utility("alter table m.t drop constraint t_pkey"),
    utility("alter table m.t rename to s2"),
    utility("alter table lost.t rename to s2"),
    utility("alter table lost.t rename column k to n"),
    utility("alter table m.u set schema public"),
    utility("alter materialized view m.mat rename to kept"),
    utility("alter sequence m.s rename to numbers"),
    utility("alter sequence m.s owned by m.u.k"),
    utility("alter view m.view owner to m_owner"),
    utility("alter sequence m.s owner to m_granted"),
    utility("alter table m.u owner to m_alone"),
    utility("alter schema strange rename to known"),
    utility("alter table m.t rename column v to w"),
    utility("alter index m.t_n rename to t_m"),
    utility("alter view m.view rename to shown"),
    utility("alter table m.u set schema room"),
    utility("alter table m.t owner to m_owner"),
    utility("alter table m.t owner to m_granted"),
    utility("alter sequence m.s restart"),
    utility("alter schema closed rename to shut"),
    utility("alter schema closed owner to m_granted"),
    utility("alter database matrix connection limit 50"),
    utility("alter database matrix set work_mem = '5MB'"),
    utility("alter role m_alone createdb"),
    utility("alter role m_alone set work_mem = '5MB'"),
    alone(
        "alter system set work_mem = '4MB'",
        "alter system reset work_mem",
    ),
    utility("alter type m.mood add value 'x'"),
    utility("alter type m.mood rename value 'sad' to 'x'"),
    utility("alter type m.mood rename to humour"),
    utility("alter type m.mood set schema room"),
    utility("alter type m.mood owner to m_granted"),
    utility("alter type closed.mood add value 'x'"),
    utility("alter type m.pair add attribute z int"),
    utility("alter type m.pair drop attribute k"),
    utility("alter type m.pair alter attribute k type text"),
    utility("alter type m.pair rename attribute k to z"),
    utility("alter type m.pair rename to humour"),
    utility("drop type m.pair"),
    utility("alter type m.stretch rename to humour"),
    utility("alter type m.stretch_multirange rename to humour"),
    utility("alter type m.stretch set schema room"),
    utility("alter type m.stretch owner to m_granted"),
    utility("drop type m.stretch"),
    utility("comment on type m.stretch is 'x'"),
    utility("comment on type m.mood is 'x'"),
    utility("alter domain m.above set default 5"),
    utility("alter domain m.above set not null"),
    utility("alter domain m.above add check (value > 1)"),
    utility("alter domain m.above drop constraint above_check"),
    utility("alter domain m.above validate constraint above_check"),
    utility("alter domain m.above rename to other"),
    utility("alter domain m.above rename constraint above_check to other"),
    utility("alter domain m.above set schema room"),
    utility("alter domain m.above owner to m_granted"),
    utility("alter domain closed.above drop not null"),
    utility("comment on domain m.above is 'x'"),
    utility("comment on constraint above_check on domain m.above is 'x'"),
    utility("grant usage on domain m.above to m_alone"),
    utility("grant usage on type m.mood to m_alone"),
    utility("refresh materialized view m.mat"),
    utility("reindex table m.t"),
    utility("reindex index m.t_n"),
    utility("cluster m.t using t_pkey"),
    utility("alter table m.t cluster on t_pkey"),
    utility("alter table m.t replica identity full"),
    utility("alter table m.t set without cluster"),
    utility("alter table m.t alter column v set storage external"),
    utility("alter table m.t alter column v set compression lz4"),
    utility("comment on table m.t is 'x'"),
    utility("comment on column m.t.k is 'x'"),
    utility("comment on schema m is 'x'"),
    utility("comment on index m.t_n is 'x'"),
    utility("comment on view m.view is 'x'"),
    utility("comment on sequence m.s is 'x'"),
    utility("comment on constraint t_pkey on m.t is 'x'"),
    utility("alter table m.t enable row level security"),
    utility("alter table m.guarded force row level security"),
    utility("alter policy shown on m.guarded using (true)"),
    utility("alter policy shown on m.guarded rename to seen"),
    utility("alter view m.view set (security_invoker)"),
    utility("comment on policy shown on m.guarded is 'x'"),
    utility("comment on role m_alone is 'x'"),
    utility("comment on database matrix is 'x'"),
    utility("grant select on m.t to m_alone"),
    utility("revoke select on m.t from m_granted"),
    utility("grant usage on schema closed to m_alone"),
    utility("grant select (k) on m.t to m_alone"),
    utility("grant usage on sequence m.s to m_alone"),
    utility("revoke usage on schema closed from m_granted"),
    open("grant select on m.t to m_alone granted by m_owner"),
    utility("grant select on m.t to m_alone with grant option"),
    utility("grant select on all tables in schema closed to m_alone"),
    utility("grant usage on all sequences in schema m to m_alone"),
    open("grant usage on language plpgsql to m_alone"),
    open("revoke usage on language plpgsql from public"),
    open("grant usage on language c to m_alone"),
    open("grant execute on function abs(integer) to m_alone"),
    open("revoke execute on routine abs(integer) from public"),
    open("grant execute on procedure m.absent() to m_alone"),
    open("grant usage on type text to m_alone"),
    open("grant usage on domain m.absent to m_alone"),
    utility("grant create on tablespace pg_default to m_alone"),
    utility("grant set, alter system on parameter log_min_messages to m_alone"),
    open("grant select on large object 1 to m_alone"),
    utility("grant select on large object 7001 to m_alone"),
    utility("alter large object 7001 owner to m_granted"),
    utility("comment on large object 7001 is 'x'"),
    query("select lo_get(7001)"),
    query("select lo_open(7001, 262144)"),
    query("select lo_open(7001, 131072)"),
    query("select lo_put(7001, 0, 'a')"),
    query("select lo_unlink(7001)"),
    open("grant usage on foreign server absent to m_alone"),
    open("grant usage on foreign data wrapper absent to m_alone"),
    utility("alter default privileges for role m_owner grant select on tables to m_alone"),
    utility("alter default privileges for role m_owner in schema m revoke all on sequences from m_alone"),
    open("alter default privileges revoke execute on functions from public"),
    open("alter default privileges grant usage on schemas to m_alone"),
    utility("revoke m_owner from m_member"),
    utility("grant m_alone to m_stranger"),
    utility("reassign owned by m_owner to m_granted"),
    // ---- Dropping ----
    utility("drop table m.u"),
    utility("drop table closed.t"),
    utility("drop table closed.other"),
    utility("drop table m.t cascade"),
    utility("drop table lost.t"),
    utility("drop policy shown on m.guarded"),
    utility("drop view m.view"),
    utility("drop materialized view m.mat"),
    utility("drop sequence m.s"),
    utility("drop index m.t_n"),
    utility("drop type m.mood"),
    utility("drop type m.mood cascade"),
    utility("drop type closed.mood"),
    utility("drop domain m.above"),
    utility("drop domain closed.above"),
    utility("drop schema closed cascade"),
    utility("drop owned by m_alone"),
    utility("drop role m_alone"),
    alone("drop database matrix", "select 1"),
    // ---- Functions and procedures ----
    utility("create function m.made() returns int language sql as 'select 1'"),
    utility("create procedure m.made() language plpgsql as 'begin end'"),
    utility("create or replace function m.f(k int) returns int language sql as 'select k + 1'"),
    query("select m.f(1)"),
    query("select * from m.fs()"),
    query("select m.fs()"),
    query("select k from m.t where m.f(k) = 1"),
    query("select m.fd()"),
    utility("call m.p()"),
    utility("alter function m.f(int) strict"),
    utility("alter function m.f(int) rename to g"),
    utility("alter function m.f(int) set schema room"),
    utility("alter function m.f(int) owner to m_alone"),
    utility("comment on function m.f(int) is 'said'"),
    utility("drop function m.fs()"),
    utility("drop procedure m.p()"),
    utility("create aggregate m.made (int) (sfunc = m.g2, stype = int)"),
    open("create aggregate room.made (int) (sfunc = int4pl, stype = int)"),
    utility("create aggregate room.made (int) (sfunc = m.g2, stype = int)"),
    utility("create aggregate room.made (m.mood) (sfunc = m.g3, stype = m.mood)"),
    outer("select m.a(k) as k from m.t"),
    outer("select m.a(k) over () as k from m.t"),
    utility("alter aggregate m.a (int) rename to b"),
    utility("alter aggregate m.a (int) set schema room"),
    utility("alter aggregate m.a (int) owner to m_alone"),
    utility("comment on aggregate m.a (int) is 'said'"),
    utility("drop aggregate m.a (int)"),
    // ---- Triggers ----
    utility("create trigger made before update on m.t for each row execute function m.tf()"),
    utility("create trigger made after insert on lost.t execute function m.td()"),
    utility("create or replace trigger watch after insert on m.trig execute function m.tf()"),
    utility("alter trigger watch on m.trig rename to seen"),
    utility("alter table m.trig disable trigger watch"),
    utility("alter table m.trig enable trigger user"),
    utility("comment on trigger watch on m.trig is 'x'"),
    write("insert into m.trig values (2, 'two')"),
    write("update m.trig set v = 'other'"),
    utility("drop trigger watch on m.trig"),
    // ---- Rules ----
    utility("create rule made as on insert to m.t do nothing"),
    utility("create rule made as on delete to lost.t do instead nothing"),
    utility("create rule made as on update to m.view do instead delete from m.u where k = new.k"),
    utility("create or replace rule marked as on update to m.ruled do nothing"),
    utility("alter rule marked on m.ruled rename to seen"),
    utility("alter table m.ruled disable rule marked"),
    utility("comment on rule marked on m.ruled is 'x'"),
    write("update m.ruled set v = 'other'"),
    write("delete from m.ruled where k = 1"),
    utility("drop rule marked on m.ruled"),
    // ---- What everybody may do ----
    open("set work_mem = '4MB'"),
    open("show work_mem"),
    open("discard plans"),
    open("set constraints all deferred"),
    open("analyze m.t"),
    open("grant create on database matrix to m_alone"),
    Statement {
        open: true,
        ..alone("vacuum m.t", "select 1")
    },
    // ---- What Quorate does not have ----
    utility("merge into m.t using m.u on t.k = u.k when matched then delete"),
    utility("load 'plpgsql'"),
    open("listen heard"),
    open("unlisten heard"),
    open("notify heard"),
];
