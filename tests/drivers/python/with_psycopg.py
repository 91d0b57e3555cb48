"""psycopg 3: types both ways, pipelines, COPY, cursors, two-phase commit, and what sessions tell."""
import concurrent.futures
import datetime
import decimal
import enum
import ipaddress
import threading
import uuid

import psycopg
from psycopg import sql
from psycopg.rows import dict_row, namedtuple_row
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.enum import EnumInfo, register_enum
from psycopg.types.json import Json, Jsonb
from psycopg.types.multirange import Multirange, MultirangeInfo, register_multirange
from psycopg.types.range import Range, RangeInfo, register_range
from psycopg.types import TypeInfo

import sections
from sections import part

UTC = datetime.timezone.utc


class Mood(enum.Enum):
    sad = "sad"
    ok = "ok"
    happy = "happy"


def connect(**options):
    return psycopg.connect(sections.dsn(), **options)


VALUES = {
    "bool": [True, False],
    "int2": [-32768, 32767],
    "int4": [-(2**31), 2**31 - 1],
    "int8": [-(2**63), 2**63 - 1],
    "oid": [0, 4294967295],
    "float4": [1.5, float("inf"), float("nan")],
    "float8": [0.1, -1e300, float("-inf")],
    "numeric": [decimal.Decimal(text) for text in ["0", "1.50", "-0.000001", "NaN", "Infinity", "1e40", "123456789012.345678901234567890"]],
    "text": ["", "plain", "Ünïcödé ✓ 𝒳", "a\\b'c\"d"],
    "varchar": ["x"],
    "bpchar": ["x  "],
    "name": ["a name"],
    "bytea": [b"", b"\x00\x01\xff'\\"],
    "date": [datetime.date(1, 1, 1), datetime.date(2024, 2, 29), datetime.date(9999, 12, 31)],
    "time": [datetime.time(0, 0), datetime.time(23, 59, 59, 999999)],
    "timetz": [datetime.time(1, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=30)))],
    "timestamp": [datetime.datetime(2000, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 1)],
    "timestamptz": [datetime.datetime(2024, 3, 31, 1, 30, tzinfo=UTC)],
    "interval": [datetime.timedelta(0), datetime.timedelta(days=-3, seconds=7, microseconds=1)],
    "uuid": [uuid.UUID(int=0), uuid.UUID("12345678-1234-5678-1234-567812345678")],
    "json": [Json({"b": 1, "a": [None, True, "é"]})],
    "jsonb": [Jsonb({"b": 1, "a": [None, True, 1.5]}), Jsonb(None), Jsonb("text")],
    "inet": [ipaddress.ip_address("10.0.0.1"), ipaddress.ip_interface("10.1.2.3/8"), ipaddress.ip_address("::1")],
    "cidr": [ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("2001:db8::/32")],
    "int4range": [Range(1, 5), Range(empty=True), Range(None, 4), Range(None, None)],
    "int8range": [Range(1, 2**40)],
    "numrange": [Range(decimal.Decimal("1.5"), decimal.Decimal("2"), "(]")],
    "daterange": [Range(datetime.date(2024, 1, 1), datetime.date(2024, 12, 31), "[]")],
    "tsrange": [Range(datetime.datetime(2024, 1, 1), None)],
    "tstzrange": [Range(datetime.datetime(2024, 1, 1, tzinfo=UTC), datetime.datetime(2024, 2, 1, tzinfo=UTC))],
    "int4multirange": [Multirange([]), Multirange([Range(1, 3), Range(5, 9)])],
    "nummultirange": [Multirange([Range(decimal.Decimal("1.5"), None)])],
    "int4[]": [[], [1, None, 3], [[1, 2], [3, 4]]],
    "text[]": [["a", None, "NULL", 'q"u\\o', ""]],
    "numeric[]": [[decimal.Decimal("1.10"), None]],
    "date[]": [[datetime.date(2024, 1, 1)]],
    "timestamptz[]": [[datetime.datetime(2024, 1, 1, tzinfo=UTC)]],
    "uuid[]": [[uuid.UUID(int=7)]],
    "bytea[]": [[b"\x00", b""]],
    "bool[]": [[True, None]],
    "jsonb[]": [[Jsonb({"a": 1}), Jsonb([])]],
    "int4range[]": [[Range(1, 2), Range(empty=True)]],
}


@part
def types():
    """Every value goes there in both forms and comes back in both."""
    with connect(autocommit=True) as conn:
        conn.execute("set timezone to 'UTC'")
        for name, values in VALUES.items():
            for value in values:
                for mark in ["%t", "%b", "%s"]:
                    for binary in [False, True]:
                        try:
                            cast = sql.SQL("select {}::{} as v").format(sql.SQL(mark), sql.SQL(name))
                            got = conn.execute(cast, [value], binary=binary)
                            kind = got.description[0].type_display
                            print(name, mark, binary, kind, repr(got.fetchone()[0]))
                        except psycopg.NotSupportedError as error:
                            print(name, mark, binary, sections.told(error))
                        except (psycopg.Error, ValueError) as error:
                            print(name, mark, binary, "!", sections.told(error))


@part
def nulls():
    with connect(autocommit=True) as conn:
        for name in VALUES:
            print(name, conn.execute(f"select %s::{name}, null::{name} is null", [None], binary=True).fetchone())


@part
def literals():
    """Values that Python has no type for."""
    written("""'1 year 2 mons'::interval|'infinity'::timestamptz|'4713-01-01 BC'::date|'24:00'::time
                B'1010'::bit(4)|B'101'::varbit|'08:00:2b:01:02:03'::macaddr|'08:00:2b:01:02:03:04:05'::macaddr8
                'a b'::tsvector|'a & b'::tsquery|'$.a[*]'::jsonpath|'0/16B3748'::pg_lsn|'pg_class'::regclass
                'int4'::regtype|'x'::"char"|(1,'a'::text)|'{[1:2]={1,2}}'::text|'[0:1]={1,2}'::int4[]|array['1 day'::interval]""".replace("\n", "|").split("|"))


@part
def geometry():
    written(["'(1,2)'::point", "array['(1,2)'::point]", "'(1,1),(0,0)'::box"])


@part
def money():
    written(["1::money", "array[2.5::money]"])


def written(texts):
    with connect(autocommit=True) as conn:
        for text in texts:
            for binary in [False, True]:
                try:
                    value = conn.execute("select " + text.strip(), binary=binary).fetchone()[0]
                    print(text.strip(), binary, type(value).__name__, value)
                except (psycopg.Error, ValueError, OverflowError) as error:
                    print(text.strip(), binary, "!", sections.told(error))


@part
def rows():
    with connect() as conn:
        conn.execute("""create table items (id int generated always as identity primary key, name text not null unique,
            price numeric(10,2) check (price >= 0), tags text[] default '{}', made date default '2024-01-01')""")
        cur = conn.cursor(row_factory=dict_row)
        cur.execute("insert into items (name, price) values (%s, %s) returning id, name, price, tags", ["one", 1])
        print(cur.fetchone(), cur.rowcount, cur.statusmessage)
        cur.executemany("insert into items (name, price) values (%s, %s) returning id", [(f"n{i}", i) for i in range(5)], returning=True)
        found = []
        while True:
            found.append(cur.fetchone()["id"])
            if not cur.nextset():
                break
        print(found, cur.rowcount)
        cur.execute("update items set price = price * 2, tags = tags || %s::text where id > %s", ["twice", 3])
        print(cur.rowcount, cur.statusmessage)
        named = conn.cursor(row_factory=namedtuple_row)
        print(named.execute("select id, name, price, tags from items order by id").fetchall())
        print([(c.name, c.type_code, c.precision, c.scale, c.internal_size, c.display_size) for c in named.description])
        cur.execute("delete from items where name like %s", ["n%"])
        print(cur.rowcount, cur.statusmessage)
        cur.execute("insert into items (name, price) values ('one', 3) on conflict (name) do update set price = excluded.price returning price")
        print(cur.fetchall())


@part
def errors():
    with connect(autocommit=True) as conn:
        for text in ["insert into items (name, price) values ('one', 1)", "insert into items (name) values (null)",
                     "insert into items (name, price) values ('x', -1)", "select * from nowhere", "selekt 1", "select 1/0",
                     "select 'x'::int4", "insert into items (id) values (1)", "select nofunction(1)", "select id from items group by name"]:
            try:
                conn.execute(text)
                print("went well:", text)
            except psycopg.Error as error:
                d = error.diag
                print(type(error).__name__, d.severity, d.sqlstate, d.message_primary, d.message_detail, d.message_hint,
                      d.statement_position, d.schema_name, d.table_name, d.column_name, d.datatype_name, d.constraint_name)


@part
def transactions():
    with connect() as conn:
        conn.execute("create table steps (n int primary key)")
        conn.commit()
        print(conn.info.transaction_status.name)
        with conn.transaction():
            conn.execute("insert into steps values (1)")
            try:
                with conn.transaction("inner"):
                    conn.execute("insert into steps values (2)")
                    conn.execute("insert into steps values (1)")
            except psycopg.errors.UniqueViolation as error:
                print(sections.told(error))
            with conn.transaction(force_rollback=True):
                conn.execute("insert into steps values (3)")
            conn.execute("insert into steps values (4)")
        print(conn.execute("select array_agg(n order by n) from steps").fetchone())
        conn.rollback()
        try:
            conn.execute("select 1/0")
        except psycopg.Error:
            print(conn.info.transaction_status.name)
        try:
            conn.execute("select 1")
        except psycopg.Error as error:
            print(sections.told(error))
        conn.rollback()
        for level in psycopg.IsolationLevel:
            conn.isolation_level = level
            conn.read_only, conn.deferrable = True, True
            print(conn.execute("show transaction_isolation").fetchone(), conn.execute("show transaction_read_only").fetchone(),
                  conn.execute("show transaction_deferrable").fetchone())
            try:
                conn.execute("insert into steps values (9)")
            except psycopg.Error as error:
                print(sections.told(error))
            conn.rollback()


@part
def retries():
    """Two that read what the other writes: one has to try again."""
    with connect(autocommit=True) as one, connect(autocommit=True) as two:
        one.execute("create table sums (class int, value int)")
        one.execute("insert into sums values (1, 10), (2, 20)")
        for conn in one, two:
            conn.execute("begin isolation level serializable")
            conn.execute("select sum(value) from sums").fetchone()
        one.execute("insert into sums values (1, 30)")
        failed = 0
        try:
            two.execute("insert into sums values (2, 30)")
        except psycopg.errors.SerializationFailure as error:
            failed += 1
        try:
            one.execute("commit")
        except psycopg.errors.SerializationFailure as error:
            failed += 1
        try:
            two.execute("commit")
        except psycopg.errors.SerializationFailure as error:
            failed += 1
        print("failed", min(failed, 1))
        for conn in one, two:
            conn.execute("begin isolation level repeatable read")
            conn.execute("select sum(value) from sums").fetchone()
        one.execute("update sums set value = value + 1 where class = 1")
        one.execute("commit")
        try:
            two.execute("update sums set value = value + 1 where class = 1")
        except psycopg.errors.SerializationFailure as error:
            print(sections.told(error))
        two.execute("rollback")


@part
def deadlocks():
    with connect(autocommit=True) as one, connect(autocommit=True) as two:
        for conn, n in (one, 1), (two, 2):
            conn.execute("begin")
            conn.execute("update sums set value = 0 where class = %s", [n])
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waits = [pool.submit(conn.execute, f"update sums set value = 1 where class = {n}") for conn, n in [(one, 2), (two, 1)]]
            print(sorted(type(w.exception()).__name__ for w in waits))
        one.execute("rollback")
        two.execute("rollback")


@part
def pipelines():
    with connect(autocommit=True) as conn:
        with conn.pipeline() as pipe:
            cursors = [conn.execute("select %s::int * 2", [i]) for i in range(5)]
            pipe.sync()
            print([cur.fetchone()[0] for cur in cursors])
        try:
            with conn.pipeline():
                conn.execute("insert into steps values (100)")
                conn.execute("insert into steps values (100)")
                conn.execute("insert into steps values (101)")
        except psycopg.Error as error:
            print(sections.told(error))
        print(conn.execute("select count(*) from steps where n >= 100").fetchone())
        with conn.pipeline():
            with conn.transaction():
                conn.execute("insert into steps values (200)")
                with conn.transaction():
                    conn.execute("insert into steps values (201)")
        print(conn.execute("select count(*) from steps where n >= 200").fetchone())


@part
def prepared():
    with connect(autocommit=True) as conn:
        conn.prepare_threshold = 1
        for i in range(4):
            print(conn.execute("select %s::int + 1", [i], prepare=True).fetchone())
        print(conn.execute("select statement, parameter_types, from_sql from pg_prepared_statements order by name").fetchall())
        conn.execute("create table altered (a int)")
        conn.execute("insert into altered values (1)")
        print(conn.execute("select * from altered", prepare=True).fetchall())
        conn.execute("alter table altered add b text default 'x'")
        try:
            print(conn.execute("select * from altered", prepare=True).fetchall())
        except psycopg.Error as error:
            print(sections.told(error))
        conn.execute("deallocate all")
        print(conn.execute("select count(*) from pg_prepared_statements").fetchone())


@part
def copies():
    with connect() as conn:
        conn.execute("create table copied (a int, b text, c timestamptz, d jsonb, e numeric)")
        conn.execute("set timezone to 'UTC'")
        cur = conn.cursor()
        with cur.copy("copy copied from stdin") as copy:
            for i in range(3):
                copy.write_row([i, f"tab\tline\n\\{i}", datetime.datetime(2024, 1, i + 1, tzinfo=UTC), Jsonb([i]), None])
        print(cur.rowcount, cur.statusmessage)
        with cur.copy("copy copied from stdin (format binary)") as copy:
            copy.set_types(["int4", "text", "timestamptz", "jsonb", "numeric"])
            for i in range(3):
                copy.write_row([i + 10, None, datetime.datetime(2024, 1, i + 1, tzinfo=UTC), Jsonb({}), decimal.Decimal("1.10")])
        print(cur.rowcount)
        for options in ["", "(format csv, header)", "(format csv, force_quote *, delimiter ';', null 'nil')"]:
            with cur.copy(f"copy (select * from copied order by a) to stdout {options}") as copy:
                print(b"".join(copy))
        with cur.copy("copy (select * from copied order by a) to stdout (format binary)") as copy:
            copy.set_types(["int4", "text", "timestamptz", "jsonb", "numeric"])
            print(list(copy.rows()))
        with cur.copy("copy (select 1, 'x'::text, null::int) to stdout (format binary)") as copy:
            print(b"".join(copy).hex())
        conn.commit()
        for data in ["x\ty\n", "1\n", "1\ta\tb\tc\td\te\n"]:
            try:
                with cur.copy("copy copied from stdin") as copy:
                    copy.write(data)
            except psycopg.Error as error:
                print(sections.told(error), "|", error.diag.context)
            conn.rollback()
        try:
            with cur.copy("copy copied from stdin") as copy:
                copy.write("1\ta\n")
                raise KeyError("mine")
        except KeyError as error:
            print("KeyError", error, conn.info.transaction_status.name)
        conn.rollback()


@part
def cursors():
    with connect() as conn:
        with conn.cursor("named", scrollable=True) as cur:
            cur.execute("select generate_series(1, 10)")
            print(cur.fetchmany(3), cur.fetchone(), cur.rownumber)
            cur.scroll(-2)
            print(cur.fetchone())
            cur.scroll(8, "absolute")
            print(cur.fetchall())
        with conn.cursor("held", withhold=True) as cur:
            cur.itersize = 4
            cur.execute("select g, g::text from generate_series(1, %s) g", [9])
            print([c.name for c in cur.description])
            conn.commit()
            print(list(cur))
            print(conn.execute("select name, is_holdable, is_scrollable, is_binary from pg_cursors").fetchall())
        conn.commit()
        cur = conn.execute("declare stolen cursor for select 7")
        with conn.cursor("stolen") as stolen:
            print(stolen.fetchall())
        print([row for row in conn.cursor().stream("select generate_series(1, 4)")])


@part
def cancel():
    with connect(autocommit=True) as conn:
        timer = threading.Timer(0.5, conn.cancel_safe)
        timer.start()
        try:
            conn.execute("select pg_sleep(30)")
        except psycopg.Error as error:
            print(sections.told(error))
        timer.join()
        conn.execute("set statement_timeout to 100")
        try:
            conn.execute("select pg_sleep(30)")
        except psycopg.Error as error:
            print(sections.told(error))
        conn.execute("reset statement_timeout")
        with connect(autocommit=True) as locker:
            locker.execute("begin")
            locker.execute("lock table steps")
            conn.execute("set lock_timeout to 100")
            try:
                conn.execute("select * from steps")
            except psycopg.Error as error:
                print(sections.told(error))
            locker.execute("rollback")


@part
def notices():
    with connect(autocommit=True) as conn:
        conn.add_notice_handler(lambda d: print("notice", d.severity, d.sqlstate, d.message_primary, d.message_detail, d.message_hint))
        conn.execute("drop table if exists nowhere")
        conn.execute("do $$ begin raise notice 'n %', 1; raise warning using message = 'w', detail = 'd', hint = 'h', errcode = '01234'; end $$")
        conn.execute("create table if not exists steps (n int)")
        conn.execute("rollback")
        conn.execute("set client_min_messages to error")
        conn.execute("drop table if exists nowhere")


@part
def notifications():
    with connect(autocommit=True) as one, connect(autocommit=True) as two:
        one.execute("listen news")
        two.execute("select pg_notify('news', 'first')")
        two.execute("notify news, 'second'")
        with two.transaction():
            two.execute("notify news, 'same'")
            two.execute("notify news, 'same'")
        got = [(n.channel, n.payload, n.pid == two.info.backend_pid) for n in one.notifies(timeout=10, stop_after=3)]
        print(got)
        one.execute("unlisten *")
        print(one.execute("select pg_listening_channels()").fetchall())


@part
def two_phases():
    with connect() as conn:
        for name, how in [("commit", "tpc_commit"), ("rollback", "tpc_rollback")]:
            xid = conn.xid(1, name, "branch")
            conn.tpc_begin(xid)
            conn.execute("insert into steps values (%s)", [1000 + len(name)])
            conn.tpc_prepare()
            with connect() as other:
                print([str(x) for x in other.tpc_recover() if x.database == conn.info.dbname])
            getattr(conn, how)()
        conn.tpc_begin("single")
        conn.execute("insert into steps values (2000)")
        conn.tpc_commit()
        print(conn.execute("select n from steps where n >= 1000 order by n").fetchall())
        conn.rollback()
        conn.tpc_begin("other session")
        conn.execute("insert into steps values (3000)")
        conn.tpc_prepare()
        conn.close()
    with connect() as conn:
        conn.tpc_commit("other session")
        print(conn.execute("select n from steps where n >= 3000 order by n").fetchall())


@part
def large_objects():
    with connect() as conn:
        for text in ["select lo_create(0) > 0", "select lo_from_bytea(4711, 'abc'::bytea)", "select lo_get(4711)",
                     "select lo_put(4711, 1, 'X'::bytea)", "select convert_from(lo_get(4711), 'UTF8')", "select lo_unlink(4711)"]:
            try:
                print(conn.execute(text).fetchone())
                conn.commit()
            except psycopg.Error as error:
                print(sections.told(error))
                conn.rollback()


@part
def user_types():
    with connect(autocommit=True) as conn:
        conn.execute("create type mood as enum ('sad', 'ok', 'happy')")
        conn.execute("create type pair as (a int, b text, m mood)")
        conn.execute("create domain positive as int check (value > 0)")
        info = EnumInfo.fetch(conn, "mood")
        print(info.labels)
        register_enum(info, conn, Mood)
        pair = CompositeInfo.fetch(conn, "pair")
        print(pair.field_names)
        register_composite(pair, conn)
        conn.execute("create table typed (m mood, ms mood[], p pair, ps pair[], d positive, ds int[])")
        value = pair.python_type(1, 'x,"y"', Mood.ok)
        for mark in ["%t", "%b"]:
            try:
                conn.execute(f"insert into typed values ({','.join([mark] * 6)})",
                             [Mood.ok, [Mood.sad, None], value, [value, None], 5, [1, 2]])
            except psycopg.Error as error:
                print(mark, sections.told(error))
        for binary in [False, True]:
            print(conn.execute("select * from typed", binary=binary).fetchall())
        for text in ["'bad'::mood", "0::positive", "row(1,'x','bad')::pair"]:
            try:
                print(conn.execute("select " + text).fetchone())
            except psycopg.Error as error:
                print(sections.told(error))
        print(TypeInfo.fetch(conn, "positive").name, TypeInfo.fetch(conn, "nosuchtype"))


@part
def own_ranges():
    with connect(autocommit=True) as conn:
        conn.execute("create type moods as range (subtype = mood)")
        register_enum(EnumInfo.fetch(conn, "mood"), conn, Mood)
        register_range(RangeInfo.fetch(conn, "moods"), conn)
        found = MultirangeInfo.fetch(conn, "moods_multirange")
        register_multirange(found, conn)
        for binary in [False, True]:
            print(conn.execute("select %s::moods, '{[sad,ok]}'::moods_multirange", [Range(Mood.sad, Mood.happy)], binary=binary).fetchone())


@part
def settings():
    with connect(options="-c search_path=pg_catalog -c application_name=mine", autocommit=True) as conn:
        print(conn.info.parameter_status("application_name"), conn.execute("show search_path").fetchone())
        for name in ["server_encoding", "client_encoding", "is_superuser", "session_authorization", "DateStyle", "IntervalStyle",
                     "TimeZone", "integer_datetimes", "standard_conforming_strings", "default_transaction_read_only", "in_hot_standby"]:
            print(name, conn.info.parameter_status(name))
        conn.execute("set client_encoding to latin1")
        print(conn.info.encoding, conn.execute("select 'é'").fetchone())
        conn.execute("set datestyle to 'German, DMY'")
        print(conn.execute("select '2024-03-01'::date::text, '1.2.2024'::date::text").fetchone())
        conn.execute("discard all")
        print(conn.info.server_version // 10000, conn.info.parameter_status("application_name"), conn.info.parameter_status("DateStyle"))


if __name__ == "__main__":
    sections.run()
