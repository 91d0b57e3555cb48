-- names: mft
-- Dates with a month's name in each order, signs that only divide, displacements, and the alternative form of intervals.
set datestyle = 'iso, ymd';
select date '99-Jan-08', date '1999-Jan-08', date '08-Jan-1999', date 'Jan-08-1999';
select date '08-Jan-99';
select date 'Jan-08-99';
select date '99-08-Jan';
select date '1999-08-Jan';
select date '08-Jan 1999';
select date '99.Jan.08', date '99/Jan/08', date 'Jan/08/1999', date 'Jan.08.1999';
select timestamp '99-Jan-08 10:00';
select date '99 Jan 08', date '1999 Jan 08', date '08 Jan 1999';
set datestyle = 'iso, dmy';
select date '08-Jan-99', date '1999-Jan-08', date '08-Jan-1999', date 'Jan-08-99';
select date '99-Jan-08';
select date '99-08-Jan';
select date '1999-08-Jan';
select date '08 Jan 99', date '8 Jan 1999', date 'Jan 8 1999';
select date '99 Jan 08';
set datestyle = 'iso, mdy';
select date '08-Jan-99', date '1999-Jan-08', date '08-Jan-1999', date 'Jan-08-99';
select date '99-Jan-08';
select date '99-08-Jan';
select date '99 Jan 08';
select date '32 Jan 1999';
select date 'Feb/08';
select date 'Jan 08 Feb 1999';
select date '1999!01!08', date '1999;01;08', date '(1999-01-08)', date 'Feb/1999/08';
select timestamp '1999-01-08; 10:11:12', timestamp '1999-01-08 :10:11:12', timestamp '1999-01-08 10:11:12*', time '10:11:12)';
select interval '1 day; 2 hours', interval '1! day', interval ':1:2', interval '1 day (2 hours)', interval '1.5:2:3';
select interval '1.5:2';
select interval '1:2.5:3';

-- Displacements.
set timezone = 'UTC';
select timestamptz '2000-01-01 00:00:00+10:', timestamptz '2000-01-01 00:00:00+10:1:', timestamptz '2000-01-01 00:00:00-0815';
select timestamptz '2000-01-01 00:00:00+101500';
select make_timestamptz(2010, 2, 27, 3, 45, 00, tz), tz from (values ('+1:'), ('+1:0'), ('+10:00:'), ('+10:00:1')) v(tz);
select make_timestamptz(2010, 2, 27, 3, 45, 00, '+101501');

-- Intervals of ISO 8601 without designators.
select interval 'P0.1-2-3', interval 'P1-2.5-3', interval 'P1-2-3.5', interval 'P1.5-2', interval 'P-1-2--3';
select interval 'P1-2-3T1:2:3.5', interval 'P1-2-3T1.5:2:3', interval 'P1-2-3T1:2.5:3', interval 'P1-2T1.5', interval 'PT-10:-20:30.5';
select interval 'P0-13-0', interval 'P0-0-0T25:61:61';
select interval 'P0.1-2147483647-00';
select interval 'P00-0.1-2147483647';
select interval 'P00-0.01-00T2562047788:00:54.775807';
select interval 'P1-2-3-4';
select interval 'P1-';
