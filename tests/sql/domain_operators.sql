-- names: codom coint coeq coless cov
-- Operators over domains beside the built-in ones.
create domain codom as text;
create domain coint as int;
create function cov(text) returns codom language plpgsql as 'begin return $1::codom; end';
create function coeq(codom, codom) returns boolean language sql as 'select case $2::text when $1::text then true else false end';
create operator = (procedure = coeq, leftarg = codom, rightarg = codom);
create function coless(coint, coint) returns boolean language sql as 'select false';
create operator < (procedure = coless, leftarg = coint, rightarg = coint);
select case cov('bar') when 'foo'::codom then 'is foo' else 'is not foo' end;
select case cov('foo') when 'foo'::codom then 'is foo' else 'is not foo' end;
select case 'foo'::text when 'foo'::codom then 'is foo' else 'is not foo' end;
select 'a'::text = 'a'::codom, 'a'::codom = 'a'::text, 'a'::codom = 'a'::codom, 'a'::codom = 'a', 'a'::varchar = 'a'::codom;
select 1 < 2::coint, 1::coint < 2, 1::coint < 2::coint, 1::coint < '2', 1::int8 < 2::coint, 1.5 < 2::coint;
drop operator = (codom, codom);
drop operator < (coint, coint);
drop function coeq, coless, cov;
drop domain codom, coint;
