-- names: expects tally parcel crowd pairs
-- How many rows are expected where ANALYZE has looked at several columns together, and at expressions.
create function expects(query text) returns int language plpgsql as $$
declare line text;
begin
  for line in execute 'explain ' || query loop
    return substring(line from 'rows=(\d+)')::int;
  end loop;
end $$;
-- Number of combinations.
create table tally (filler1 text, filler2 numeric, a int, b int, filler3 date, c int, d int);
insert into tally (a, b, c, filler1) select mod(i, 13), mod(i, 17), mod(i, 19), 'x' from generate_series(1, 1000) s(i);
analyze tally;
select expects('select count(*) from tally group by a, b'), expects('select count(*) from tally group by b, c'),
  expects('select count(*) from tally group by a, b, c'), expects('select count(*) from tally group by b, c, d');
create statistics tally_few (ndistinct) on a, b, c, d from tally;
analyze tally;
select expects('select count(*) from tally group by a, b'), expects('select count(*) from tally group by b, c'),
  expects('select count(*) from tally group by a, b, c'), expects('select count(*) from tally group by b, c, d'),
  expects('select count(*) from tally group by a'), expects('select distinct a, b from tally');
truncate tally;
insert into tally (a, b, c, filler1) select mod(i, 50), mod(i, 51), mod(i, 32), 'x' from generate_series(1, 5000) s(i);
analyze tally;
select expects('select count(*) from tally group by a, b'), expects('select count(*) from tally group by a, b, c'),
  expects('select count(*) from tally group by a, b, c, d'), expects('select count(*) from tally group by a, d'),
  expects('select count(*) from tally where c = 3 group by a, b');
drop statistics tally_few;
select expects('select count(*) from tally group by a, b'), expects('select count(*) from tally group by a, b, c');
create statistics tally_one (ndistinct) on a, b from tally;
create statistics tally_two (ndistinct) on c, d from tally;
analyze tally;
select expects('select count(*) from tally group by a, b, c, d'), expects('select count(*) from tally group by a, c'),
  expects('select count(*) from tally group by b, c, d');
drop table tally;
-- Dependencies.
create table parcel (filler1 text, filler2 numeric, a int, b text, filler3 date, c int, d text);
insert into parcel (a, b, c, filler1) select mod(i, 100), mod(i, 50), mod(i, 25), i from generate_series(1, 5000) s(i);
analyze parcel;
select expects('select * from parcel where a = 1 and b = ''1'''), expects('select * from parcel where a = 1 and b = ''1'' and c = 1');
create statistics parcel_all (dependencies) on a, b, c from parcel;
analyze parcel;
select expects('select * from parcel where a = 1 and b = ''1'''), expects('select * from parcel where a = 1 and b = ''1'' and c = 1'),
  expects('select * from parcel where ''1'' = b and 1 = a'), expects('select * from parcel where a = 1 and c = 1'),
  expects('select * from parcel where a = 1 and b = ''2'''), expects('select * from parcel where a = 1 and b = ''1'' and c > 5');
select expects('select * from parcel where a in (1, 51) and b = ''1'''), expects('select * from parcel where a in (1, 51) and b in (''1'', ''2'')'),
  expects('select * from parcel where a in (1, 2, 51, 52) and b in (''1'', ''2'')'), expects('select * from parcel where a in (1, 26, 51, 76) and b in (''1'', ''26'') and c = 1'),
  expects('select * from parcel where (a = 1 or a = 51) and b = ''1'''), expects('select * from parcel where (a = 1 or a = 51) and (b = ''1'' or b = ''2'')'),
  expects('select * from parcel where a = any (array[1, 51]) and b = ''1'''), expects('select * from parcel where a < any (array[1, 51]) and b > ''1'''),
  expects('select * from parcel where a = all (array[1, 51]) and b = ''1''');
-- Those of the kind that is wanted alone are looked at.
alter table parcel alter column c type numeric;
select expects('select * from parcel where a = 1 and b = ''1'' and c = 1');
analyze parcel;
select expects('select * from parcel where a = 1 and b = ''1'' and c = 1');
drop statistics parcel_all;
truncate parcel;
insert into parcel (a, b, c, filler1) select i, i, i, i from generate_series(1, 5000) s(i);
create statistics parcel_expr (dependencies) on (a * 2), upper(b), (c + 1) from parcel;
analyze parcel;
select expects('select * from parcel where (a * 2) = 2 and upper(b) = ''1'''), expects('select * from parcel where (a * 2) = 2 and upper(b) = ''1'' and (c + 1) = 2'),
  expects('select * from parcel where (a * 2) in (2, 102) and upper(b) = ''1''');
drop table parcel;
-- Common combinations.
create table crowd (a int, b text, c int, d text, flag bool);
insert into crowd select mod(i, 100), mod(i, 50), case when mod(i, 7) = 0 then null else mod(i, 25) end, 'd' || mod(i, 4), mod(i, 4) = 1 from generate_series(1, 5000) s(i);
analyze crowd;
select expects('select * from crowd where a = 1 and b = ''1'''), expects('select * from crowd where a < 5 and b < ''1'' and c < 5');
create statistics crowd_all (mcv) on a, b, c from crowd;
create statistics crowd_flag (mcv) on d, flag from crowd;
analyze crowd;
select expects('select * from crowd where a = 1 and b = ''1'''), expects('select * from crowd where ''1'' = b and a = 1'),
  expects('select * from crowd where a < 1 and b < ''1'''), expects('select * from crowd where a < 5 and b < ''1'' and c < 5'),
  expects('select * from crowd where a <= 4 and b <= ''0'' and c <= 4'), expects('select * from crowd where 5 > a and b < ''1'' and c is null');
select expects('select * from crowd where a = 1 or b = ''1'''), expects('select * from crowd where a = 1 or b = ''1'' or c = 1'),
  expects('select * from crowd where a = 1 or b = ''1'' or c = 1 or d is not null'),
  expects('select * from crowd where (a = 1 or b = ''1'') and c = 1'), expects('select * from crowd where not (a = 1 or b = ''1'')'),
  expects('select * from crowd where (a = 1 and b = ''1'') or (a = 2 and b = ''2'')'),
  expects('select * from crowd where a = 1 and not (b = ''1'')');
select expects('select * from crowd where a in (1, 2, 51, 52) and b in (''1'', ''2'')'), expects('select * from crowd where a = any (array[1, 2, 51, 52, null]) and b = any (array[''1'', ''2'', null])'),
  expects('select * from crowd where a <= any (array[1, 2, 3]) and b in (''1'', ''2'', ''3'')'), expects('select * from crowd where a < all (array[4, 5]) and c > any (array[1, 2, 3])'),
  expects('select * from crowd where a not in (1, 2) and b = ''3''');
select expects('select * from crowd where d = ''d1'' and flag'), expects('select * from crowd where d = ''d1'' and not flag'),
  expects('select * from crowd where d <> ''d1'' and flag'), expects('select * from crowd where d = ''d1'' or flag'),
  expects('select * from crowd where a = 1 and b = ''1'' and d = ''d1'' and flag');
drop statistics crowd_all, crowd_flag;
create statistics crowd_expr (mcv) on (mod(a, 20)), upper(b), c from crowd;
analyze crowd;
select expects('select * from crowd where mod(a, 20) = 1'), expects('select * from crowd where upper(b) = ''1'''),
  expects('select * from crowd where mod(a, 20) = 1 and upper(b) = ''1'''), expects('select * from crowd where mod(a, 20) = 1 and c = 1'),
  expects('select * from crowd where mod(a, 20) < 2'), expects('select * from crowd where mod(a, 20) in (1, 2) and upper(b) < ''2'''),
  expects('select * from crowd where mod(a, 20) = 1 or upper(b) = ''1''');
drop table crowd;
-- Of equally good ones the smaller; both kinds at once.
create table pairs (a int, b int, c int, d int);
insert into pairs select g % 10, g % 10, g % 20, g % 20 from generate_series(1, 2000) g;
create statistics pairs_ab (mcv) on a, b from pairs;
create statistics pairs_cd (dependencies) on c, d from pairs;
create statistics pairs_abc (mcv) on a, b, c from pairs;
analyze pairs;
select expects('select * from pairs where a = 1 and b = 1'), expects('select * from pairs where a = 1 and b = 1 and c = 1 and d = 1'),
  expects('select * from pairs where a = 1 and b = 2'), expects('select * from pairs where c = 1 and d = 1'),
  expects('select * from pairs where c = 1 and d = 2 and a = 1');
drop table pairs;
drop function expects;
