-- names: letters scroll ink cargo heir spare drawn
-- How the values of a column are kept and compressed.
create table letters (scroll int, ink text, cargo numeric, spare text[]);
alter table letters alter column scroll set storage external;
alter table letters alter column scroll set storage plain;
alter table letters alter column ink set storage whatever;
alter table letters alter column ink set storage "default";
alter table letters alter column ink set storage "External";
alter table letters alter column nothing set storage plain;
alter table letters alter column ctid set storage plain;
alter table letters alter ctid set compression lz4;
alter table letters alter scroll set compression lz4;
alter table letters alter scroll set compression default;
alter table letters alter ink set compression zlib;
alter table letters alter ink set compression LZ4;
alter table letters alter ink set compression "LZ4";
alter table letters alter cargo set compression pglz;
\d+ letters
-- What is long comes back as it was, whichever way it is kept.
insert into letters (scroll, ink) values (1, repeat('plume', 600)), (2, repeat('plume', 1000)), (3, repeat('plume', 40000));
select scroll, length(ink), md5(ink) from letters order by 1;
alter table letters alter ink set storage plain;
insert into letters (scroll, ink) values (4, repeat('plume', 600)), (5, repeat('plume', 1000));
update letters set cargo = 1;
alter table letters alter ink set storage main;
update letters set ink = ink || 's' where scroll < 4;
select scroll, length(ink), md5(ink) from letters order by 1;
alter table letters alter ink set storage extended;
update letters set ink = ink || 's';
select scroll, length(ink), md5(ink) from letters order by 1;
delete from letters;
-- Another type begins anew; indexes follow their columns.
alter table letters alter ink set storage external, alter ink set compression lz4;
create index letters_ink on letters (ink, cargo, (ink || 'x'));
select attname, attstorage, attcompression from pg_attribute where attrelid = 'letters_ink'::regclass order by attnum;
alter table letters alter ink set storage main, alter ink set compression pglz;
select attname, attstorage, attcompression from pg_attribute where attrelid = 'letters_ink'::regclass order by attnum;
drop index letters_ink;
alter table letters alter ink type varchar(10), alter cargo type bigint;
\d+ letters
-- Heirs follow storage, and not compression.
create table heir () inherits (letters);
alter table letters alter spare set storage main;
alter table only letters alter ink set storage plain;
alter table letters alter ink set compression pglz;
select attrelid::regclass, attname, attstorage, attcompression from pg_attribute
  where attrelid in ('letters'::regclass, 'heir'::regclass) and attnum > 0 order by 1, attnum;
create table drawn (ink varchar(10) compression lz4);
create table heir2 () inherits (letters, drawn);
alter table letters alter ink set storage extended;
create table heir2 () inherits (letters, drawn);
create table heir2 (ink varchar(10) compression lz4) inherits (letters);
create table heir2 (ink varchar(10) compression pglz) inherits (letters);
create table heir3 (spare text[] compression lz4) inherits (letters);
select attrelid::regclass, attname, attstorage, attcompression from pg_attribute
  where attrelid in ('heir2'::regclass, 'heir3'::regclass) and attnum > 0 order by 1, attnum;
drop table heir, heir2, heir3, drawn;
create table drawn (scroll int compression lz4);
create table drawn (scroll text compression nope);
alter table letters add column late text compression lz4, add column later text compression nope;
alter table letters add column late text compression lz4;
-- LIKE copies what it is asked for.
create table drawn (like letters);
create table drawn2 (like letters including storage);
create table drawn3 (like letters including compression);
create table drawn4 (like letters including all excluding storage);
select attrelid::regclass, attname, attstorage, attcompression from pg_attribute
  where attrelid in ('drawn'::regclass, 'drawn2'::regclass, 'drawn3'::regclass, 'drawn4'::regclass) and attnum > 0 order by 1, attnum;
drop table drawn, drawn2, drawn3, drawn4;
-- and what is said of it.
create table drawn (scroll int primary key, ink text, constraint wet check (scroll > 0));
create index drawn_ink on drawn (ink);
comment on table drawn is 'a table';
comment on column drawn.scroll is 'a column';
comment on column drawn.ink is 'another';
comment on constraint wet on drawn is 'a check';
comment on constraint drawn_pkey on drawn is 'a key';
comment on index drawn_ink is 'an index';
create table drawn2 (like drawn);
create table drawn3 (first int, like drawn including comments);
create table drawn4 (like drawn including all);
select objoid::regclass, objsubid, description from pg_description where classoid = 'pg_class'::regclass
  and (objoid in ('drawn2'::regclass, 'drawn3'::regclass, 'drawn4'::regclass) or objoid in (select indexrelid from pg_index where indrelid = 'drawn4'::regclass)) order by 1, 2;
select conname, conrelid::regclass, description from pg_description join pg_constraint c on c.oid = objoid where classoid = 'pg_constraint'::regclass and conrelid in ('drawn3'::regclass, 'drawn4'::regclass) order by 1, 2;
drop table drawn, drawn2, drawn3, drawn4;
create table drawn as select * from letters;
select attname, attstorage, attcompression from pg_attribute where attrelid = 'drawn'::regclass and attnum > 0 order by attnum;
drop table drawn;
-- What is no table.
create view drawn as select * from letters;
alter table drawn alter ink set storage plain;
alter view drawn alter ink set storage plain;
alter table drawn alter ink set compression lz4;
drop view drawn;
create materialized view drawn as select * from letters;
alter materialized view drawn alter ink set storage plain;
alter materialized view drawn alter ink set compression lz4;
select attname, attstorage, attcompression from pg_attribute where attrelid = 'drawn'::regclass and attnum > 0 order by attnum;
drop materialized view drawn;
create sequence drawn;
alter table drawn alter last_value set storage plain;
drop sequence drawn;
alter table pg_class alter relname set storage plain;
-- Domains.
create domain quill as text;
create domain quill2 as int;
create table drawn (scroll quill compression lz4, ink quill2);
alter table drawn alter scroll set storage external;
alter table drawn alter ink set storage main;
alter table drawn alter ink set compression lz4;
\d+ drawn
drop table drawn;
drop domain quill, quill2;
-- Partitions.
create table drawn (scroll int, ink text) partition by range (scroll);
create table drawn1 partition of drawn for values from (1) to (10);
alter table drawn alter ink set storage external;
alter table drawn alter ink set compression lz4;
alter table only drawn alter ink set storage main;
create table drawn2 partition of drawn for values from (10) to (20);
select attrelid::regclass, attname, attstorage, attcompression from pg_attribute
  where attrelid in ('drawn'::regclass, 'drawn1'::regclass, 'drawn2'::regclass) and attnum > 0 order by 1, attnum;
drop table drawn;
-- Whose table it is.
create role scribe;
grant all on letters to scribe;
set role scribe;
alter table letters alter ink set storage external;
alter table letters alter ink set compression lz4;
reset role;
begin;
alter table letters alter ink set storage external;
rollback;
select attstorage from pg_attribute where attrelid = 'letters'::regclass and attname = 'ink';
drop table letters;
drop role scribe;
