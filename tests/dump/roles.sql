-- Roles, databases and their settings, for pg_dumpall.
create role dump_reader nologin;
create role dump_writer noinherit createdb;
create role dump_owner login createrole connection limit 7 password 'md5aabbccddeeff00112233445566778899' valid until '2040-01-02 03:04:05+00';
create role "dump Odd ""Name" login;
grant dump_reader to dump_writer with admin option;
grant dump_reader to dump_owner;
grant pg_read_all_data to dump_writer;
alter role dump_writer set work_mem = '7MB';
alter role dump_writer set search_path = stock, "odd Schema", public;
alter role dump_owner set statement_timeout = 61000;
comment on role dump_reader is 'reads what it''s given';

create database dump_objects owner dump_owner connection limit 33;
comment on database dump_objects is 'of all kinds';
grant connect on database dump_objects to dump_reader;
grant create, temporary on database dump_objects to dump_writer with grant option;
revoke temporary on database dump_objects from public;
alter database dump_objects set default_transaction_isolation = 'repeatable read';
alter database dump_objects set search_path = public, stock;
alter role dump_writer in database dump_objects set lock_timeout = '5s';

create database dump_empty;
create database dump_queries;

grant set, alter system on parameter lc_messages to dump_reader with grant option;
grant set on parameter shop.door to dump_writer;
