-- names: words word short fixed
create table words (word text, short varchar(5), fixed char(4));
insert into words values ('hello', 'abc', 'ab'), ('', '', ''), ('naïve café', 'naïve', 'é'), (null, null, null), ('it''s', 'a''b', '  x');
select * from words order by word nulls last;
select length(word), length(short), length(fixed), octet_length(word), char_length(word) from words order by word nulls last;
insert into words values ('x', 'abcdef', 'x');
insert into words values ('x', 'x', 'abcde');
insert into words values ('x', 'abc       ', 'ab       ');
select word, '[' || short || ']', '[' || fixed || ']' from words where word = 'x';
select 'abcdef'::varchar(3), 'abcdef'::char(3), 'ab'::char(4) || '|', 'ab'::char(4) = 'ab  '::char(2);
select 'ab ' = 'ab', 'ab '::char(5) = 'ab'::char(3), 'a' < 'b', 'a' < 'A', 'abc' < 'abd', '' < 'a';
select 'a' || 'b' || 'c', 'a' || null, 'n' || 5, 'x' || true, 1.5 || 'y';
select upper('straße'), lower('ÀÉ'), initcap('hello wORLD'), length('äöü'), reverse('abc'), repeat('ab', 3);
select substring('hello' from 2 for 3), substring('hello' from 3), substr('hello', 2, 2), substr('hello', -1, 4), left('hello', 2), right('hello', 2), left('hello', -2);
select substring('hello' from 2 for -1);
select position('l' in 'hello'), strpos('hello', 'x'), replace('hello', 'l', 'L'), translate('hello', 'el', 'ip');
select trim('  x  ') || '|', ltrim('  x  ') || '|', rtrim('  x  ') || '|', trim(both 'x' from 'xxaxx'), btrim('abcba', 'ab'), lpad('7', 3, '0'), rpad('7', 3, '*'), lpad('hello', 2);
select concat('a', null, 1, true), concat_ws('-', 'a', null, 'b'), split_part('a,b,c', ',', 2), split_part('a,b,c', ',', -1), md5('x');
select ascii('A'), chr(97), chr(8364), to_hex(255), starts_with('hello', 'he'), format('%s is %I and %L', 'x', 'a b', 'c''d');
select chr(0);
-- Patterns.
select 'hello' like 'h%', 'hello' like 'h_llo', 'hello' like 'H%', 'hello' ilike 'H%', 'hello' not like '%x%', 'a%b' like 'a\%b', 'axb' like 'a\%b';
select '' like '', '' like '%', 'abc' like '%b%', 'abc' like 'abc_', 'a_c' like 'a#_c' escape '#', 'é' like '_', null like 'x', 'x' like null;
select 'x' like 'a\';
select 'hello' ~ '^h.*o$', 'hello' ~ 'L', 'hello' ~* 'L', 'hello' !~ 'x';
select word from words where word like '%a%' order by word;
select word from words where short in ('abc', '') order by word;
-- Ways to write them.
select 'two '
  'parts', E'tab\there', E'line\nbreak', E'quote\'s', $$dollar $ quoted$$, $tag$with $$ inside$tag$, U&'d\0061t\+000061', 'back\slash';
select 'unfinished
-- ';
select E'\u00e9', E'\x41', E'\101';
select E'\u0000';
select quote_literal('it''s'), quote_ident('a b'), quote_ident('ab'), quote_nullable(null);
select min(word), max(word), count(word), count(distinct short) from words;
select string_agg(word, ',' order by word) from words where word <> '';
select word from words order by word desc nulls last limit 2;
select 'abc'::text::varchar(2), cast('abc' as char(2)), 'abc'::name, pg_typeof('abc'::varchar(2));
select 'a'::"char", ' a'::text = 'a', 'abc' = any ('{abc,def}'), 'b' between 'a' and 'c';
select regexp_replace('hello world', 'o', '0'), regexp_replace('hello world', 'o', '0', 'g'), regexp_replace('abc', '(.)(.)', '\2\1');
drop table words;
