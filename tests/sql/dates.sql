-- names: events eventid held moment span
create table events (eventid int primary key, held date, moment timestamp, span interval);
insert into events values (1, '2024-02-29', '2024-02-29 13:14:15.123456', '1 day 2 hours'),
  (2, '1999-12-31', '1999-12-31 23:59:59.9', '1 year 2 mons -3 days'), (3, 'infinity', '-infinity', '-00:00:01'),
  (4, null, null, null), (5, '0001-01-01', '0044-03-15 12:00 BC', '36 hours 90 minutes');
select * from events order by eventid;
select eventid from events order by held nulls last, eventid;
select eventid from events order by moment nulls first, eventid;
select eventid, span from events order by span nulls first, eventid;
select eventid from events where held > '2000-01-01' order by eventid;
select eventid from events where moment between '1999-01-01' and '2024-12-31' order by eventid;
insert into events values (6, '2023-02-29', null, null);
insert into events values (6, '2023-13-01', null, null);
insert into events values (6, 'someday', null, null);
insert into events values (6, null, '2024-01-01 25:00', null);
insert into events values (6, null, '2024-01-01 12:60', null);
insert into events values (6, null, null, 'long');
insert into events values (6, null, '300000-01-01', null);
insert into events values (6, '6000000-01-01', null, null);
-- Forms of input.
select date '2024-3-5', date '20240305', date 'March 5, 2024', date '5 Mar 2024', date '03/05/2024', date '2024.065', date 'J2460375';
select timestamp '2024-03-05', timestamp '2024-03-05T12:34:56', timestamp '2024-03-05 12:34', timestamp '2024-03-05 12:34:56.789', timestamp '2024-03-05 1:02 PM', timestamp '20240305 123456';
select timestamp '2024-03-05 12:34:56.1234567', timestamp '2024-03-05 24:00', timestamp 'epoch', timestamp '2024-03-05 12:00+05';
select interval '1 day', interval '1-2', interval '3 4:05:06', interval '1 year 2 months 3 days 4 hours 5 minutes 6.789 seconds', interval 'P1Y2M3DT4H5M6S', interval '1.5 hours', interval '1 week', interval '-1 day +2 hours', interval '1 day ago';
select interval '90' minute, interval '1' day, interval '2' year, interval '1 2:03' day to minute, interval '1.2345 seconds'::interval(2);
select time '12:34:56', time '12:34:56.789', time '1:02 am', time '24:00';
select time '25:00';
-- Arithmetic.
select date '2024-02-28' + 1, date '2024-03-01' - 1, date '2024-03-01' - date '2023-03-01', date '2024-01-31' + interval '1 month', date '2024-01-01' + time '12:00';
select timestamp '2024-01-31' + interval '1 month', timestamp '2024-03-31' - interval '1 month', timestamp '2024-02-29' + interval '1 year', timestamp '2024-01-01' + interval '36 hours';
select timestamp '2024-03-01 12:00' - timestamp '2024-02-28 13:30:15.5', timestamp '2024-01-01' - timestamp '2025-01-01', timestamp '2024-01-01' - interval '1 second';
select interval '1 day' + interval '25 hours', interval '1 month' - interval '1 day', interval '1 day' * 2.5, interval '1 hour' / 4, -interval '1 day 1 hour', interval '1 month' * 1.5, 2 * interval '3 days';
select interval '1 day' / 0;
select interval '24 hours' = interval '1 day', interval '1 month' = interval '30 days', interval '1 year' > interval '364 days', interval '1 day' < interval '25 hours';
select date '2024-01-01' < timestamp '2024-01-01 00:00:01', date 'infinity' > date '9999-12-31', timestamp '-infinity' < timestamp 'epoch';
select 'infinity'::date - 1, 'infinity'::timestamp + interval '1 day';
select date '5874897-12-31' + 1;
select timestamp '294276-12-31 23:59:59' + interval '1 day';
select age(timestamp '2024-03-01', timestamp '2023-01-31'), age(timestamp '2023-01-31', timestamp '2024-03-01');
-- Parts.
select extract(year from moment), extract(month from moment), extract(day from moment), extract(hour from moment), extract(minute from moment), extract(second from moment), extract(epoch from moment) from events where eventid = 1;
select extract(dow from held), extract(isodow from held), extract(doy from held), extract(week from held), extract(quarter from held), extract(century from held), extract(decade from held), extract(isoyear from held) from events where eventid = 2;
select extract(epoch from interval '1 day 1.5 seconds'), extract(day from interval '40 days 5 hours'), extract(hour from interval '40 days 5 hours'), extract(milliseconds from interval '1.5 seconds'), extract(epoch from interval '1 year 1 month');
select extract(epoch from max(moment) - min(moment)), max(moment) - min(moment), max(held) - min(held) from events where eventid <= 2;
select 1000 / extract(epoch from interval '2.5 seconds');
select extract(nosuch from timestamp '2024-01-01');
select extract(hour from date '2024-01-01');
select date_part('hour', timestamp '2024-01-01 13:00'), date_trunc('hour', timestamp '2024-01-01 13:14:15'), date_trunc('month', timestamp '2024-05-17 13:14:15'), date_trunc('year', timestamp '2024-05-17'), date_trunc('day', interval '3 days 4 hours');
select make_date(2024, 2, 29), make_timestamp(2024, 2, 29, 12, 30, 15.5);
select make_date(2023, 2, 29);
select to_char(timestamp '2024-03-05 14:05:09', 'YYYY-MM-DD HH24:MI:SS'), to_char(date '2024-03-05', 'Dy DD Mon YYYY');
-- Casts.
select '2024-03-05 12:34'::timestamp::date, '2024-03-05'::date::timestamp, '2024-03-05 12:34:56'::timestamp::time, '12:00'::time::interval, timestamp '2024-03-05 12:34:56.789'::timestamp(0), '1 day'::interval::text, '2024-03-05'::date::text;
select timestamptz '2024-03-05 12:00+02', timestamptz '2024-03-05 12:00', '2024-03-05 12:00'::timestamptz at time zone 'UTC', timestamp '2024-03-05 12:00' at time zone '+03';
select 5::date;
select date '2024-01-01' + date '2024-01-01';
select date '2024-01-01' + 'x';
select sum(span), avg(span), min(span), max(span) from events where eventid <> 3;
select count(*), min(held), max(held), min(moment), max(moment) from events;
select isfinite(held), isfinite(moment) from events where eventid = 3;
select g::date from generate_series(timestamp '2024-02-27', timestamp '2024-03-02', interval '2 days') g order by 1;
-- Styles.
set datestyle to 'ISO, MDY';
select held, moment, date '05/03/2024' from events where eventid = 1;
reset datestyle;
set intervalstyle to 'iso_8601';
select span from events order by eventid;
set intervalstyle to 'postgres_verbose';
select span from events order by eventid;
set intervalstyle to 'sql_standard';
select span from events order by eventid;
reset intervalstyle;
select span from events where eventid = 2;
drop table events;
