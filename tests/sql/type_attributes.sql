-- names: parcels
-- What goes from a composite type with the type of an attribute.
create type mood as enum ('sad', 'ok');
create type span as range (subtype = float8);
create type pair as (name text, felt mood, reach span, moods mood[]);
create type outer_pair as (one pair, two mood);
create domain gloom as mood;
create type gloomy as (much gloom, n int);
drop type mood;
drop type span;
select pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, refobjsubid), deptype from pg_depend where refclassid = 'pg_type'::regclass and refobjid in ('mood'::regtype, 'span'::regtype, 'pair'::regtype) and classid = 'pg_class'::regclass order by 1, 2;
begin;
drop type span cascade;
\d pair
select row('x', 'ok', '{sad}')::pair, (row('x', 'ok', '{sad}')::pair).felt;
rollback;
drop type mood cascade;
\d pair
\d outer_pair
\d gloomy
select row('x', span(1, 2))::pair, row(row('x', null))::outer_pair, row(5)::gloomy;
create table parcels (id int primary key, p pair);
insert into parcels values (1, row('a', span(1, 2)));
create type other as (a int);
alter type other add attribute b pair;
drop type pair;
drop type pair cascade;
\d other
select * from parcels;
drop table parcels;
drop type span cascade;
drop type other, outer_pair, gloomy cascade;
