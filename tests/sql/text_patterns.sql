-- names: zwp zwa zwb
-- Operators that compare texts by their bytes, and what is sorted by them.
select 'a' ~<~ 'B', 'a'::char(3) ~<=~ 'a  ', 'b'::varchar ~>~ 'a', 'x' ~>=~ 'y', 'a' ~<~ null;
select text_pattern_lt('Z', 'a'), text_pattern_ge('a', 'a'), bpchar_pattern_gt('b ', 'b'), bpchar_pattern_le('b ', 'b');
select 1 ~<~ 2;
create table zwp (zwa text, zwb char(4));
create index on zwp (zwa text_pattern_ops);
create index on zwp (zwb bpchar_pattern_ops);
insert into zwp select chr(64 + g), chr(64 + g) from generate_series(1, 40) g;
insert into zwp values (null, null);
select zwa from zwp where zwa ~>=~ 'C' and zwa ~<~ 'E' order by zwa;
select zwb from zwp where zwb ~>=~ 'C' and zwb ~<~ 'E' order by zwb using ~>~;
select zwa from zwp order by zwa using ~>~ limit 2;
select zwa from zwp order by zwa using pg_catalog.~<~ nulls first limit 2;
select array_agg(v order by v using ~>~), rank('b') within group (order by v using ~<~) from (values ('a'), ('c')) t(v);
select v, row_number() over (order by v using ~>~) from (values ('a'), ('c')) t(v) order by 1 using ~<~;
select zwa from zwp order by zwa using ~<=~;
select 'a' as v union all select 'b' order by v using ~>~;
select oprname, oprleft::regtype, oprcode, obj_description(oid, 'pg_operator') from pg_operator
  where oprname in ('~<~', '~<=~', '~>=~', '~>~') and oprleft = 'text'::regtype order by 1;

-- Time zones.
select * from pg_timezone_abbrevs where abbrev in ('CEST', 'EST', 'MSK', 'YEKT', 'Z') order by abbrev;
select count(*) from pg_timezone_abbrevs;
select name, utc_offset, is_dst from pg_timezone_names where name in ('UTC', 'Asia/Kolkata', 'Asia/Tokyo') order by name;
