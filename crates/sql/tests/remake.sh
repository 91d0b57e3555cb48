#!/usr/bin/env bash
# Makes the answers in tests/data/*.tsv anew from a running PostgreSQL 15 (psql finds it through
# PGHOST, PGPORT and PGUSER). The questions, all columns but the last two, stay as they are.
set -eu
cd "$(dirname "$0")/data"
run() { psql -X -q -At -v ON_ERROR_STOP=1 "$@"; }
for file in *.tsv; do
  new=$(mktemp)
  {
    cat <<'SQL'
set timezone = 'UTC'; set intervalstyle = postgres; set datestyle = 'ISO, MDY'; set extra_float_digits = 1;
set client_min_messages = error;
create function pg_temp.escaped(t text) returns text language sql as $$
  select coalesce(replace(replace(replace(t, '\', '\\'), E'\t', '\t'), E'\n', '\n'), '\N') $$;
create function pg_temp.answer(e text) returns text language plpgsql as $$
declare k text; v text;
begin
  execute 'select pg_typeof(x)::text, case when x is not null then format(''%s'', x) end from (select ' || e || ' as x) s' into k, v;
  return k || E'\t' || pg_temp.escaped(v);
exception when others then
  return sqlstate || E'\t' || pg_temp.escaped(sqlerrm);
end $$;
create function pg_temp.aggregate(n text, k text, vs text) returns text language sql as $$
  select pg_temp.answer(format(
    '(select %I(v::%I%s) from (select replace(nullif(w, ''-''), ''_'', '' '') as v from string_to_table(%L, '' '') w where w <> '''') s)',
    n, k, case when n = 'string_agg' then ', '',''' else '' end, vs)) $$;
create temp table q(n bigserial, line text);
\copy q(line) from pstdin with (format csv, delimiter E'\x01', quote E'\x02', escape E'\x02')
SQL
  } > "$new.sql"
  # Only the question's columns go in.
  if [ "$file" = aggregates.tsv ]; then
    ask="select line || E'\t' || pg_temp.aggregate(split_part(line, E'\t', 1), split_part(line, E'\t', 2), split_part(line, E'\t', 3)) from q order by n"
  else
    ask="select line || E'\t' || pg_temp.answer(line) from q order by n"
  fi
  echo "$ask;" >> "$new.sql"
  grep -v '^#' "$file" | awk -F'\t' -v OFS='\t' '{ NF -= 2; print }' | run -f "$new.sql" > "$new"
  mv "$new" "$file"; chmod 644 "$file"; rm -f "$new.sql"
done
