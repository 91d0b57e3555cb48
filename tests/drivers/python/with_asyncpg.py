"""asyncpg: everything in binary form; prepared statements, COPY, cursors, codecs of user types, listeners, cancel."""
import asyncio
import datetime
import decimal
import ipaddress
import json
import uuid

import asyncpg

import sections
from sections import part

UTC = datetime.timezone.utc
VALUES = {
    "bool": [True], "int2": [-32768], "int4": [2**31 - 1], "int8": [-(2**63)], "oid": [4294967295], "float4": [1.5], "float8": [-1e300, float("nan")],
    "numeric": [decimal.Decimal("123456789012.345678901234567890"), decimal.Decimal("NaN"), decimal.Decimal("0.00"), decimal.Decimal("-1e-20")],
    "text": ["", "Ünïcödé ✓ 𝒳"], "varchar": ["x"], "bpchar": ["x "], "name": ["n"], '"char"': [b"x"], "bytea": [b"\x00\x01\xff"],
    "date": [datetime.date(2024, 2, 29), datetime.date.max], "time": [datetime.time(23, 59, 59, 999999)],
    "timetz": [datetime.time(1, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))],
    "timestamp": [datetime.datetime(2024, 2, 29, 1, 2, 3, 4), datetime.datetime.max], "timestamptz": [datetime.datetime(2024, 2, 29, tzinfo=UTC)],
    "interval": [datetime.timedelta(days=400, seconds=5, microseconds=6)], "uuid": [uuid.UUID(int=7)], "json": ['{"b": 1,  "a": [null]}'],
    "jsonb": ['{"b": 1,  "a": [null]}'], "inet": [ipaddress.ip_interface("10.1.2.3/8"), ipaddress.ip_address("::1")], "cidr": [ipaddress.ip_network("10.0.0.0/8")],
    "macaddr": ["08:00:2b:01:02:03"], "bit(3)": [asyncpg.BitString("101")], "varbit": [asyncpg.BitString("10101")],
    "int4range": [asyncpg.Range(1, 5), asyncpg.Range(empty=True), asyncpg.Range(None, 7)], "numrange": [asyncpg.Range(decimal.Decimal("1.5"), None)],
    "tstzrange": [asyncpg.Range(datetime.datetime(2024, 1, 1, tzinfo=UTC), None)], "int4multirange": [[asyncpg.Range(1, 3), asyncpg.Range(5, 7)]],
    "int4[]": [[], [1, None, 3], [[1, 2], [3, 4]]], "text[]": [["a", None, ""]], "uuid[]": [[uuid.UUID(int=1)]], "timestamptz[]": [[datetime.datetime(2024, 1, 1, tzinfo=UTC)]],
    "numeric[]": [[decimal.Decimal("1.10")]], "tsvector": ["'a' 'b'"], "tid": [(1, 2)],
    "jsonb[]": [["1", "{}"]], "bytea[]": [[b"\x00"]], "interval[]": [[datetime.timedelta(1)]], "pg_lsn": ["0/16B3748"], "xid": [7], "record": [],
}


async def connect(**options):
    return await asyncpg.connect(**sections.address(), **options)


async def attempt(conn, text, *values):
    try:
        print([tuple(row) for row in await conn.fetch(text, *values)])
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        print("!", sections.told(error))


@part
async def types():
    conn = await connect()
    for name, values in VALUES.items():
        for value in [*values, None]:
            try:
                statement = await conn.prepare(f"select $1::{name} as v")
                print(name, statement.get_parameters()[0].name, statement.get_attributes()[0].type.name, repr(await statement.fetchval(value)))
            except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                print(name, "!", sections.told(error))
    for text in ["row(1, 'a', null)", "array[row(1, 2)]", "'pg_class'::regclass", "'int4'::regtype", "'a & b'::tsquery",
                 "'{1,2}'::int2vector", "'$.a'::jsonpath", "'public'::regnamespace", "'now'::regproc", "null"]:
        await attempt(conn, "select " + text)
    await conn.close()


@part
async def geometry():
    conn = await connect()
    print(await conn.fetchval("select $1::point", asyncpg.Point(1, 2)), await conn.fetchval("select $1::box", asyncpg.Box((2, 2), (1, 1))))
    await conn.close()


@part
async def money():
    conn = await connect()
    await attempt(conn, "select 1::money")
    await conn.close()


@part
async def xml():
    conn = await connect()
    await attempt(conn, "select '<a/>'::xml")
    await conn.close()


@part
async def rows():
    conn = await connect()
    print(await conn.execute("create table items (id serial primary key, name text unique not null, price numeric(10,2) check (price >= 0), tags text[] default '{}')"))
    print(await conn.fetchrow("insert into items (name, price) values ($1, $2) returning *", "a", decimal.Decimal(1)))
    await conn.executemany("insert into items (name, price) values ($1, $2)", [(f"n{i}", decimal.Decimal(i)) for i in range(10)])
    print(await conn.execute("update items set price = price + 1 where name = any($1::text[])", ["n1", "n2"]))
    print(await conn.fetchmany("insert into items (name) values ($1) returning id", [("x",), ("y",)]))
    print(await conn.fetchval("select sum(price) from items"), await conn.execute("delete from items where price is null"))
    statement = await conn.prepare("select id, name, price, tags, now() > 'epoch' as later from items where id > $1 and price < $2")
    print([(p.name, p.kind, p.schema) for p in statement.get_parameters()], [(a.name, a.type.name) for a in statement.get_attributes()])
    print(await statement.fetch(3, decimal.Decimal(4)), statement.get_statusmsg())
    for text, *values in [("insert into items (name) values ('a')",), ("insert into items (price) values (1)",), ("insert into items (name, price) values ('q', $1)", decimal.Decimal(-1)),
                          ("select $1::int", "x"), ("select 1/$1::int", 0), ("selekt",), ("select $1", 1), ("select 1; select 2",)]:
        await attempt(conn, text, *values)
    try:
        await conn.executemany("insert into items (name) values ($1)", [("p",), ("p",), ("r",)])
    except asyncpg.PostgresError as error:
        print(sections.told(error), error.detail, error.constraint_name, error.table_name)
    print(await conn.fetchval("select count(*) from items where name in ('p', 'r')"))
    await conn.execute("alter table items add more int default 5")
    print(await statement.fetch(8, decimal.Decimal(9)))
    print(await conn.fetchrow("select * from items where name = $1", "a"))
    await conn.execute("alter table items drop more")
    print(await conn.fetchrow("select * from items where name = $1", "a"))
    await conn.close()


@part
async def transactions():
    conn, other = await connect(), await connect()
    await conn.execute("create table steps (n int primary key)")
    async with conn.transaction():
        await conn.execute("insert into steps values (1)")
        try:
            async with conn.transaction():
                await conn.execute("insert into steps values (2), (1)")
        except asyncpg.UniqueViolationError as error:
            print(sections.told(error))
        await conn.execute("insert into steps values (3)")
    await attempt(conn, "select * from steps order by n")
    for level in ["read_committed", "repeatable_read", "serializable"]:
        async with conn.transaction(isolation=level, readonly=True, deferrable=level == "serializable"):
            await attempt(conn, "show transaction_isolation")
    tries = 0
    while True:
        try:
            async with conn.transaction(isolation="repeatable_read"):
                await conn.fetch("select * from steps")
                if not tries:
                    await other.execute("update steps set n = n + 10")
                await conn.execute("update steps set n = n + 1")
                break
        except asyncpg.SerializationError:
            tries += 1
    print(tries, await conn.fetch("select * from steps order by n"))
    await other.close()
    await conn.close()


@part
async def copies():
    conn = await connect()
    await conn.execute("create table copied (a int, b text, c numeric, d timestamptz, e jsonb, f int[])")
    at = datetime.datetime(2024, 1, 1, tzinfo=UTC)
    records = [(i, f"line\t{i}", decimal.Decimal(i) / 4, at, "[1]", [i, None]) for i in range(100)]
    print(await conn.copy_records_to_table("copied", records=records))
    async def chunks():
        yield b"1000,x\n1001,"
        yield b'"y,z"\n'
    print(await conn.copy_to_table("copied", source=chunks(), columns=["a", "b"], format="csv"))
    out = []
    async def keep(data):
        out.append(data)
    print(await conn.copy_from_query("select * from copied where a > $1 order by a", 97, output=keep, format="csv", header=True), b"".join(out))
    print(await conn.copy_from_table("copied", columns=["a"], output=keep))
    try:
        await conn.copy_records_to_table("copied", records=[("x",)], columns=["a"])
    except Exception as error:
        print(type(error).__name__)
    await attempt(conn, "select count(*) from copied")
    await conn.close()


@part
async def cursors():
    conn = await connect()
    async with conn.transaction():
        print([row[0] async for row in conn.cursor("select generate_series(1, $1)", 10, prefetch=3)])
        cursor = await conn.cursor("select generate_series(1, 100)")
        print(await cursor.fetch(2), await cursor.forward(50), await cursor.fetchrow())
    await conn.close()


@part
async def messages():
    conn, other = await connect(), await connect()
    heard = asyncio.Queue()
    await conn.add_listener("news", lambda _, pid, channel, payload: heard.put_nowait((pid == other.get_server_pid(), channel, payload)))
    conn.add_log_listener(lambda _, message: print("notice", message.severity, message.sqlstate, message.message))
    await other.execute("select pg_notify('news', 'hello')")
    print(await asyncio.wait_for(heard.get(), 10))
    await conn.execute("do $$ begin raise notice 'n'; raise warning 'w'; end $$")
    try:
        await conn.fetch("select pg_sleep(30)", timeout=0.3)
    except asyncio.TimeoutError:
        print("timed out")
    await attempt(conn, "select 1")
    sleeping = asyncio.ensure_future(attempt(conn, "select pg_sleep(30)"))
    await asyncio.sleep(0.3)
    cancelled = await other.fetchval("select pg_cancel_backend($1)", conn.get_server_pid())
    await sleeping
    print(cancelled)
    await conn.reset()
    print(conn.get_settings().server_encoding, conn.get_server_version().major)
    await other.close()
    await conn.close()


@part
async def user_types():
    conn = await connect()
    await conn.execute("""create schema s; create type mood as enum ('sad', 'ok'); create type pair as (a int, b text, m mood); create type s.outer as (p pair, ps pair[]);
        create domain positive as int check (value > 0); create domain moods as mood[];
        create table typed (m mood, ms mood[], p pair, ps pair[], o s.outer, d positive, x moods)""")
    value = (1, 'x,"y"', "ok")
    for _ in range(2):
        try:
            print(await conn.fetchrow("insert into typed values ($1, $2, $3, $4, $5, $6, $7) returning *", "ok", ["sad", None], value, [value, None], (value, [value]), 5, ["sad"]))
        except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            print(sections.told(error))
    statement = await conn.prepare("select * from typed")
    print([(a.name, a.type.name, a.type.kind, a.type.schema) for a in statement.get_attributes()])
    await conn.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    print(await conn.fetchval("select $1::jsonb", {"a": [1]}))
    await conn.set_type_codec("mood", encoder=lambda v: v.lower(), decoder=lambda v: v.upper(), schema="public")
    print(await conn.fetchval("select $1::mood", "OK"))
    await attempt(conn, "select $1::positive", -1)
    await attempt(conn, "select $1::mood", "bad")
    await conn.execute("create extension hstore; create extension citext")
    await conn.set_builtin_type_codec("hstore", codec_name="pg_contrib.hstore")
    print(await conn.fetchval("select $1::hstore", {"a": "1", "b": None}), await conn.fetchval("select 'A'::citext = 'a'"))
    print(await (await conn.prepare("select * from typed where d = 1")).explain(analyze=False) is not None)
    await conn.close()


@part
async def own_ranges():
    conn = await connect()
    await conn.execute("create type spans as range (subtype = float8)")
    print(await conn.fetchrow("select $1::spans, $2::spans[]", asyncpg.Range(0.5, 1.5), [asyncpg.Range(0.5, None)]))
    await conn.close()


@part
async def pools():
    async with asyncpg.create_pool(**sections.address(), min_size=2, max_size=4, server_settings={"application_name": "mine"}, statement_cache_size=0) as pool:
        print(sorted(await asyncio.gather(*[pool.fetchval("select $1::int", i) for i in range(20)])))
        print(await pool.fetchval("show application_name"))


async def main():
    for function in sections.PARTS:
        print("#", function.__name__)
        try:
            await function()
        except Exception as error:
            print("!", sections.told(error))


if __name__ == "__main__":
    asyncio.run(main())
