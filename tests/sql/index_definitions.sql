-- names: shelves cabinet cabinetto
-- How indexes on expressions, with conditions and with INCLUDE are defined, refused and shown.
create table shelves (id int primary key, name varchar(20), a int, b int, d timestamptz, deleted_at date);
create index on shelves (lower(name));
create index on shelves ((a+b));
create index on shelves ((a+b), (a*2), b) include (d) where deleted_at is null and a > 5;
create unique index u on shelves (lower(name)) where deleted_at is null;
create index on shelves ((d::date));
create index on shelves (a) where d > now();
create index on shelves ((random()));
create index on shelves ((select 1));
create index on shelves (a) where (select true);
create index on shelves (sum(a));
create index on shelves (a) where sum(a) > 1;
create index on shelves (a) where a;
create index on shelves (generate_series(1,a));
create index on shelves ((zz+1));
create index on shelves (a) where zz;
create index on shelves (a, a);
create index on shelves ((a)) ;
create index on shelves ((a::text), (case when a > 1 then 'x' else name end) desc, coalesce(name, 'q'), (name || 'x'));
create index on shelves (a) include (lower(name));
create index on shelves (a) include ((b));
create index on shelves (a) include (b) include (c);
create index on shelves (a) include (a);
create index on shelves (a) include (zz);
create index on shelves ((row(a,b)));
create index on shelves ((current_user));
create unique index on shelves ((1));
select pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid,0,true), pg_get_indexdef(indexrelid,1,true),pg_get_indexdef(indexrelid,1,false),pg_get_indexdef(indexrelid,4,false) from pg_index where indrelid='shelves'::regclass order by indexrelid::regclass::text;
\d shelves
\d shelves_expr_expr1_b_d_idx
insert into shelves values (1,'Ann',1,2,null,null);
insert into shelves values (2,'ANN',1,2,null,null);
create unique index on shelves ((a+b), b);
insert into shelves values (2,'bob',1,2,null,null);
insert into shelves values (2,'ANN',1,2,null,null) on conflict (lower(name)) do nothing;
insert into shelves values (2,'ANN',1,2,null,null) on conflict (lower(name)) where deleted_at is null do nothing;
insert into shelves values (2,'ANN',1,3,null,null) on conflict (lower(name)) where deleted_at is null do update set a = 7 returning *;
alter table shelves drop column deleted_at;
\d shelves
drop index shelves_lower_idx;
create table cabinet (a int, b int, c text, primary key (a) include (b), unique (b) include (c, a));
\d cabinet
select pg_get_constraintdef(oid) from pg_constraint where conrelid='cabinet'::regclass order by 1;
create table cabinetto (like cabinet including all); \d cabinetto
insert into cabinet values (1,1,'a'),(2,1,'a');
select indexrelid::regclass, indkey, indnatts, indnkeyatts, indclass, indoption, indcollation, pg_get_expr(indexprs, indrelid), pg_get_expr(indpred, indrelid), pg_get_expr(indpred, indrelid, true) from pg_index where indrelid = 'shelves'::regclass order by indexrelid::regclass::text;
select attrelid::regclass, attname, atttypid::regtype, atttypmod, attnum, attnotnull from pg_attribute where attrelid in (select indexrelid from pg_index where indrelid='shelves'::regclass) order by attrelid::regclass::text, attnum;
drop table shelves, cabinet, cabinetto;
