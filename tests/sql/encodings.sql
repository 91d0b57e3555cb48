-- names: oddbytes
-- Encodings: which characters they have, in both directions, names and errors.
create function letters(e text, first int, last int) returns text language plpgsql as $$
declare found text := ''; bytes text; letter text; begin
  for code in first .. last loop
    bytes := to_hex(code);
    begin
      letter := convert_from(decode(bytes, 'hex'), e);
      found := found || bytes || letter || encode(convert_to(letter, e), 'hex');
    exception when untranslatable_character or character_not_in_repertoire then null; end;
  end loop;
  return md5(found) || ' ' || length(found); end $$;
create function unread(e text, all_of text) returns text language plpgsql as $$
declare found text := ''; letter text; begin
  for letter in select * from regexp_split_to_table(all_of, '') loop
    begin found := found || ' ' || encode(convert_to(letter, e), 'hex'); exception when untranslatable_character then found := found || ' -'; end;
  end loop;
  return found; end $$;
select e, letters(e, 128, 255) from unnest('{LATIN1,LATIN2,LATIN3,LATIN4,LATIN5,LATIN6,LATIN7,LATIN8,LATIN9,LATIN10,ISO_8859_5,ISO_8859_6,ISO_8859_7,ISO_8859_8,KOI8R,KOI8U,WIN866,WIN874,WIN1250,WIN1251,WIN1252,WIN1253,WIN1254,WIN1255,WIN1256,WIN1257,WIN1258}'::text[]) e;
select e, letters(e, 33344, 33450), letters(e, 64576, 64700), letters(e, 65153, 65279) from unnest('{EUC_JP,EUC_CN,EUC_KR,SJIS,GBK,UHC,GB18030}'::text[]) e;
select e, letters(e, 41377, 41470), letters(e, 42689, 42750), letters(e, 44449, 44542) from unnest('{EUC_JP,EUC_CN,EUC_KR,SJIS,GBK,UHC,GB18030}'::text[]) e;
select letters('EUC_JP', 9433761, 9433854), letters('EUC_JP', 9434611, 9434622), letters('EUC_JP', 9434785, 9434878), letters('SJIS', 128, 255), letters('SJIS', 34624, 34700), letters('SJIS', 60736, 60800);
select e, unread(e, U&'\0080\009F\00A2\00A3\00A5\00A6\00AC\00B7\00FF\0131\0401\0416\05D0\0627\0E01\1E3F\2013\2015\2016\203E\20AC\2116\2212\2252\2261\2550\255D\301C\30FB\327E\4E2D\AC00\E000\E7C7\FA0E\FF5E\FFE2\FFE4\+01F600') from unnest('{LATIN1,LATIN5,KOI8U,WIN1255,WIN874,EUC_JP,EUC_CN,EUC_KR,SJIS,GBK,UHC,GB18030}'::text[]) e;
select convert_to('😀', 'gb18030'), convert_from('\x9439fc36', 'gb18030'), convert_from('\x8135f437', 'gb18030');
-- Functions.
select convert_from('\x636166e9', 'latin1'), convert_to('café', 'latin1'), convert_to('€', 'latin9'), convert_to('€', 'win1252');
select convert('\x636166e9', 'latin1', 'utf8'), convert('\x636166c3a9', 'utf8', 'latin1'), convert('\xe9', 'latin1', 'latin1'), convert('\xe9', 'latin1', 'sql_ascii');
select convert('\xe9', 'sql_ascii', 'utf8');
select convert('\xe9', 'utf8', 'latin1');
select convert_to('€', 'latin1');
select convert_from('\x81', 'win1252');
select convert_from('\x8e', 'euc_jp');
select convert_from('\x8ea0', 'euc_jp');
select convert_from('\xa1', 'euc_kr');
select convert_from('\x82', 'sjis');
select convert_from('\x8230813f', 'gb18030');
select convert_from('\xff', 'utf8');
select convert_from('\xff', 'sql_ascii');
select convert_from('\x610062', 'latin1');
select convert_from('\x61', 'nosuch');
select convert_to('a', 'nosuch');
select convert('\x61', 'latin1', 'nosuch');
select convert('\x61', 'nosuch', 'latin1');
select length('\xe9e9', 'latin1'), length('\xc3a9', 'utf8'), length('\x82a0b1', 'sjis'), length('\xe9', 'sql_ascii');
select length('\xe9', 'utf8');
select length('\x82', 'sjis');
select length('\x61', 'nosuch');
select n, pg_encoding_to_char(n), pg_encoding_max_length(n), pg_char_to_encoding(pg_encoding_to_char(n)) from generate_series(-1, 43) n;
select e, pg_encoding_to_char(pg_char_to_encoding(e)) from unnest('{abc,alt,iso88591,ISO-8859-10,iso8859-13,iso8859_14,ISO 8859-15,iso885916,iso88592,iso88593,iso88594,iso88595,iso88596,iso88597,iso88598,iso88599,koi8,koi8-r,mskanji,shift_jis,Shift-JIS-2004,tcvn,tcvn5712,unicode,vscii,win,win932,win936,win949,win950,windows1250,windows1251,windows1252,windows1253,windows1254,windows1255,windows1256,windows1257,windows1258,windows866,windows874,windows932,windows936,windows949,windows950,euc-jis-2004,mule_internal,latin11,utf,"",utf16}'::text[]) e;
select getdatabaseencoding(), pg_client_encoding();
-- The setting.
set client_encoding = latin1; show client_encoding; select pg_client_encoding();
set client_encoding to 'ISO-8859-15'; show client_encoding;
set names 'win1252'; show client_encoding;
set client_encoding to 'UNICODE'; show client_encoding; select pg_client_encoding();
set client_encoding to 'unicode'; show client_encoding;
set client_encoding to sql_ascii; show client_encoding;
set client_encoding to 'nosuch';
set client_encoding to mule_internal;
set client_encoding to default; show client_encoding;
begin; set client_encoding to latin1; rollback; show client_encoding;
begin; set local client_encoding to latin1; commit; show client_encoding;
select set_config('client_encoding', 'latin2', false); show client_encoding; reset client_encoding;
set client_encoding to latin1;
select '€' = U&'\20AC', U&'\20AC';
select U&'\20AC' as "no euro", 1;
do $$ begin raise exception '%', U&'\20AC'; end $$;
select 1 as U&"\20AC";
select 'fine';
reset client_encoding;
-- COPY.
create temp table oddbytes (a text);
copy oddbytes from stdin with (encoding 'nosuch');
\.
copy oddbytes to stdout with (encoding 'mule_internal');
insert into oddbytes values ('plain'), ('€');
copy oddbytes to stdout with (encoding 'latin1');
copy oddbytes from stdin with (encoding 'latin9');
more
\.
select * from oddbytes order by 1;
drop table oddbytes;
drop function letters, unread;
