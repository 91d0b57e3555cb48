// Drizzle: tables and queries in code, its migrator, relations, transactions, prepared statements.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { and, arrayContains, asc, avg, count, desc, eq, exists, gt, ilike, inArray, relations, sql, sum } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import { alias, bigint, bigserial, boolean, check, date, doublePrecision, foreignKey, index, inet, integer, interval, json, jsonb, numeric, pgEnum, pgTable, primaryKey, serial, text, time, timestamp, unionAll, uniqueIndex, uuid, varchar } from "drizzle-orm/pg-core";
import pg from "pg";
import { address, attempt, part, run, say } from "./sections.mjs";

const mood = pgEnum("mood", ["sad", "ok"]);
const users = pgTable("users", {
  id: serial().primaryKey(), email: varchar({ length: 100 }).notNull(), mood: mood().default("ok"), price: numeric({ precision: 10, scale: 2 }), ratio: doublePrecision(),
  big: bigint({ mode: "bigint" }), key: uuid(), data: jsonb().default({}), plain: json(), tags: text().array(), day: date(), at: time(), made: timestamp({ withTimezone: true, precision: 3 }),
  took: interval(), on: boolean().default(true), net: inet(), moods: mood().array(), twice: numeric().generatedAlwaysAs(sql`price * 2`),
}, (t) => [uniqueIndex("users_email").on(sql`lower(${t.email})`), index("users_tags").using("gin", t.tags), check("priced", sql`${t.price} >= 0`)]);
const posts = pgTable("posts", { id: bigserial({ mode: "number" }).primaryKey(), userId: integer("user_id").notNull().references(() => users.id, { onDelete: "cascade" }), title: text().notNull(), score: integer() });
const marks = pgTable("marks", { postId: integer(), word: text() }, (t) => [primaryKey({ columns: [t.postId, t.word] }), foreignKey({ columns: [t.postId], foreignColumns: [posts.id] })]);
const schema = { users, posts, marks, usersRelations: relations(users, ({ many }) => ({ posts: many(posts) })), postsRelations: relations(posts, ({ one }) => ({ user: one(users, { fields: [posts.userId], references: [users.id] }) })) };
const pool = new pg.Pool({ ...address, max: 3 });
const db = drizzle(pool, { schema });

const steps = [
  `CREATE TYPE "public"."mood" AS ENUM('sad', 'ok');
--> statement-breakpoint
CREATE TABLE "users" ("id" serial PRIMARY KEY NOT NULL, "email" varchar(100) NOT NULL, "mood" "mood" DEFAULT 'ok', "price" numeric(10, 2), "ratio" double precision, "big" bigint, "key" uuid,
 "data" jsonb DEFAULT '{}'::jsonb, "plain" json, "tags" text[], "day" date, "at" time, "made" timestamp (3) with time zone, "took" interval, "on" boolean DEFAULT true, "net" "inet", "moods" "mood"[],
 "twice" numeric GENERATED ALWAYS AS (price * 2) STORED, CONSTRAINT "priced" CHECK ("users"."price" >= 0));
--> statement-breakpoint
CREATE TABLE "posts" ("id" bigserial PRIMARY KEY NOT NULL, "user_id" integer NOT NULL, "title" text NOT NULL);
--> statement-breakpoint
ALTER TABLE "posts" ADD CONSTRAINT "posts_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;
--> statement-breakpoint
CREATE UNIQUE INDEX "users_email" ON "users" USING btree (lower("email"));
--> statement-breakpoint
CREATE INDEX "users_tags" ON "users" USING gin ("tags");`,
  `ALTER TABLE "posts" ADD COLUMN "score" integer;
--> statement-breakpoint
CREATE TABLE "marks" ("postId" bigint, "word" text, CONSTRAINT "marks_pk" PRIMARY KEY("postId","word"));
--> statement-breakpoint
DO $$ BEGIN
 ALTER TABLE "marks" ADD CONSTRAINT "marks_fk" FOREIGN KEY ("postId") REFERENCES "public"."posts"("id");
EXCEPTION
 WHEN duplicate_object THEN null;
END $$;`,
];

part("migrations", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "drizzle-"));
  await mkdir(path.join(folder, "meta"));
  const entries = steps.map((_, idx) => ({ idx, version: "7", when: 1700000000000 + idx, tag: `000${idx}_step`, breakpoints: true }));
  await writeFile(path.join(folder, "meta", "_journal.json"), JSON.stringify({ version: "7", dialect: "postgresql", entries }));
  for (const [idx, text] of steps.entries()) await writeFile(path.join(folder, `000${idx}_step.sql`), text);
  await migrate(db, { migrationsFolder: folder });
  await migrate(db, { migrationsFolder: folder });
  say((await db.execute(sql`select id, created_at from drizzle.__drizzle_migrations order by id`)).rows);
  await rm(folder, { recursive: true });
});

part("queries", async () => {
  say(await db.insert(users).values([{
    email: "a@b", mood: "sad", price: "1.50", ratio: 0.1, big: 2n ** 60n, key: "12345678-1234-5678-1234-567812345678", data: { a: [1, null] }, plain: [1], tags: ["x", 'y"z'], day: "2024-02-29",
    at: "01:02:03", made: new Date(0), took: "1 day", net: "10.0.0.1", moods: ["sad", "ok"],
  }, { email: "c@d" }]).returning());
  await db.insert(posts).values([1, 2, 3].map((n) => ({ userId: 1, title: `t${n}`, score: n })));
  say(await db.query.users.findMany({ with: { posts: { columns: { title: true }, orderBy: desc(posts.title), limit: 2, extras: { upper: sql`upper(${posts.title})`.as("upper") } } }, columns: { email: true }, orderBy: asc(users.id) }));
  say(await db.query.posts.findFirst({ where: eq(posts.title, "t2"), with: { user: { columns: { email: true, day: true, made: true } } } }));
  say(await db.select({ email: users.email, n: count(posts.id), s: sum(posts.score), a: avg(posts.score) }).from(users).leftJoin(posts, eq(posts.userId, users.id)).groupBy(users.id).having(gt(count(posts.id), 0)));
  const other = alias(posts, "other");
  say(await db.select({ a: posts.title, b: other.title }).from(posts).innerJoin(other, gt(other.score, posts.score)).orderBy(posts.title, other.title));
  const top = db.$with("top").as(db.select({ title: posts.title, r: sql`row_number() over (order by ${posts.score} desc)`.as("r") }).from(posts));
  say(await db.with(top).select().from(top).where(eq(top.r, 1)));
  say(await db.selectDistinctOn([posts.userId], { userId: posts.userId, title: posts.title }).from(posts).orderBy(posts.userId, desc(posts.title)));
  say(await unionAll(db.select({ t: posts.title }).from(posts).where(inArray(posts.score, [1, 2])), db.select({ t: users.email }).from(users)).orderBy(sql`1`));
  say(await db.select({ email: users.email }).from(users).where(and(arrayContains(users.tags, ["x"]), ilike(users.email, "A%"), exists(db.select().from(posts).where(eq(posts.userId, users.id))))));
  say(await db.insert(users).values({ id: 1, email: "a@b", price: "9" }).onConflictDoUpdate({ target: users.id, set: { price: sql`excluded.price` } }).returning({ price: users.price, twice: users.twice }));
  say((await db.update(posts).set({ score: sql`${posts.score} + 1` }).where(gt(posts.score, 1))).rowCount, (await db.delete(posts).where(eq(posts.title, "t3")).returning({ id: posts.id })).length);
  const prepared = db.select().from(posts).where(eq(posts.title, sql.placeholder("title"))).prepare("by_title");
  say(await prepared.execute({ title: "t1" }), (await prepared.execute({ title: "t9" })).length, await db.$count(posts));
  for (const bad of [{ email: "A@B" }, { email: "x", price: "-1" }, { email: "x".repeat(200) }, { email: "y", mood: "bad" }]) await attempt(db.insert(users).values(bad));
});

part("transactions", async () => {
  await attempt(db.transaction(async (tx) => {
    await tx.insert(users).values({ email: "t" });
    await attempt(tx.transaction((inner) => inner.insert(users).values({ email: "T" })));
    say((await tx.select({ email: users.email }).from(users).where(eq(users.email, "t")).for("update", { of: users, skipLocked: true })));
    tx.rollback();
  }, { isolationLevel: "serializable", accessMode: "read write", deferrable: true }));
  say(await db.$count(users));
});

await run();
await pool.end();
