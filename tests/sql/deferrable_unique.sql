-- names: places rivals seats shelf ranks ranked spots partsof movedup copyof fresh nullsonce swapranks keepgoing plainu
-- Unique constraints and primary keys that can be deferred.
create table places (id int primary key, k int unique deferrable);
\d places
insert into places select i, i from generate_series(1, 5) i;
update places set k = k + 1;
select * from places order by id;
update places set k = 6 - k + 1;
select * from places order by id;
update places set k = 3 where id = 1;
insert into places values (6, 3);
insert into places values (6, 20), (7, 20);
insert into places values (6, null), (7, null);
select count(*) from places;
begin; set constraints places_k_key deferred;
insert into places values (8, 2); insert into places values (9, 2);
select * from places where k = 2 order by id;
update places set k = 100 where id = 8; update places set k = 101 where id = 9;
commit;
begin; set constraints all deferred; insert into places values (10, 2); commit;
select * from places order by id;
begin; set constraints all deferred; insert into places values (10, 2); set constraints all immediate;
rollback;
begin; set constraints all deferred; insert into places values (10, 2); delete from places where id = 10; commit;
begin; set constraints all deferred; insert into places values (10, 2); savepoint a; delete from places where k = 2 and id < 10; set constraints all immediate; rollback to a; commit;
begin; set constraints all deferred; savepoint a; insert into places values (10, 2); rollback to a; commit;
begin; set constraints all deferred; insert into places values (10, 2); savepoint a; update places set id = 11 where id = 10; release a; commit;
begin; set constraints all deferred; insert into places values (10, 2); update places set id = 11 where id = 10; commit;
select count(*), count(distinct k) from places;
-- Arbiters, foreign keys.
insert into places values (1, 2) on conflict (id) do nothing;
insert into places values (20, 2) on conflict (k) do nothing;
insert into places values (20, 2) on conflict do nothing;
insert into places values (20, 2) on conflict on constraint places_k_key do update set k = 0;
insert into places values (1, 2) on conflict do nothing;
insert into places values (1, 77) on conflict (id) do update set k = 2;
insert into places values (1, 77) on conflict (id) do update set k = excluded.k;
create table rivals (k int references places (k));
create table seats (k int primary key deferrable initially deferred, v text);
\d seats
create table rivals (k int references seats);
create table rivals (k int references seats (k));
insert into seats values (1, 'a'), (2, 'b'), (null, 'c');
insert into seats values (1, 'a'), (2, 'b'), (1, 'c');
insert into seats values (1, 'a'), (2, 'b');
update seats set k = 3 - k;
select * from seats order by k;
select v, count(*) from seats group by k;
alter table seats alter k drop not null;
alter table seats add primary key (v);
select conname, contype, condeferrable, condeferred, pg_get_constraintdef(oid) from pg_constraint where conrelid in ('seats'::regclass, 'places'::regclass) order by 1;
select indexrelid::regclass, indisunique, indisprimary, indimmediate, pg_get_indexdef(indexrelid) from pg_index where indrelid in ('seats'::regclass, 'places'::regclass) order by 1;
select constraint_name, constraint_type, is_deferrable, initially_deferred from information_schema.table_constraints where table_name in ('seats', 'places') and constraint_type <> 'CHECK' order by 1;
set constraints seats_pkey, places_k_key immediate;
set constraints places_pkey immediate;
begin; insert into seats values (1, 'x'); set constraints seats_pkey immediate; rollback;
begin; insert into seats values (1, 'x'); delete from seats where v = 'x'; commit;
begin; insert into seats values (1, 'x'); alter table seats add column w int; rollback;
begin; insert into seats values (1, 'x'); truncate seats; rollback;
begin; insert into seats values (1, 'x'); drop table seats; rollback;
begin; insert into seats values (1, 'x'); create index on seats (v); rollback;
begin; insert into seats values (1, 'x'); reindex table seats; insert into seats values (2, 'x'); reindex index seats_pkey; delete from seats where k = 1; insert into seats values (1, 'b'); commit;
begin; insert into seats values (1, 'x'); reindex table seats; delete from seats where v = 'x'; commit;
-- PL/pgSQL.
do $$ begin begin insert into seats values (1, 'x'); set constraints all immediate; exception when unique_violation then raise notice 'caught %', sqlerrm; end; insert into seats values (9, 'y'); end $$;
do $$ begin insert into seats values (1, 'z'); commit; raise notice 'not reached'; end $$;
do $$ begin insert into seats values (5, 'z'); update seats set k = 9 where k = 5; delete from seats where v = 'y'; commit; insert into seats values (9, 'w'); exception when others then raise notice 'not here'; end $$;
create procedure swapranks() language plpgsql as $$ begin update seats set k = 3 - k where k < 3; commit; update seats set k = 3 - k where k < 3; commit; end $$;
call swapranks();
drop procedure swapranks;
select * from seats order by k;
create function keepgoing(n int) returns int language plpgsql as $$ begin insert into places values (n, n); return n; exception when unique_violation then return -n; end $$;
select keepgoing(n) from generate_series(100, 103) n;
drop function keepgoing;
-- ALTER TABLE.
create table shelf (a int, b int, c text);
insert into shelf values (1, 1, 'x'), (2, 1, 'y'), (3, null, 'z'), (4, null, 'z');
alter table shelf add constraint by_b unique (b) deferrable;
alter table shelf add constraint by_c unique (c) deferrable initially deferred;
alter table shelf add unique (a) deferrable initially deferred, add unique (a, b) not deferrable;
alter table shelf add primary key (b) deferrable;
update shelf set b = a;
alter table shelf add primary key (b) deferrable;
\d shelf
alter table shelf alter constraint shelf_a_key not deferrable;
alter table shelf alter constraint shelf_pkey deferrable initially deferred;
alter table shelf rename constraint shelf_a_key to by_a;
begin; update shelf set a = 7; set constraints by_a immediate; rollback;
alter table shelf alter a type bigint;
begin; update shelf set a = 7; set constraints by_a immediate; rollback;
alter table shelf alter b type numeric using b / 10;
alter table shelf alter b type int using 1;
reindex table shelf;
alter table shelf drop constraint shelf_pkey;
alter table shelf add unique (c);
update shelf set c = a::text;
create unique index shelf_c on shelf (c); create unique index shelf_b on shelf (b);
alter table shelf add constraint by_index unique using index shelf_c deferrable initially deferred;
alter table shelf add constraint shelf_b primary key using index shelf_b deferrable;
\d shelf
begin; update shelf set c = 'q'; set constraints all immediate; rollback;
update shelf set b = b + 1 where b < 100;
select * from shelf order by 1;
alter table shelf drop column c;
drop table shelf;
-- Syntax.
create table fresh (a int deferrable);
create table fresh (a int check (a > 0) deferrable);
create table fresh (a int unique not null deferrable);
create table fresh (a int unique deferrable not deferrable);
create table fresh (a int unique deferrable deferrable);
create table fresh (a int unique not deferrable initially deferred);
create table fresh (a int unique initially deferred not deferrable);
create table fresh (a int unique initially deferred initially immediate);
create table fresh (a int unique initially immediate, b int, unique (b) not deferrable initially deferred);
create table fresh (a int unique not deferrable, b int unique initially deferred, unique (b, a) initially deferred, unique (a, b) deferrable);
\d fresh
create table copyof (like fresh including all);
\d copyof
drop table fresh, copyof;
create table nullsonce (a int, unique nulls not distinct (a) deferrable initially deferred);
\d nullsonce
insert into nullsonce values (null); insert into nullsonce values (null);
begin; insert into nullsonce values (null); delete from nullsonce; insert into nullsonce values (null); commit;
select count(*) from nullsonce;
drop table nullsonce;
-- Partitions.
create table ranks (g int, k int, v text, unique (g, k) deferrable, primary key (g, v) deferrable initially deferred) partition by list (g);
create table ranked partition of ranks for values in (1);
create table spots (v text, k int, g int);
alter table spots alter g set not null, alter v set not null;
insert into spots values ('a', 1, 2), ('b', 1, 2);
alter table ranks attach partition spots for values in (2);
truncate spots;
alter table ranks attach partition spots for values in (2);
\d ranked
\d spots
insert into ranks select g, k, k::text from generate_series(1, 2) g, generate_series(1, 3) k;
update ranks set k = k + 1;
insert into ranks values (1, 2, 'two');
begin; set constraints all deferred; insert into ranks values (1, 2, 'two'); insert into ranks values (2, 2, 'two'); delete from ranks where v = 'two'; commit;
begin; set constraints ranks_g_k_key deferred; insert into ranks values (2, 2, 'two'); set constraints ranks_g_k_key immediate; rollback;
begin; set constraints ranked_g_k_key deferred; insert into ranks values (1, 2, 'two'); insert into ranks values (2, 2, 'two'); rollback;
begin; insert into ranks values (1, 9, '1'); commit;
begin; insert into ranks values (1, 9, '1'); update ranks set g = 2, v = '9' where k = 9; commit;
select tableoid::regclass, * from ranks order by 2, 3;
alter table ranks add unique (g, v, k) deferrable;
alter table ranks add unique (v) deferrable;
drop table ranks;
-- Foreign keys that cascade into it, triggers beside it, COPY.
create table partsof (id int primary key);
create table movedup (id int references partsof on update cascade, k int, unique (id, k) deferrable initially deferred, unique (k) deferrable);
insert into partsof values (1), (2); insert into movedup values (1, 1), (2, 2);
begin; update movedup set k = 3 - k; update partsof set id = id + 10; commit;
select * from movedup order by 1;
begin; insert into movedup values (99, 1); rollback;
begin; set constraints all deferred; insert into movedup values (99, 1); rollback;
copy movedup from stdin;
11	7
12	7
\.
copy movedup from stdin;
11	7
12	8
\.
select * from movedup order by 2;
drop table movedup, partsof;
create temp table plainu (k int unique deferrable initially deferred);
insert into plainu values (1), (2); update plainu set k = k + 1;
do $$ begin insert into plainu values (2); update plainu set k = k + 10; set constraints all immediate; exception when unique_violation then raise notice '%', sqlerrm; end $$;
begin; insert into plainu values (2); delete from plainu where k = 2; insert into plainu values (2); commit;
select * from plainu order by 1;
drop table plainu;
drop table places, seats;
