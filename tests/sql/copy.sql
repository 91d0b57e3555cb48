-- names: cargo ident label price stock done wide empties other
create table cargo (ident int primary key, label text, price numeric(8, 2) default 1.50, stock int default 10 check (stock >= 0), done bool not null default false);
copy cargo from stdin;
1	pen	2.25	5	t
2	ink	\N	\N	f
3	a\tb\nc\\d\x41\101\e	1	0	true
4		7.777	7	off
\.
select * from cargo order by ident;
copy cargo (label, ident) from stdin;
five	5
\N	6
\.
copy cargo to stdout;
copy cargo (ident, label) to stdout;
copy (select ident, label, price * 2 from cargo where ident < 4 order by ident desc) to stdout;
copy (select ident, label from cargo order by ident) to stdout with (format csv, header);
copy (select ident, label from cargo order by ident) to stdout with (format csv, force_quote (label), null 'none');
copy (select ident, label, done from cargo order by ident) to stdout with (format csv, force_quote *, delimiter ';', quote '''', escape '\');
copy (select ident, label from cargo order by ident) to stdout csv header quote '"' null 'x';
copy (select ident, label from cargo order by ident) to stdout (delimiter '|', null '', header true);
copy cargo (ident, label) to stdout with csv force quote label;
copy (values (1, 'a,b'), (2, 'c"d'), (3, ''), (4, null), (5, 'e
f'), (6, 'g\h'), (7, E'i\rj')) to stdout csv;
copy (values ('\.'), ('x')) to stdout csv;
copy (values ('\.', 1), ('x', 2)) to stdout csv;
copy (values ('tab	here'), (E'back\\slash'), (E'\b\f\x0b')) to stdout;
copy (values ('a|b')) to stdout (delimiter '|');
copy (insert into cargo (ident, label) values (7, 'seven') returning ident, label) to stdout;
copy (update cargo set stock = 1 where ident = 7 returning ident, stock) to stdout csv;
copy (delete from cargo where ident = 7) to stdout;
copy (delete from cargo where ident = 7 returning *) to stdout;
copy (select 1 / 0) to stdout;
copy (select 1 where false) to stdout csv header;
copy (select) to stdout;
-- CSV in.
copy cargo from stdin csv;
10,"quoted, with comma",3,4,t
11,"two ""quotes""",,5,f
12,"over
two lines",1,1,t
13,,1,1,t
14,"",1,1,t
15, spaced ,1,1,t
16,half"quoted"field,1,1,t
\.
select ident, label, label is null as isnull, price from cargo where ident >= 10 order by ident;
copy cargo (ident, label, stock) from stdin with (format csv, header, force_null (label), force_not_null (label), delimiter ';', quote '!', escape '~', null 'nil');
ident;label;stock
20;!nil!;1
21;nil;2
22;!a~!b;c!;3
23;!d~~e!;4
24;;5
\.
select ident, label, stock from cargo where ident >= 20 order by ident;
copy cargo (ident, label, stock) from stdin with (format csv, force_not_null (label, ident));
30,,1
31,x,
\.
copy cargo (ident, label) from stdin with (format csv, force_null (label));
32,""
33,"x"
\.
select ident, label, label is null as isnull from cargo where ident >= 30 order by ident;
copy cargo (ident, label) from stdin with (format text, header match);
ident	label
40	forty
\.
copy cargo (ident, label) from stdin with (header match);
ident	lable
41	x
\.
copy cargo (ident, label) from stdin with (header match);
ident	label	more
41	x
\.
copy cargo (ident, label) from stdin with (header match);
ident	\N
41	x
\.
copy cargo (ident, label) from stdin (header);
anything
42	x
\.
copy cargo (ident, label) from stdin where ident % 2 = 0 and label <> 'no';
50	yes
51	yes
52	no
54	yes
\.
select ident from cargo where ident >= 50 order by ident;
copy cargo (ident, label) from stdin where nosuch = 1;
\.
copy cargo (ident, label) from stdin where ident;
\.
copy cargo (ident, label) from stdin where ident in (select 1);
\.
copy cargo (ident, label) from stdin where generate_series(1, 2) = 1;
\.
copy cargo (ident, label) from stdin where count(*) > 1;
\.
-- Errors.
copy cargo from stdin;
60	x	1	1	t	more
\.
copy cargo from stdin;
60	x	1
\.
copy cargo from stdin;

\.
copy cargo from stdin;
60	ok	1	1	t
sixty	x	1	1	t
\.
copy cargo from stdin;
60	ok	1	1	t
61	x	12345678.9	1	t
\.
copy cargo from stdin;
60	ok	1	1	t
61	x	1	1	maybe
\.
copy cargo from stdin;
60	ok	1	1	t
61	ok	1	-1	t
\.
copy cargo from stdin;
60	ok	1	1	t
61	ok	1	1	\N
\.
copy cargo from stdin;
60	ok	1	1	t
\N	ok	1	1	f
\.
copy cargo from stdin;
60	ok	1	1	t
1	ok	1	1	f
\.
copy cargo from stdin;
60	ok	1	1	t
60	ok	1	1	f
bad	later	1	1	f
\.
copy cargo from stdin;
60	\xff	1	1	t
\.
copy cargo from stdin;
60	\000	1	1	t
\.
copy cargo (ident, label) from stdin csv;
60,"open
61,x
\.
copy cargo (ident, label) from stdin csv;
60,x,y
\.
copy cargo (ident, label) from stdin;
60	LONG0LONG1LONG2LONG3LONG4LONG5LONG6LONG7LONG8LONG9LONG0LONG1LONG2LONG3LONG4LONG5LONG6LONG7LONG8LONG9LONG0LONG1LONG2	x
\.
copy cargo (ident, label) from stdin;
LONG0LONG1LONG2LONG3LONG4LONG5LONG6LONG7LONG8LONG9LONG0LONG1LONG2LONG3LONG4LONG5LONG6LONG7LONG8LONG9LONG0LONG1LONG2	x
\.
select count(*) from cargo where ident >= 60;
create table wide (ident int, label varchar(5), other char(3), price numeric(4, 1), done date default '2020-01-01');
copy wide from stdin;
1	abcde	ab	12.34	2021-02-03
2	abcdef	ab	1	\N
\.
copy wide from stdin;
1	abcde	abcd	12.34	\N
\.
copy wide from stdin;
1	abcde	ab	12.34	2021-02-30
\.
copy wide from stdin;
1	abcde	ab	12.34	2021-02-03
2	äöüß€	é	999.9	\N
3	\N	\N	\N	\N
\.
copy wide (ident) from stdin;
4
\N
\.
copy wide to stdout;
copy wide to stdout csv;
create table empties ();
copy empties from stdin;


\.
copy empties from stdin;
x
\.
select count(*) from empties;
copy empties to stdout;
-- Options.
copy cargo to stdout (format nosuch);
copy cargo to stdout (format csv, format csv);
copy cargo to stdout (delimiter ',', delimiter ';');
copy cargo to stdout (nosuch);
copy cargo to stdout (nosuch 1);
copy cargo to stdout (delimiter ',,');
copy cargo to stdout (delimiter '');
copy cargo to stdout (delimiter 'a');
copy cargo to stdout (delimiter '\');
copy cargo to stdout (delimiter E'\n');
copy cargo to stdout (null E'\n');
copy cargo to stdout (null 'a,b', delimiter ',');
copy cargo to stdout (format csv, null 'a"b');
copy cargo to stdout (format csv, delimiter '"');
copy cargo to stdout (quote '''');
copy cargo to stdout (escape '''');
copy cargo to stdout (format csv, quote '''''');
copy cargo to stdout (format csv, escape '''''');
copy cargo to stdout (force_quote (label));
copy cargo from stdin (format csv, force_quote (label));
\.
copy cargo to stdout (format csv, force_null (label));
copy cargo to stdout (format csv, force_not_null (label));
copy cargo from stdin (force_null (label));
\.
copy cargo from stdin (force_not_null (label));
\.
copy cargo to stdout (format csv, force_quote label);
copy cargo to stdout (format csv, force_quote (nosuch));
copy cargo (ident) to stdout (format csv, force_quote (label));
copy cargo (ident) from stdin (format csv, force_null (label));
\.
copy cargo (ident) from stdin (format csv, force_not_null (label));
\.
copy cargo to stdout (header maybe);
copy cargo to stdout (header match);
copy cargo to stdout (header 2);
copy cargo to stdout (freeze maybe);
copy cargo to stdout (encoding 'nosuch');
copy cargo to stdout (format binary, delimiter ',');
copy cargo to stdout (format binary, null 'x');
copy cargo to stdout (format binary, header);
copy cargo (nosuch) to stdout;
copy cargo (ident, ident) to stdout;
copy cargo (nosuch) from stdin;
\.
copy cargo (ident, ident) from stdin;
\.
copy nosuch to stdout;
copy nosuch from stdin;
\.
copy nosuchschema.nosuch from stdin;
\.
copy (select nosuch from cargo) to stdout;
copy (select * from cargo) from stdin;
\.
copy cargo to stdout where ident = 1;
begin read only;
copy cargo from stdin;
\.
rollback;
begin read only;
copy (select 1) to stdout;
copy cargo (ident) from nosuch;
rollback;
-- In transactions.
begin;
copy cargo (ident) from stdin;
70
71
\.
select count(*) from cargo where ident >= 70;
savepoint here;
copy cargo (ident) from stdin;
72
72
\.
rollback to here;
copy cargo (ident) from stdin with (freeze off, encoding 'utf-8');
73
\.
select ident from cargo where ident >= 70 order by ident;
rollback;
select count(*) from cargo where ident >= 70;
begin;
copy cargo (ident) from stdin;
nonsense
\.
copy cargo to stdout;
rollback;
do $$ begin copy cargo to stdout; end $$;
do $$ begin copy cargo from stdin; end $$;
do $$ begin execute 'copy cargo to stdout'; end $$;
drop table cargo;
drop table wide;
drop table empties;
