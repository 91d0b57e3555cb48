// node-postgres: types both ways, prepared statements, COPY, cursors, notifications, cancel, pools.
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import pg from "pg";
import { from, to } from "pg-copy-streams";
import Cursor from "pg-cursor";
import { address, attempt, part, run, say } from "./sections.mjs";

const connected = async (body, options = {}) => {
  const client = new pg.Client({ ...address, ...options });
  await client.connect();
  try {
    return await body(client);
  } finally {
    await client.end();
  }
};

const values = {
  bool: [true, false],
  int2: [-32768],
  int4: [2147483647, -1],
  int8: ["9223372036854775807"],
  float4: [1.5, NaN],
  float8: [0.1, Infinity, -1e300],
  numeric: ["123456789012.345678901234567890", "NaN"],
  text: ["", "Ünïcödé ✓ 𝒳", "a\\b'c\"d"],
  varchar: ["x"],
  bpchar: ["x "],
  bytea: [Buffer.from([0, 1, 255, 39])],
  date: ["2024-02-29", "infinity"],
  time: ["23:59:59.999999"],
  timetz: ["01:02:03+05:30"],
  timestamp: ["2000-01-01 00:00:00.123"],
  timestamptz: [new Date(Date.UTC(2024, 2, 31, 1, 30)), "-infinity"],
  interval: ["1 year 2 mons 3 days 04:05:06.7"],
  uuid: ["12345678-1234-5678-1234-567812345678"],
  json: [{ b: 1, a: [null, true] }],
  jsonb: [{ b: 1, a: [null, true] }, '"text"', "null"],
  inet: ["10.1.2.3/8"],
  cidr: ["10.0.0.0/8"],
  macaddr: ["08:00:2b:01:02:03"],
  bit: ["1"],
  varbit: ["10101"],
  int4range: ["[1,5)"],
  tstzrange: ["[2024-01-01 00:00+00,)"],
  datemultirange: ["{[2024-01-01,2024-01-05)}"],
  tsvector: ["'a' 'b'"],
  "int4[]": [[], [1, null, 3], [[1, 2], [3, 4]]],
  "text[]": [["a", null, "NULL", 'q"u\\o', ""]],
  "numeric[]": [["1.10", null]],
  "bool[]": [[true, null]],
  "bytea[]": [[Buffer.from([0]), Buffer.alloc(0)]],
  "timestamptz[]": [[new Date(0)]],
  "uuid[]": [["00000000-0000-0000-0000-000000000007"]],
  "jsonb[]": [[{ a: 1 }]],
  "interval[]": [["1 day"]],
};

part("types", () =>
  connected(async (client) => {
    await client.query("set timezone to 'UTC'");
    for (const [type, all] of Object.entries(values)) {
      for (const value of all) {
        const got = await attempt(client.query(`select $1::${type} as v`, [value]));
        say(type, got?.rows[0].v);
        const back = await attempt(client.query({ text: `select $1::${type} as v`, values: [value], rowMode: "array" }));
        say(back?.fields.map(({ name, dataTypeID, dataTypeSize, dataTypeModifier, format }) => [name, dataTypeID, dataTypeSize, dataTypeModifier, format]));
      }
      say(type, (await client.query(`select $1::${type} as v`, [null])).rows[0].v);
    }
  }));

// This driver reads few types in binary form.
part("binary", () =>
  connected(async (client) => {
    const texts = ["1::int2", "2::int4", "3::int8", "1.5::float4", "0.1::float8", "true", "'text'::text", "array[1,2]", "1.25::numeric", "'2024-01-01'::timestamp"];
    for (const text of texts) {
      say(text, (await client.query({ text: `select ${text} as v`, values: [], binary: true })).rows[0].v);
    }
  }));

part("geometry", () =>
  connected(async (client) => say((await client.query("select $1::point as v, '<(1,2),3>'::circle as c", ["(1,2)"])).rows)));

part("rows", () =>
  connected(async (client) => {
    await client.query(`create table items (id serial primary key, name text not null unique,
      price numeric(10,2) check (price >= 0), tags text[] default '{}', extra jsonb, made timestamptz default '2024-01-01 00:00+00')`);
    say((await client.query("insert into items (name, price) values ($1, $2), ($3, $4) returning *", ["a", 1, "b", "2.5"])).rows);
    const updated = await client.query("update items set price = price * $1, extra = $2 where name = any($3) returning id", [2, { k: [1] }, ["a", "x"]]);
    say(updated.command, updated.rowCount, updated.rows);
    say((await client.query("select * from items order by id limit $1 offset $2", [10, 0])).rows);
    const many = await client.query("select 1 as a; insert into items (name) values ('c'); select count(*) from items");
    say(many.map(({ command, rowCount, rows }) => [command, rowCount, rows]));
    say((await client.query("delete from items where name = $1", ["c"])).rowCount);
    for (const text of ["insert into items (name) values ('a')", "insert into items (name, price) values ('z', -1)", "insert into items (name) values (null)",
      "select * from nowhere", "select 1 +", "select $1::int"]) {
      const error = await client.query(text, text.includes("$1") ? ["x"] : undefined).then(() => null, (e) => e);
      const { severity, code, message, detail, hint, position, schema, table, column, constraint, where } = error;
      say([severity, code, message, detail, hint, position, schema, table, column, constraint, where]);
    }
  }));

part("prepared", () =>
  connected(async (client) => {
    const query = { name: "one", text: "select $1::int + $2 as sum" };
    say((await client.query({ ...query, values: [1, 2] })).rows, (await client.query({ ...query, values: [3, 4] })).rows);
    say((await client.query("select name, statement, parameter_types, from_sql from pg_prepared_statements")).rows);
    say(await Promise.all([5, 6, 7].map((n) => client.query("select $1::int as n", [n]).then(({ rows }) => rows[0].n))));
  }));

part("transactions", () =>
  connected(async (client) => {
    await client.query("create table steps (n int primary key)");
    await client.query("begin");
    await client.query("insert into steps values (1)");
    await client.query("savepoint s");
    await attempt(client.query("insert into steps values (1)"));
    await attempt(client.query("select 1"));
    await client.query("rollback to s");
    await client.query("insert into steps values (2)");
    await client.query("release s");
    await client.query("commit");
    say((await client.query("select n from steps order by n")).rows);
    await attempt(client.query("insert into steps values (3); insert into steps values (3)"));
    say((await client.query("select count(*)::int from steps")).rows);
  }));

part("retries", () =>
  connected((one) =>
    connected(async (two) => {
      await one.query("create table counted (id int primary key, value int); insert into counted values (1, 0)");
      for (const client of [one, two]) {
        await client.query("begin isolation level repeatable read");
        await client.query("select * from counted");
      }
      await one.query("update counted set value = 1 where id = 1");
      await one.query("commit");
      await attempt(two.query("update counted set value = 2 where id = 1"));
      say((await two.query("commit")).command);
    })));

part("copies", () =>
  connected(async (client) => {
    await client.query("create table copied (a int, b text)");
    const lines = Array.from({ length: 5000 }, (_, i) => `${i}\tline ${i}\n`);
    const into = client.query(from("copy copied from stdin"));
    await pipeline(Readable.from(lines), into);
    say(into.rowCount);
    let bytes = 0;
    const out = client.query(to("copy copied to stdout (format csv)"));
    for await (const chunk of out) bytes += chunk.length;
    say(out.rowCount, bytes);
    await attempt(pipeline(Readable.from(["x\ty\n"]), client.query(from("copy copied from stdin"))));
    say((await client.query("select count(*)::int from copied")).rows);
  }));

part("cursors", () =>
  connected(async (client) => {
    const cursor = client.query(new Cursor("select g, g * $1::int as twice from generate_series(1, 7) g", [2]));
    for (let rows = await cursor.read(3); rows.length; rows = await cursor.read(3)) say(rows);
    await cursor.close();
    const early = client.query(new Cursor("select generate_series(1, 1000000) n"));
    say(await early.read(2));
    await early.close();
    say((await client.query("select 1 as after")).rows);
  }));

part("notifications and notices", () =>
  connected((one) =>
    connected(async (two) => {
      one.on("notice", ({ severity, code, message, detail, hint }) => say("notice", severity, code, message, detail, hint));
      await one.query("do $$ begin raise notice 'n'; raise warning 'w' using hint = 'h'; end $$");
      const heard = [];
      const all = new Promise((resolve) => one.on("notification", ({ channel, payload }) => heard.push([channel, payload]) === 2 && resolve()));
      await one.query('listen "News"');
      await two.query("select pg_notify('News', 'first')");
      await two.query('notify "News"');
      await all;
      say(heard);
    })));

part("cancel", () =>
  connected((one) =>
    connected(async (two) => {
      const { rows: [{ pid }] } = await one.query("select pg_backend_pid() as pid");
      const sleeping = attempt(one.query("select pg_sleep(30)"));
      await new Promise((resolve) => setTimeout(resolve, 300));
      say((await two.query("select pg_cancel_backend($1)", [pid])).rows);
      await sleeping;
      one.on("error", () => {});
      const lost = attempt(one.query("select pg_sleep(30)"));
      await new Promise((resolve) => setTimeout(resolve, 300));
      say((await two.query("select pg_terminate_backend($1)", [pid])).rows);
      await lost;
    })));

part("timeouts", () =>
  connected((client) => attempt(client.query("select pg_sleep(30)")), { statement_timeout: 100, application_name: "mine" }));

part("pool", async () => {
  const pool = new pg.Pool({ ...address, max: 3, options: "-c search_path=pg_catalog,public" });
  say((await Promise.all(Array.from({ length: 10 }, (_, i) => pool.query("select $1::int as i", [i])))).map(({ rows }) => rows[0].i));
  say((await pool.query("show search_path")).rows);
  await pool.end();
});

part("user types", () =>
  connected(async (client) => {
    await client.query("create type mood as enum ('sad', 'ok'); create type pair as (a int, b text)");
    await client.query("create table typed (m mood, ms mood[], p pair, ps pair[])");
    await client.query("insert into typed values ($1, $2, $3, $4)", ["ok", ["sad", null], '(1,"x,y")', ["(1,a)", null]]);
    say((await client.query("select * from typed")).rows);
    say((await client.query("select to_jsonb(typed) as j, row_to_json(typed) as r from typed")).rows);
    await attempt(client.query("insert into typed (m) values ($1)", ["bad"]));
    say((await client.query("select enum_range(null::mood) as all, (p).b from typed")).rows);
  }));

await run();
