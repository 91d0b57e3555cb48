-- names: exn
-- Roots whose last digit is right, and sums that may leave the bounds of a value on their way.
select sqrt(1.000000000000003::numeric), sqrt(1.000000000000004::numeric), sqrt(1.000000000000005::numeric);
select sqrt(8015491789940783531003294973900306::numeric), sqrt(8015491789940783531003294973900307::numeric);
select sqrt(96627521408608.56340355805::numeric), sqrt(96627521408608.56340355806::numeric);
select sqrt(515549506212297735.073688290367::numeric), sqrt(515549506212297735.073688290368::numeric);
select sqrt(2.25::numeric), sqrt(0::numeric), sqrt(1e-30::numeric), sqrt(0.0625::numeric), sqrt(99999999999999999999::numeric);
create table exn (a numeric);
insert into exn values (0), (3e-500), (-3e-500), (4e-500 - 1e-16383), (-4e-500 + 1e-16383);
select trim_scale(variance(a) * 1e1000) from exn;
select trim_scale(var_pop(a) * 1e1000) from exn;
delete from exn;
insert into exn select 9e65540 + x from generate_series(1, 3) x;
select variance(a), stddev(a), var_pop(a) from exn;
delete from exn;
insert into exn values (9e131071), (9e131071), (-9e131071), (-9e131071), (3);
select sum(a), avg(a) from exn;
select sum(a) from exn where a > 3;
