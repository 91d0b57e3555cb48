-- What a directory of format 15 holds in which `*` of a join with USING or NATURAL was kept as builds of
-- that format bound it: merged columns come in another order than PostgreSQL's, and with the type of
-- the left side.
create table pages (title text, book int, edition int, note text);
create table books (author text, edition bigint, book bigint, year int);
insert into pages values ('one', 1, 10, 'a'), ('two', 1, 11, 'b'), ('three', 2, 10, 'c');
insert into books values ('Ann', 10, 1, 1999), ('Bob', 10, 2, 2005), ('Cy', 12, 3, 2010);
create view inner_kept as select * from pages join books using (edition, book);
create view full_kept as select * from pages natural full join books;
create materialized view stored as select * from pages natural left join books;
