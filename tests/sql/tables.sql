-- names: orders customer amount note parts title shelf place
-- Tables come and go; what cannot be made or dropped says why.
create table orders (customer int, amount numeric(10, 2), note text);
select * from orders;
insert into orders values (1, 12.5, 'first');
select * from orders;
create table orders (customer int);
create table if not exists orders (customer int);
select * from orders;
drop table orders;
select * from orders;
drop table orders;
drop table if exists orders;
create table orders (customer int, customer text);
create table orders (customer nosuchtype);
create table orders (customer int primary key, amount int primary key);
create table orders (customer int, primary key (nosuchcolumn));
create table orders (customer int,
  primary key (customer, customer));
create table orders (customer int not null null);
create table orders (customer varchar(0));
create table orders (customer numeric(0));
create table orders (customer numeric(2000));
create table nosuchschema.orders (customer int);
-- No column at all is a table too.
create table orders ();
select * from orders;
insert into orders default values;
select count(*) from orders;
drop table orders;
-- Several at once, and names that need quotes.
create table orders (customer int);
create table parts ("Title" text, "the shelf" int);
insert into parts values ('bolt', 1);
select * from parts;
select "Title" from parts;
select title from parts;
select "the shelf" from parts;
drop table orders, parts;
drop table orders, parts;
create table "Orders" (customer int);
select * from orders;
select * from "Orders";
drop table "Orders";
-- A schema's name may be given.
create table public.orders (customer int);
insert into public.orders values (3);
select orders.customer from public.orders;
select public.orders.customer from orders;
drop table public.orders;
-- DDL is part of the transaction.
begin;
create table orders (customer int);
insert into orders values (1);
rollback;
select * from orders;
begin;
create table orders (customer int);
commit;
begin;
drop table orders;
select * from orders;
rollback;
select * from orders;
begin;
drop table orders;
create table orders (amount text);
insert into orders values ('x');
commit;
select * from orders;
drop table orders;
