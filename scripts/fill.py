#!/usr/bin/env python3
"""Fills a schema with made-up rows on two servers, and says whether both kept the same.

  fill.py --pg 'host=… port=… user=…' --target 'host=… port=… user=…' DATABASE… [--rows N] [--seed N]

The databases are there on both, with the same tables. Statements follow from the catalog of --pg and the
seed: each is sent to both servers alone, must end with the same SQLSTATE, and passes constraints and triggers
as any other. References are to rows that are there. Some rows are then changed and some removed. Afterwards
every table must have the same rows; times that a server took from its clock count as the same. Exit 1 if not.
"""
import argparse, hashlib, json, random, re, subprocess, sys

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--pg", required=True)
parser.add_argument("--target", required=True)
parser.add_argument("--rows", type=int, default=12)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("databases", nargs="+")
ARGS = parser.parse_args()

CATALOG = """
select coalesce(json_agg(t), '[]') from (
 select c.oid::regclass::text as name,
  (select json_agg(json_build_object('name', quote_ident(a.attname), 'type', format_type(
      case when t.typtype = 'd' then t.typbasetype else t.oid end, case when t.typtype = 'd' then t.typtypmod else a.atttypmod end),
      'kind', case when t.typtype = 'd' then 'b' else t.typtype::text end, 'notnull', a.attnotnull,
      'default', pg_get_expr(d.adbin, d.adrelid), 'skip', a.attgenerated <> '' or a.attidentity = 'a',
      'labels', (select json_agg(e.enumlabel order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid)) order by a.attnum)
   from pg_attribute a join pg_type t on t.oid = a.atttypid left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
   where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
  (select json_agg(json_build_object('to', k.confrelid::regclass::text,
      'from', (select json_agg(quote_ident(a.attname) order by o) from unnest(k.conkey) with ordinality u(n, o)
               join pg_attribute a on a.attrelid = k.conrelid and a.attnum = u.n),
      'ref', (select json_agg(quote_ident(a.attname) order by o) from unnest(k.confkey) with ordinality u(n, o)
               join pg_attribute a on a.attrelid = k.confrelid and a.attnum = u.n)))
   from pg_constraint k where k.conrelid = c.oid and k.contype = 'f' and k.conparentid = 0) as keys
 from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where c.relkind in ('r', 'p') and not c.relispartition and n.nspname not in ('pg_catalog', 'information_schema') order by c.oid) t"""


class Server:
    """One psql that answers each statement with its SQLSTATE and its rows."""

    def __init__(self, dsn, database):
        command = ["psql", "-X", "-A", "-t", "-q", "-d", f"{dsn} dbname={database}"]
        self.psql = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.run("set timezone = 'UTC'")

    def run(self, statement):
        self.psql.stdin.write(statement.strip().rstrip(";") + ";\n\\echo === :SQLSTATE\n")
        self.psql.stdin.flush()
        lines = []
        while True:
            line = self.psql.stdout.readline()
            if not line:
                sys.exit(f"psql has ended after: {statement}")
            if line.startswith("=== "):
                return line[4:].strip(), lines
            lines.append(line.rstrip("\n"))


def value(dice, column, number):
    """A literal for a column."""
    kind = column["type"]
    if not column["notnull"] and dice.random() < 0.15:
        return "NULL"
    if column["labels"]:
        return "'" + dice.choice(column["labels"]).replace("'", "''") + "'"
    if kind.endswith("[]"):
        one = value(dice, dict(column, type=kind[:-2], notnull=True), number)
        return f"array[{one}]::{kind}"
    word = "".join(dice.choice("abcdefghij é%_'\"\\") for _ in range(dice.randrange(1, 12))) + str(number)
    length = re.search(r"\((\d+)", kind)
    if kind.startswith(("character", "text", "citext", "name", '"char"')):
        word = word[-int(length.group(1)):] if length else word
        return "'" + word.replace("'", "''") + "'"
    if kind in ("integer", "bigint", "oid"):
        return str(number + dice.randrange(3) * 1000)
    if kind == "smallint":
        return str(number)
    if kind.startswith(("numeric", "real", "double")):
        return f"{dice.randrange(100)}.{dice.randrange(10)}"
    if kind == "boolean":
        return dice.choice(["true", "false"])
    if kind == "uuid":
        return "'" + hashlib.md5(f"{ARGS.seed} {dice.random()}".encode()).hexdigest() + "'"
    if kind == "date":
        return f"'20{dice.randrange(10, 30)}-0{dice.randrange(1, 10)}-1{dice.randrange(10)}'"
    if kind.startswith("timestamp"):
        return f"'20{dice.randrange(10, 30)}-0{dice.randrange(1, 10)}-1{dice.randrange(10)} 0{dice.randrange(10)}:00:00.{dice.randrange(1000)}'"
    if kind.startswith("time"):
        return f"'0{dice.randrange(10)}:30'"
    if kind.startswith("interval"):
        return f"'{dice.randrange(100)} minutes'"
    if kind in ("json", "jsonb"):
        return "'" + json.dumps({"k": number, "l": [word, None, 1.5]}).replace("'", "''") + "'"
    if kind == "bytea":
        return f"'\\x{number:08x}'"
    if kind in ("inet", "cidr"):
        return f"'10.0.{number % 250}.0/24'"
    if kind == "tsvector":
        return f"to_tsvector('english', 'the {word.count('a')} quick foxes {number}')"
    if kind.startswith("bit"):
        return f"B'{'1' * (int(length.group(1)) if length else 1)}'"
    if kind.endswith("range"):
        return "'empty'"
    return "NULL"


def statements(tables, dice):
    """What is sent: rows for each table, references first; then changes."""
    done, order = set(), []
    while len(order) < len(tables):
        left = [t for t in tables if t["name"] not in done]
        ready = [t for t in left if all(k["to"] in done or k["to"] == t["name"] for k in t["keys"] or [])]
        for table in ready or left[:1]:
            order.append(table)
            done.add(table["name"])
    for number in range(1, ARGS.rows + 1):
        for table in order:
            values = {c["name"]: value(dice, c, number) for c in table["columns"] if not c["skip"]}
            for key in table["keys"] or []:
                pick = dice.randrange(number)
                for own, ref in zip(key["from"], key["ref"]):
                    if own in values:
                        values[own] = f"(select {ref} from {key['to']} order by {', '.join(key['ref'])} offset {pick} limit 1)"
            for own in [c["name"] for c in table["columns"] if c["default"] and "nextval" not in c["default"] and "random" not in c["default"]]:
                if own in values and dice.random() < 0.2 and not re.search("now|CURRENT|clock", next(c["default"] for c in table["columns"] if c["name"] == own)):
                    values[own] = "default"
            yield f"insert into {table['name']} ({', '.join(values)}) values ({', '.join(values.values())})"
    for table in order:
        columns = [c for c in table["columns"] if not c["skip"] and not any(c["name"] in k["from"] for k in table["keys"] or [])]
        for number in range(1, 4):
            column = dice.choice(columns) if columns else None
            if column:
                first = table["columns"][0]["name"]
                yield f"update {table['name']} set {column['name']} = {value(dice, column, number + 500)} where {first} in (select {first} from {table['name']} order by 1 offset {number} limit 1)"
    for table in reversed(order):
        first = table["columns"][0]["name"]
        yield f"delete from {table['name']} where {first} in (select {first} from {table['name']} order by 1 offset 2 limit 1)"


def rows_of(server, table):
    state, lines = server.run(f"select (t)::text from {table['name']} t order by ({table['columns'][0]['name']})::text collate \"C\", (t)::text collate \"C\"")
    _, clock = server.run("select to_char(now(), 'YYYY-MM-DD')")
    lines = [re.sub(clock[0] + r"[ T][0-9:.]+(\+00)?", "now", line) for line in lines]
    return state, sorted(lines)


bad = 0
for database in ARGS.databases:
    pg, target = Server(ARGS.pg, database), Server(ARGS.target, database)
    dice = random.Random(ARGS.seed)
    tables = json.loads("".join(pg.run(CATALOG)[1]))
    sent = kept = 0
    for statement in statements(tables, dice):
        a, b = pg.run(statement)[0], target.run(statement)[0]
        sent += 1
        kept += a == "00000"
        if a != b:
            bad += 1
            print(f"{database}: PostgreSQL {a}, the other {b}: {statement[:600]}")
    total = 0
    for table in tables:
        (a, ours), (b, theirs) = rows_of(pg, table), rows_of(target, table)
        total += len(ours)
        if (a, ours) != (b, theirs):
            bad += 1
            missing = [row for row in ours if row not in theirs][:2]
            more = [row for row in theirs if row not in ours][:2]
            print(f"{database}.{table['name']}: {len(ours)} rows ({a}) and {len(theirs)} ({b}) that differ\n  - {missing}\n  + {more}")
    print(f"{database}: {sent} statements, {kept} taken by PostgreSQL, {total} rows in {len(tables)} tables", flush=True)
sys.exit(bad > 0)
