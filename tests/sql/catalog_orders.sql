-- names: zco
-- The order in which queries without ORDER BY find columns in the catalog, which tools take for that of the table.
create table zco (id int, email text, day date, active bool, price numeric, k int8);
create index zco_three on zco (price, active, id);
select c.column_name, a.attnum from information_schema.columns c left join pg_attribute a on a.attname = c.column_name and a.attrelid = (select k.oid from pg_class k left join pg_namespace n on n.oid = k.relnamespace where k.relname = c.table_name and n.nspname = c.table_schema) where (table_schema = 'public' and table_name = 'zco');
select a.attname from pg_class t join pg_index x on x.indrelid = t.oid join pg_attribute a on a.attrelid = t.oid and a.attnum = any (x.indkey) join pg_namespace n on n.oid = t.relnamespace join pg_class i on i.oid = x.indexrelid join pg_type y on y.oid = a.atttypid join pg_am m on i.relam = m.oid left join pg_constraint c on c.conname = i.relname where t.relkind in ('r', 'p') and c.contype is null and n.nspname = 'public' and t.relname = 'zco';
select a.attname, t.typname from pg_attribute a join pg_type t on t.oid = a.atttypid join pg_class c on c.oid = a.attrelid where c.relname = 'zco' and a.attnum > 0;
drop table zco;
