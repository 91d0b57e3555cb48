-- names: zjt
-- Templates of datetime() in jsonpath.
set timezone = 'UTC';
select jsonb_path_query('"10-03-2017"', '$.datetime("dd-mm-yyyy")'), jsonb_path_query('"10-03-2017"', '$.datetime("dd-mm-yyyy").type()');
select jsonb_path_query('"10-03-2017 12:34 -05:20"', '$.datetime("dd-mm-yyyy HH24:MI TZH:TZM")'), jsonb_path_query('"12:34 +05"', '$.datetime("HH24:MI TZH")'), jsonb_path_query('"12:34:56"', '$.datetime("HH24:MI:SS").type()');
select jsonb_path_query('"10-03-2017T12:34:56.789"', '$.datetime("dd-mm-yyyy\"T\"HH24:MI:SS.MS")'), jsonb_path_query('"12:34:56.789654"', '$.datetime("HH24:MI:SS.FF3")'), jsonb_path_query('"Mar 5, 2020"', '$.datetime("Mon DD, YYYY")');
select jsonb_path_query('["2017-03-10", "11.03.2017"]', '$[*].datetime("dd.mm.yyyy") ? (@ > "10.03.2017".datetime("dd.mm.yyyy"))', silent => true);
select jsonb '"10-03-2017"' @? '$.datetime("dd-mm-yyyy")', jsonb '"x"' @? '$.datetime("dd-mm-yyyy")';
select jsonb_path_query_tz('["12:34 +01", "12:35 +01"]', '$[*].datetime("HH24:MI TZH") ? (@ == "12:35 +1".datetime("HH24:MI TZH"))');
select jsonb_path_query('"12:34"', '$.datetime("aaa")');
select jsonb_path_query('"aaaa"', '$.datetime("HH24")');
select jsonb_path_query('"10-03-2017 12:34"', '$.datetime("dd-mm-yyyy")');
select jsonb_path_query('"10-03-2017 12:34"', '$.datetime("dd-mm-yyyy HH24:MI TZH")');
select jsonb_path_query('"10-03-2017t12:34"', '$.datetime("dd-mm-yyyy\"T\"HH24:MI")');
select jsonb_path_query('"10.03.2017"', '$.datetime("dd-mm-yyyy")');
select jsonb_path_query('"30-02-2017"', '$.datetime("dd-mm-yyyy")');
select jsonb_path_query('"2017-03-10 +01"', '$.datetime("yyyy-mm-dd TZH")');
select jsonb_path_query('"+01"', '$.datetime("TZH")');
select jsonb_path_query('"2017"', '$.datetime("yyyy TZ")');
select jsonb_path_query('""', '$.datetime("yyyy")');
select jsonb_path_query('1', '$.datetime("yyyy")');
