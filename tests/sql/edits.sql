-- names: edits
-- Functions that make arrays of arrays, bytes of bytes, and the bins of moments.
select array_replace(array[1, 2, 5, 4], 5, 3), array_replace(array[1, null, 3], null, 2), array_replace(array['a', 'b'], 'b', null);
select array_replace('{{1,2},{2,1}}'::int[], 2, 9), array_replace(null::int[], 1, 2), array_replace('{1,2}'::int[], 1::bigint, 7::bigint);
select array_positions(array['A', 'A', 'B', 'A'], 'A'), array_positions('{}'::int[], 1), array_positions(array[1, null, null], null), array_positions('[3:5]={1,2,1}'::int[], 1);
select array_positions(null::int[], 1);
select array_positions('{{1,2}}'::int[], 1);
select trim_array(array[1, 2, 3, 4, 5, 6], 2), trim_array(array[1], 1), trim_array('[3:5]={1,2,3}'::int[], 1), trim_array('{{1,2},{3,4}}'::int[], 1), trim_array('{}'::int[], 0);
select trim_array(array[1, 2], 3);
select trim_array(array[1, 2], -1);
select trim_array('{}'::int[], 1);
select array_fill(7, array[3]), array_fill('x'::text, array[2, 2], array[0, 5]), array_fill(null::int, array[2]), array_fill(1, '{}'::int[]), array_fill(1, array[0, 3]);
select array_fill(1, null);
select array_fill(1, array[1, null]);
select array_fill(1, array[[1, 2]]);
select array_fill(1, array[1, 2], array[1]);
select array_fill(1, array[1, 1, 1, 1, 1, 1, 1]);
select get_byte('\x1234567890'::bytea, 4), get_bit('\x1234567890'::bytea, 30), set_byte('\x1234567890'::bytea, 4, 64), set_bit('\x1234567890'::bytea, 30, 0), set_byte('\x00', 0, -1);
select get_byte('\x12', 1);
select get_byte(''::bytea, 0);
select set_byte('\x12', -1, 0);
select get_bit('\x12'::bytea, 8);
select set_bit('\x12'::bytea, 0, 2);
select date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01'), date_bin('1 day 2 hours', timestamp '1999-12-31 23:59', timestamp '2001-01-01 00:02:30');
set time zone 'Europe/Berlin';
select date_bin('1 day', timestamptz '2020-02-11 15:44:17', timestamptz '2001-01-01'), date_bin('1 hour', 'infinity'::timestamptz, now());
select date_bin('1 month', timestamp '2020-02-11', timestamp '2001-01-01');
select date_bin('0 days', timestamp '2020-02-11', timestamp '2001-01-01');
select date_bin('-1 days', timestamp '2020-02-11', timestamp '2001-01-01');
select date_bin('1 day', timestamp '2020-02-11', timestamp '-infinity');
select date_bin('100000 days', timestamp '4714-11-24 00:00 BC', timestamp '2001-01-01');
-- The vectors of the catalog are arrays.
select unnest('1 2'::int2vector), unnest('3 4'::oidvector);

-- Lower bounds are looked at in empty arrays too.
select array_fill(1, array[0, 2147483647]);
select array_fill(1, array[2147483647, 0], array[2147483647, 1]);
select array_fill(1, array[0], array[2147483647]);
select array_fill(1, array[0, 2147483646], array[1, 1]);

-- Elements of which nobody knows whether they are equal.
select array['1'::json] = array['1'::json];
select '{}'::json[] = '{}'::json[];
select '{}'::json[] = array['1'::json];
select '{}'::json[] <> '{}'::json[];
select array[1::text::json] <> array['1'::json,'2'];
select '{}'::json[] @> '{}'::json[];
select '{}'::json[] && '{}'::json[];
select array['1'::json] <@ '{}'::json[];
select array['1'::json] && '{}'::json[];
select array_position('{}'::json[], '1'::json);
select array_position(array['1'::json], null);
select array_positions('{}'::json[], '1'::json);
select array_remove('{}'::json[], '1'::json);
select array_replace('{}'::json[], '1'::json, '2');
select array_position(null::json[], '1'::json);
select array_positions(null::json[], '1'::json);
select array_remove(null::json[], '1'::json);
select array_remove('{}'::xid[], '1'), array_remove('{1}'::xid[], '1');
select min('{}'::cid[]);
select min(x) from (values ('{}'::cid[])) v(x);
select min(x) from (values ('{}'::cid[]),('{}'::cid[])) v(x);
select min(x) from (values ('{}'::cid[]),(null)) v(x);
select max(x) over (), x from (values ('{}'::cid[]),(null)) v(x);
select array['1'::json] is distinct from array['1'::json];
select array['1'::json] in (array['1'::json], array['2'::json]);
select array['1'::json] = any (select array['1'::json]);
select array['1'::json] <> all (array[array['1'::json]]);
select 1 where array['1'::json] = array['1'::json];
select nullif(array['1'::json], array['1'::json]);
select case array['1'::json] when array['1'::json] then 1 end;
select distinct array['1'::json];
select array['1'::json] union select array['1'::json];
select row(array['1'::json]) = row(array['1'::json]);
select row('1'::json) = row('1'::json);
select (array['1'::json], 1) < (array['1'::json], 1);
select * from (select array['1'::json] a) a join (select array['1'::json] a) b using (a);
select * from (select array['1'::json] a) a join (select array['1'::json] a) b on a.a = b.a;
select array[array['1'::json]] = array[array['1'::json]];
select array['1'::xid] = array['1'::xid], array['1'::xid] < array['1'::xid];
select array_position(array['1'::json, null], null), array_positions(array['1'::json, null], null);
select array_positions(array['1'::json], null);
select array_remove(array['1'::json, null], null);
select array_remove(array['1'::json], null);
select array_remove(array['1'::json], '1');
select array_remove(array[[1, 2], [3, 4]], 5), 1;
select array_remove('{{1}}'::int[], null);
select array_replace(array['1'::json, null], null, '2');

-- Where OVERLAY ends, and the same over bytes.
select overlay('' placing '' from 2147483647 for 1);
select overlay('abc' placing 'x' from 2147483647);
select overlay('abc' placing 'x' from 1 for -1), overlay('abc' placing 'x' from 2 for 2147483645), overlay('abc' placing 'x' from 2 for -2147483648);
select overlay('abc' placing 'x' from 2 for 2147483646);
select overlay('abc' placing 'x' from -1 for 1);
select overlay('Th\000omas'::bytea placing 'Th\001omas'::bytea from 2 for 3), overlay('\x010203'::bytea placing '\xffff' from 2), overlay('\x010203'::bytea placing '\xffff' from 1 for 0), overlay('\x010203'::bytea placing '\xff' from 3 for -5), overlay('\x0102'::bytea placing '\xff' from 9);
select overlay('\x00'::bytea placing '\x01' from 2147483647 for 1);
select overlay('\x00'::bytea placing '\x01' from 0 for 1);

-- Which of equal values that are written differently is the larger.
select array_larger(array['a'::bpchar], array['a '::bpchar]), array_smaller(array['a'::bpchar], array['a '::bpchar]), array_larger(array[1.0], array[1.00]);
select bpchar_larger('a', 'a '), bpchar_smaller('a', 'a '), numeric_larger(1.0, 1.00), numeric_smaller(1.0, 1.00), interval_larger('1 month', '30 days'), interval_smaller('1 month', '30 days'), float8larger('-0', '0'), float8smaller('-0', '0'), float4larger('0', '-0'), float4smaller('0', '-0');
select max(x), min(x) from (values ('a'::bpchar), ('a '), ('a  ')) v(x);
select max(x), min(x) from (values (1.0), (1.00), (1.000)) v(x);
select max(x), min(x) from (values ('1 month'::interval), ('30 days')) v(x);
select max(x), min(x) from (values ('-0'::float8), ('0')) v(x);
select greatest('a'::bpchar, 'a '), least('a'::bpchar, 'a '), greatest(1.0, 1.00), least(1.0, 1.00), greatest('-0'::float8, '0'), greatest('1 month'::interval, '30 days');
