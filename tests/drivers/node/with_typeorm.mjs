// TypeORM: entities with PostgreSQL's types, the schema made from them and looked at again, migrations forth and back.
import "reflect-metadata";
import { DataSource, EntitySchema, In, IsNull, Like, MoreThan, Raw, Table, TableColumn, TableForeignKey, TableIndex } from "typeorm";
import { address, attempt, part, run, say } from "./sections.mjs";

const { host, port, user: username, database } = address;
const User = new EntitySchema({
  name: "user", comment: "who",
  columns: {
    id: { type: "int", primary: true, generated: "increment" }, email: { type: "varchar", length: 100, unique: true, comment: "where to" },
    mood: { type: "enum", enum: ["sad", "ok"], default: "ok" }, moods: { type: "enum", enum: ["a", "b"], array: true, nullable: true }, price: { type: "numeric", precision: 10, scale: 2, nullable: true },
    ratio: { type: "float", nullable: true }, big: { type: "bigint", nullable: true }, key: { type: "uuid", generated: "uuid" }, data: { type: "jsonb", default: {} }, tags: { type: "text", array: true, default: "{}" },
    day: { type: "date", nullable: true }, at: { type: "time", precision: 3, nullable: true }, made: { type: "timestamptz", default: () => "'2024-01-01 00:00+00'" }, took: { type: "interval", nullable: true },
    raw: { type: "bytea", nullable: true }, net: { type: "inet", nullable: true }, span: { type: "int4range", nullable: true }, on: { type: "boolean", default: true }, ci: { type: "citext", nullable: true },
    twice: { type: "numeric", generatedType: "STORED", asExpression: "price * 2", nullable: true }, gone: { type: "timestamptz", deleteDate: true, nullable: true }, version: { type: "int", version: true }, kv: { type: "hstore", hstoreType: "object", nullable: true },
  },
  indices: [{ name: "user_day", columns: ["day", "price"], where: '"on"' }], checks: [{ name: "user_price", expression: "price >= 0" }], exclusions: [{ name: "user_span", expression: "USING gist (span WITH &&)" }],
  relations: { posts: { type: "one-to-many", target: "post", inverseSide: "user", cascade: true } },
});
const Post = new EntitySchema({
  name: "post", columns: { id: { type: "bigint", primary: true, generated: "identity" }, title: { type: "text" }, score: { type: "int", nullable: true } }, uniques: [{ name: "post_once", columns: ["title", "score"] }],
  relations: { user: { type: "many-to-one", target: "user", inverseSide: "posts", onDelete: "CASCADE", joinColumn: true }, tags: { type: "many-to-many", target: "tag", joinTable: true, cascade: true } },
});
const Tag = new EntitySchema({ name: "tag", schema: "other", columns: { word: { type: "varchar", primary: true } } });
const Seen = new EntitySchema({ name: "seen", type: "view", expression: 'select "id", "email" from "user"', columns: { id: { type: "int" }, email: { type: "varchar" } } });

class Second1700000000001 {
  async up(on) {
    await on.createTable(new Table({ name: "extra", columns: [{ name: "id", type: "int", isPrimary: true, isGenerated: true, generationStrategy: "identity" }, { name: "kind", type: "enum", enum: ["x", "y"], default: "'x'" }, { name: "userId", type: "int" }] }));
    await on.createForeignKey("extra", new TableForeignKey({ columnNames: ["userId"], referencedTableName: "user", referencedColumnNames: ["id"], deferrable: "INITIALLY DEFERRED" }));
    await on.addColumn("extra", new TableColumn({ name: "more", type: "varchar", length: "10", isNullable: true }));
    await on.changeColumn("extra", "more", new TableColumn({ name: "renamed", type: "text", isNullable: true, isUnique: true }));
    await on.changeColumn("extra", "kind", new TableColumn({ name: "kind", type: "enum", enum: ["x", "y", "z"], default: "'y'" }));
    await on.createIndex("extra", new TableIndex({ name: "extra_kind", columnNames: ["kind"] }));
    await on.renameTable("extra", "additional");
  }
  async down(on) {
    await on.dropTable("additional");
  }
}
const db = new DataSource({ type: "postgres", host, port, username, database, entities: [User, Post, Tag, Seen], migrations: [Second1700000000001], installExtensions: true, extensions: ["citext", "hstore", "uuid-ossp"], parseInt8: false });

part("schema", async () => {
  await db.initialize();
  await db.createQueryRunner().createSchema("other", true);
  await db.synchronize();
  const log = await db.driver.createSchemaBuilder().log();
  say(log.upQueries.map(({ query }) => query));
  say((await db.runMigrations({ transaction: "each" })).map(({ name }) => name));
  const runner = db.createQueryRunner();
  for (const name of ["user", "post", "additional", "post_tags_tag"]) {
    const { columns, indices, foreignKeys, uniques, checks, exclusions } = await runner.getTable(name);
    say(name, columns.map((c) => [c.name, c.type, c.default, c.isNullable, c.isGenerated, c.generationStrategy, c.length, c.precision, c.scale, c.enum, c.isArray, c.comment, c.asExpression]));
    say(indices.map((i) => [i.name, i.columnNames, i.isUnique, i.where]), foreignKeys.map((f) => [f.name, f.columnNames, f.referencedTableName, f.onDelete, f.deferrable]).sort(), uniques.map((u) => [u.name, u.columnNames]).sort(), checks.map((c) => [c.name, c.expression]).sort(), exclusions.map((e) => [e.name, e.expression]));
  }
  say(await runner.hasTable("user"), await runner.hasColumn("user", "email"), await runner.getCurrentSchema(), (await runner.getViews([])).map(({ name }) => name));
  await runner.release();
});

part("objects", async () => {
  const users = db.getRepository("user");
  const user = await users.save({ email: "a@b", mood: "sad", moods: ["a"], price: "1.50", ratio: 0.1, big: "9007199254740993", key: "12345678-1234-5678-1234-567812345678", data: { a: [1] }, tags: ["x", 'y"z'], day: "2024-02-29", at: "01:02:03", took: "1 day",
    raw: Buffer.from([0, 255]), net: "10.0.0.1", span: "[1,5)", ci: "MiXed", kv: { a: "1" }, posts: [{ title: "t1", score: 1, tags: [{ word: "one" }, { word: "two" }] }, { title: "t2", score: 2 }] });
  say(await users.findOne({ where: { id: user.id }, relations: { posts: { tags: true } }, order: { posts: { title: "ASC", tags: { word: "ASC" } } } }));
  user.price = "3";
  say((await users.save(user)).version);
  say(await users.count({ where: { email: Like("a%"), gone: IsNull(), price: MoreThan(1), mood: In(["sad"]), data: Raw((name) => `${name} @> '{"a": [1]}'`) } }));
  say((await users.upsert([{ email: "a@b", price: "7" }, { email: "c@d" }], ["email"])).identifiers);
  say(await users.createQueryBuilder("u").leftJoin("u.posts", "p").select("u.email", "email").addSelect("count(p.id)", "n").groupBy("u.id").orderBy("u.id").getRawMany());
  say(await db.createQueryBuilder().update("post").set({ score: () => "score + 1" }).where("title = :title", { title: "t1" }).returning(["score"]).execute().then(({ raw, affected }) => [raw, affected]));
  say(await users.softDelete({ email: "c@d" }).then(({ affected }) => affected), await users.count(), await users.count({ withDeleted: true }));
  say(await users.findAndCount({ skip: 0, take: 1, select: { email: true }, order: { id: "DESC" } }), await db.getRepository("seen").find());
  for (const bad of [{ email: "a@b" }, { email: null }, { email: "x", price: -1 }, { email: "y", span: "[2,3)" }, { email: "z", mood: "bad" }]) await attempt(users.insert(bad));
  await attempt(db.transaction("SERIALIZABLE", async (on) => {
    await on.insert("user", { email: "t" });
    await attempt(on.transaction((inner) => inner.insert("user", { email: "t" })));
    say((await on.getRepository("user").createQueryBuilder("u").setLock("pessimistic_partial_write").where("u.email = 't'").getMany()).length);
    throw new Error("mine");
  }));
  const stream = await db.getRepository("post").createQueryBuilder("p").select("p.title", "title").orderBy("p.title").getRawMany();
  say(stream);
});

part("back", async () => {
  await db.undoLastMigration();
  await db.dropDatabase();
  say(await db.query("select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname in ('public', 'other') and relkind = 'r' order by 1"));
});

await run();
await db.destroy();
