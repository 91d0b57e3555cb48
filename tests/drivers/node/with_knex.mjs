// Knex: its builder of schemas and queries, migrations forth and back, seeds, transactions.
import knex from "knex";
import { address, attempt, part, run, say } from "./sections.mjs";

const db = knex({ client: "pg", connection: address, pool: { min: 0, max: 4 } });

const migrations = {
  "1_first": {
    up: async (on) => {
      await on.schema.createTable("users", (t) => {
        t.increments("id");
        t.string("email", 100).notNullable().unique();
        t.enu("mood", ["sad", "ok"], { useNative: true, enumName: "mood" }).defaultTo("ok");
        t.decimal("price", 10, 2).unsigned().index();
        t.jsonb("data").defaultTo("{}");
        t.specificType("tags", "text[]");
        t.uuid("key").defaultTo(on.fn.uuid());
        t.timestamps(true, true);
        t.boolean("on").defaultTo(true).comment("whether");
        t.binary("raw");
        t.check("price >= 0", [], "priced");
      });
      await on.schema.createTable("posts", (t) => {
        t.bigIncrements();
        t.integer("user_id").references("users.id").onDelete("CASCADE").deferrable("deferred");
        t.text("title").index("posts_title", { indexType: "hash" });
        t.unique(["user_id", "title"], { nullsNotDistinct: true, indexName: "posts_once" });
        t.float("score");
        t.date("day");
      });
      await on.schema.createView("seen", (v) => { v.columns(["id"]); v.as(db("users").select("id")); });
    },
    down: (on) => on.schema.dropView("seen").dropTable("posts").dropTable("users").raw("drop type mood"),
  },
  "2_second": {
    up: (on) => on.schema.alterTable("users", (t) => {
      t.string("name").nullable();
      t.renameColumn("on", "active");
      t.text("email").notNullable().alter();
      t.dropColumn("raw");
      t.setNullable("price");
      t.index(on.raw("lower(email)"), "users_lower");
    }),
    down: (on) => on.schema.alterTable("users", (t) => { t.dropIndex([], "users_lower"); t.dropColumn("name"); t.renameColumn("active", "on"); t.binary("raw"); }),
  },
};
const migrationSource = { getMigrations: async () => Object.keys(migrations), getMigrationName: (name) => name, getMigration: async (name) => migrations[name] };

part("migrations", async () => {
  say((await db.migrate.latest({ migrationSource }))[1]);
  say(await db.migrate.currentVersion({ migrationSource }), (await db.migrate.list({ migrationSource }))[0].map(({ name }) => name));
  say(await db("users").columnInfo());
  say(await db.schema.hasTable("users"), await db.schema.hasColumn("users", "active"));
  say((await db.migrate.down({ migrationSource }))[1], (await db.migrate.up({ migrationSource }))[1]);
});

part("queries", async () => {
  say(await db("users").insert([{ email: "a@b", price: 1.5, tags: ["x"], data: { a: 1 } }, { email: "c@d", mood: "sad" }], ["id", "email", "mood", "price", "tags", "data", "active"]));
  await db("posts").insert(Array.from({ length: 5 }, (_, n) => ({ user_id: 1, title: `t${n}`, score: n / 2, day: "2024-01-01" })));
  say(await db("users").leftJoin("posts", "users.id", "posts.user_id").groupBy("users.id").select("email").count("posts.id as n").sum({ s: "score" }).orderBy("email"));
  say(await db("users").whereJsonPath("data", "$.a", ">", 0).orWhereJsonSupersetOf("data", { b: 1 }).pluck("email"));
  say(await db("users").insert({ email: "a@b", price: 9 }).onConflict("email").merge(["price"]).returning(["email", "price"]));
  say((await db("users").insert({ email: "a@b" }).onConflict("email").ignore()).rowCount);
  say(await db.with("top", db("posts").orderBy("score", "desc").limit(2)).select("title").rowNumber("r", "score").from("top").orderBy("r"));
  say(await db("posts").distinctOn("user_id").select("user_id", "title").orderBy(["user_id", { column: "title", order: "desc" }]));
  say(await db("posts").where("score", ">", 1).update({ score: db.raw("?? * 2", ["score"]) }, ["title", "score"]));
  say(await db("posts").whereBetween("score", [1, 3]).whereILike("title", "T%").del());
  await attempt(db("users").insert({ email: null }));
  await attempt(db("users").insert({ email: "q", price: -1 }));
  await attempt(db("users").insert({ email: "q", mood: "bad" }));
  say(await db("posts").select("title").orderBy("title"));
});

part("transactions", async () => {
  await attempt(db.transaction(async (tx) => {
    await tx("users").insert({ email: "e" });
    await attempt(tx.transaction((inner) => inner("users").insert({ email: "e" })));
    say(await tx("users").forUpdate().skipLocked().select("email").orderBy("email"));
    throw new Error("mine");
  }, { isolationLevel: "repeatable read" }));
  say(await db("users").count());
  await attempt(db("users").timeout(200, { cancel: true }).select(db.raw("pg_sleep(30)")));
});

part("back", async () => {
  say((await db.migrate.rollback({ migrationSource }, true))[1]);
  say(await db("information_schema.tables").where("table_schema", "public").pluck("table_name").orderBy("table_name"));
});

await run();
await db.destroy();
