-- Views whose queries Quorate shows in another layout than PostgreSQL: what they give must be the
-- same after a dump, and how Quorate shows them must not change by it.
set search_path = public;

create table products (id serial primary key, gone integer, code varchar(12), label text, price numeric(10,2), made date);
create table places (id bigint primary key, name text not null, parent bigint references places);
create table held (product integer references products, place bigint references places, amount integer);
insert into products (code, label, price, made)
    select 'c' || n, 'label ' || n % 7, n * 1.5, date '2001-01-01' + n % 3 from generate_series(1, 20) as n;
insert into places values (1, 'all', null), (2, 'north', 1), (3, 'south', 1), (4, 'pole', 3);
insert into held select n, 1 + n % 4, n * 10 from generate_series(1, 10) as n;

create view walk as
    with recursive down as (
        select id, name, parent, 0 as depth from places where parent is null
        union all
        select p.id, p.name, p.parent, d.depth + 1 from places p join down d on d.id = p.parent
    )
    select *, case when depth = 0 then 'root' else 'leaf' end as kind,
        row_number() over (partition by depth order by name) as place
    from down;
create view joined as
    select p.id, p.code, coalesce(h.amount, 0) as amount, (select count(*) from places) as places
    from products p left join held h on h.product = p.id
    where p.id in (select product from held) or exists (select 1 from places n where n.id = p.id)
    order by p.id desc limit 10;
create view together as
    select id, name from places union all select id::bigint, label from products where id < 3;
create view listed as select * from (values (1, 'one'), (2, 'two')) as v (number, word);
create view beside as
    select p.id, n.n from products p, lateral generate_series(1, 2) as n (n),
        lateral (select p.id + 1 as next) as x
    where x.next > n.n;
create view firsts as select distinct on (made) made, id from products order by made, id;
create view both_ways (what, "How many") as
    with cheap as (select id, price from products where price < 10), n as materialized (select count(*) as n from cheap)
    select cheap.id, n.n from cheap, n;
create view used as select * from held join places as p (place, named, above) using (place);
create view numbers as
    select 'it''s' = 'products_id_seq'::regclass::text as same union select true;

-- Policies with queries in them.
alter table held enable row level security;
create policy known on held using (exists (select 1 from places p where p.id = held.place and p.name <> '') or product = 1);
create policy listed on held for insert with check (product in (select id from products));

-- What is named in them changes afterwards.
alter table products drop column gone;
alter table products add column later integer default 3;
alter table places rename column name to "Name";
alter table held rename to "Held things";
alter view listed rename column word to "The word";
