// postgres.js: types, fragments, nested transactions, cursors, COPY, listeners, its own reading of array types.
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import postgres from "postgres";
import { address, attempt, part, run, say } from "./sections.mjs";

const { host, port, user, database } = address;
const notices = [];
const sql = postgres({ host, port, user: user, database, max: 3, onnotice: ({ severity, code, message }) => notices.push([severity, code, message]), connection: { application_name: "mine", TimeZone: "UTC" } });

part("types", async () => {
  const row = (await sql`select ${1}::int as int, ${"9007199254740993"}::int8 as big, ${1.5}::float8 as float, ${"1.50"}::numeric as num, ${"t"}::text as text, ${true}::bool as bool,
    ${new Date(0)}::timestamptz as at, ${"2024-02-29"}::date as date, ${Buffer.from([0, 255])}::bytea as raw, ${sql.json({ a: [1, null] })}::jsonb as json, ${null}::int as null,
    ${"12345678-1234-5678-1234-567812345678"}::uuid as uuid, ${"[1,5)"}::int4range as range, ${"1 day"}::interval as interval, ${"10.0.0.1"}::inet as inet`)[0];
  say(row);
  say(await sql`select ${sql.array([1, 2, 3])}::int[] as ints, ${["a", 'b"c', null]}::text[] as texts, ${sql.array([new Date(0)], 1184)}::timestamptz[] as times, ${[[1, 2], [3, 4]]}::int[] as grid`);
  say((await sql`select 1 as a, 'x' as b`).columns.map(({ name, type, number }) => [name, type, number]));
  say((await sql`select $1::int + $2 as sum`.describe()).types);
  say((await sql`select ${1}::int8 = any(${[1, 2]}::int8[]) as found, ${"a"}::varchar = any(${["a"]}::varchar[]) as text`)[0]);
  const described = await sql`select * from pg_class where oid = ${1} and relname = ${"x"}`.describe();
  say(described.types, described.columns.length);
});

part("rows", async () => {
  await sql`create table items (id int generated always as identity primary key, name text unique not null, price numeric, tags text[], extra jsonb)`;
  say(await sql`insert into items ${sql([{ name: "a", price: 1, tags: ["x"] }, { name: "b", price: "2.5", tags: [] }], "name", "price", "tags")} returning *`);
  const filter = (price) => sql`where price > ${price}`;
  say((await sql`update items set ${sql({ price: 7, extra: { k: 1 } }, "price", "extra")} ${filter(2)} returning name, price, extra`)[0]);
  say(await sql`select ${sql(["name", "price"])} from ${sql("items")} where name in ${sql(["a", "b", "c"])} order by ${sql("name")} desc`);
  const { count, command } = await sql`delete from items where name = 'b'`;
  say(count, command);
  for (const bad of [() => sql`insert into items (name) values ('a')`, () => sql`insert into items (name) values (${null})`, () => sql`select * from nowhere`, () => sql`select ${"x"}::int`, () => sql.unsafe("select 1; selekt 2")]) {
    await attempt(bad());
  }
  say(await sql.unsafe("select 1 as a; select 2 as b"));
  say((await sql`select * from items`.values()), (await sql`select 1 as one`.raw())[0][0]);
});

part("transactions", async () => {
  await sql`create table steps (n int primary key)`;
  await attempt(sql.begin("isolation level serializable", async (tx) => {
    await tx`insert into steps values (1)`;
    await attempt(tx.savepoint(async (inner) => {
      await inner`insert into steps values (2)`;
      await inner`insert into steps values (1)`;
    }));
    say((await tx`show transaction_isolation`)[0]);
    return [await tx`insert into steps values (3)`, await tx`insert into steps values (4)`];
  }));
  await attempt(sql.begin(async (tx) => {
    await Promise.all([5, 6, 7].map((n) => tx`insert into steps values (${n})`));
    throw new Error("mine");
  }));
  say(await sql`select array_agg(n order by n) as all from steps`);
});

part("streams", async () => {
  const sums = [];
  await sql`select g from generate_series(1, 10) g`.cursor(4, (rows) => { sums.push(rows.length); });
  for await (const rows of sql`select g from generate_series(1, 10) g`.cursor(3)) sums.push(rows.map(({ g }) => g));
  await sql`select g from generate_series(1, 3) g`.forEach(({ g }) => sums.push(g));
  say(sums);
  await sql`create table copied (a int, b text)`;
  await pipeline(Readable.from(["1\tx\n", "2\ty\n"]), await sql`copy copied from stdin`.writable());
  const out = [];
  for await (const chunk of await sql`copy copied to stdout`.readable()) out.push(String(chunk));
  say(out.join(""));
});

part("messages", async () => {
  const heard = [];
  const all = new Promise((resolve) => sql.listen("news", (payload) => heard.push(payload) === 2 && resolve(), async () => { await sql.notify("news", "one"); await sql.notify("news", "two"); }));
  await all;
  say(heard);
  const query = sql`select pg_sleep(30)`;
  setTimeout(() => query.cancel(), 300);
  await attempt(query);
  await sql`do $$ begin raise notice 'n'; end $$`;
  say(notices);
});

await run();
await sql.end();
