-- names: shop
create schema shop;
create table shop.orders (
  id int primary key,
  customer varchar(20) not null default 'nobody',
  amount numeric(10,2) default 0 check (amount >= 0),
  made timestamptz default now(),
  note text check (note like 'a%' or length(note) > 3),
  kind int constraint kinds check (case when kind > 3 then note is not null else true end),
  unique (customer, made));
create index orders_note on shop.orders (note desc, amount);
create table shop.lines (
  a int references shop.orders on delete cascade,
  b "char", c char(5), d bigint default 5, e timestamp(3), f int[]);
create view shop.short as select id, customer from shop.orders where amount > 1;
create sequence shop.numbers increment 5 maxvalue 100 cycle;
comment on table shop.orders is 'what was ordered';
comment on column shop.orders.id is 'a number';
comment on constraint kinds on shop.orders is 'which kinds';
comment on schema shop is 'a schema';
comment on index shop.orders_note is 'by note';
comment on sequence shop.nothing is 'x';
comment on column shop.orders.nothing is 'x';
\d shop.orders
\d+ shop.orders
\d shop.lines
\d+ shop.lines
\d shop.orders_note
\d+ shop.orders_pkey
\d shop.numbers
\dt shop.*
\di shop.*
\ds shop.*
\dv shop.*
\dm shop.*
\dn+ shop
\dp shop.*
\dd shop.kinds
\dd kinds
\df abs
\dT
\do
\dc
\dO
\dx plpgsql
\db
\dL
\dy
\dRp
\dRs
\dX
\dew
\des
\deu
\det
\ddp
\dP
\dF nothing
\dt nothing
\d nothing
\d pg_namespace
\d pg_class
\dt pg_catalog.pg_attr*
select conname, contype, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true)
from pg_constraint where connamespace = 'shop'::regnamespace order by 1;
select indexname, indexdef from pg_indexes where schemaname = 'shop' order by 1;
select tablename, tableowner, hasindexes from pg_tables where schemaname = 'shop' order by 1;
select attname, format_type(atttypid, atttypmod), attnotnull, atthasdef
from pg_attribute where attrelid = 'shop.orders'::regclass and attnum > 0 order by attnum;
select column_name, ordinal_position, column_default, is_nullable, data_type,
  character_maximum_length, numeric_precision, numeric_scale, datetime_precision, udt_name
from information_schema.columns where table_schema = 'shop' and table_name in ('orders', 'lines')
order by table_name, ordinal_position;
select table_name, table_type, is_typed from information_schema.tables
where table_schema = 'shop' order by 1;
select constraint_name, table_name, constraint_type, is_deferrable
from information_schema.table_constraints
where table_schema = 'shop' and constraint_name !~ '_not_null$' order by 1;
select constraint_name, column_name, ordinal_position, position_in_unique_constraint
from information_schema.key_column_usage where table_schema = 'shop' order by 1, 3;
select constraint_name, unique_constraint_name, match_option, update_rule, delete_rule
from information_schema.referential_constraints where constraint_schema = 'shop';
select sequence_name, data_type, start_value, minimum_value, maximum_value, increment, cycle_option
from information_schema.sequences where sequence_schema = 'shop';
select schema_name, schema_owner from information_schema.schemata where schema_name = 'shop';
select to_regclass('shop.orders'), to_regclass('shop.none'), to_regtype('integer'),
  to_regnamespace('shop'), 'abs(integer)'::regprocedure, 'shop.orders_note'::regclass;
select obj_description('shop.orders'::regclass, 'pg_class'), col_description('shop.orders'::regclass, 1);
select pg_get_userbyid(10), pg_encoding_to_char(6), pg_table_is_visible('shop.orders'::regclass);
drop schema shop cascade;
select count(*) from pg_description where classoid = 'pg_class'::regclass and objoid >= 16384;
