// Prisma with its adapter for node-postgres: the client that it generates, on tables as its migrations make them.
// The program that runs migrations is no part of its package, so their statements stand here.
import { PrismaPg } from "@prisma/adapter-pg";
import { PrismaClient } from "@prisma/client";
import pg from "pg";
import { address, attempt, part, run, say, url } from "./sections.mjs";

const steps = `CREATE TYPE "Mood" AS ENUM ('sad', 'ok');
CREATE TABLE "User" ("id" SERIAL NOT NULL, "email" VARCHAR(100) NOT NULL, "mood" "Mood" NOT NULL DEFAULT 'ok', "moods" "Mood"[], "price" DECIMAL(10,2), "ratio" DOUBLE PRECISION, "big" BIGINT, "key" UUID,
  "data" JSONB NOT NULL DEFAULT '{}', "tags" TEXT[], "day" DATE, "at" TIME(3), "made" TIMESTAMPTZ(3) NOT NULL DEFAULT '2024-01-01 00:00+00'::timestamptz, "raw" BYTEA, "active" BOOLEAN NOT NULL DEFAULT true, "net" INET,
  CONSTRAINT "User_pkey" PRIMARY KEY ("id"));
CREATE TABLE "Post" ("id" BIGSERIAL NOT NULL, "title" TEXT NOT NULL, "score" INTEGER, "userId" INTEGER NOT NULL, CONSTRAINT "Post_pkey" PRIMARY KEY ("id"));
CREATE TABLE "Tag" ("word" TEXT NOT NULL, CONSTRAINT "Tag_pkey" PRIMARY KEY ("word"));
CREATE TABLE "_PostToTag" ("A" BIGINT NOT NULL, "B" TEXT NOT NULL, CONSTRAINT "_PostToTag_AB_pkey" PRIMARY KEY ("A","B"));
CREATE UNIQUE INDEX "User_email_key" ON "User"("email");
CREATE INDEX "User_day_price_idx" ON "User"("day", "price" DESC);
CREATE UNIQUE INDEX "Post_userId_title_key" ON "Post"("userId", "title");
CREATE INDEX "_PostToTag_B_index" ON "_PostToTag"("B");
ALTER TABLE "Post" ADD CONSTRAINT "Post_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "_PostToTag" ADD CONSTRAINT "_PostToTag_A_fkey" FOREIGN KEY ("A") REFERENCES "Post"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "_PostToTag" ADD CONSTRAINT "_PostToTag_B_fkey" FOREIGN KEY ("B") REFERENCES "Tag"("word") ON DELETE CASCADE ON UPDATE CASCADE;`;

const db = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 3 }), errorFormat: "minimal" });
const plain = (value) => JSON.parse(JSON.stringify(value, (_, one) => (typeof one === "bigint" ? `${one}n` : one)));
const tried = async (promise) => {
  const outcome = await promise.catch((error) => say("!", error.name, error.code, error.meta?.driverAdapterError?.cause ?? error.meta ?? String(error.message).split("\n").at(-1)));
  return outcome === undefined ? undefined : plain(outcome);
};

part("schema", async () => {
  const client = new pg.Client(address);
  await client.connect();
  await client.query(steps);
  await client.end();
  say(await tried(db.user.count()));
});

part("objects", async () => {
  say(await tried(db.user.create({
    data: { email: "a@b", mood: "sad", moods: ["ok", "sad"], price: "1.50", ratio: 0.1, big: 2n ** 60n, key: "12345678-1234-5678-1234-567812345678", data: { a: [1, null] }, tags: ["x", 'y"z'], day: new Date("2024-02-29"), at: new Date("1970-01-01T01:02:03Z"),
      raw: Buffer.from([0, 255]), net: "10.0.0.1", posts: { create: [{ title: "t1", score: 1, tags: { connectOrCreate: [{ where: { word: "one" }, create: { word: "one" } }] } }, { title: "t2", score: 2 }] } },
    include: { posts: { include: { tags: true }, orderBy: { title: "desc" } } },
  })));
  say(await tried(db.user.createMany({ data: [{ email: "a@b" }, { email: "c@d" }], skipDuplicates: true })), await tried(db.user.createManyAndReturn({ data: [{ email: "e@f", price: 3 }], select: { email: true, mood: true } })));
  say(await tried(db.user.upsert({ where: { email: "c@d" }, update: { price: { increment: 1 }, tags: { push: "z" } }, create: { email: "c@d" } })));
  say(await tried(db.post.updateMany({ where: { score: { gte: 1 } }, data: { score: { multiply: 3 } } })), await tried(db.post.updateManyAndReturn({ where: { title: { startsWith: "T1", mode: "insensitive" } }, data: { score: 5 }, select: { title: true, score: true } })));
  for (const where of [{ data: { path: ["a", "0"], equals: 1 } }, { tags: { hasSome: ["x", "q"] } }, { moods: { has: "ok" } }, { posts: { some: { tags: { every: { word: "one" } } } } }, { posts: { none: {} } }, { OR: [{ price: { lt: 2 } }, { day: null }] }, { email: { in: ["a@b", "x"] } }, { data: { array_contains: [1], path: ["a"] } }, { NOT: { email: { contains: "@" } } }]) {
    say(await tried(db.user.findMany({ where, select: { email: true }, orderBy: [{ posts: { _count: "desc" } }, { email: "asc" }] })));
  }
  say(await tried(db.post.groupBy({ by: ["userId"], _sum: { score: true }, _avg: { score: true }, _count: true, having: { score: { _max: { gt: 1 } } } })), await tried(db.user.aggregate({ _max: { price: true, made: true }, _count: { price: true } })));
  say(await tried(db.user.findMany({ cursor: { email: "a@b" }, skip: 1, take: 1, orderBy: { email: "asc" }, select: { email: true, _count: { select: { posts: true } } } })), await tried(db.user.findMany({ distinct: ["mood"], orderBy: { mood: "asc" }, select: { mood: true } })));
  say(await tried(db.user.update({ where: { id: 1 }, data: { posts: { update: { where: { userId_title: { userId: 1, title: "t1" } }, data: { tags: { disconnect: { word: "one" }, create: { word: "two" } } } }, deleteMany: { title: "t2" } } }, select: { posts: { select: { title: true, tags: true } } } })));
  for (const bad of [db.user.create({ data: { email: "a@b" } }), db.post.create({ data: { title: "x", userId: 99 } }), db.user.create({ data: { email: "y".repeat(200) } }), db.user.delete({ where: { id: 99 } }), db.user.findUniqueOrThrow({ where: { id: 99 } })]) await tried(bad);
});

part("raw", async () => {
  say(await tried(db.$queryRaw`select ${1}::int as a, ${"x"} as b, ${2n} as c, ${new Date(0)}::timestamptz as d, array[1, 2] as e, 1.5::numeric as f, '{"k": 1}'::jsonb as g, ${Buffer.from([1])}::bytea as h, ${["q"]}::text[] as i, '01:02'::time as j, current_date is null as k`));
  say(await tried(db.$executeRaw`update "User" set price = price + ${1} where email = ${"a@b"}`));
  await tried(db.$queryRaw`select 1/0`);
  await tried(db.$queryRaw`select * from nowhere`);
});

part("transactions", async () => {
  say(await tried(db.$transaction([db.tag.create({ data: { word: "t" } }), db.tag.count()], { isolationLevel: "Serializable" })));
  await tried(db.$transaction([db.tag.create({ data: { word: "lost" } }), db.tag.create({ data: { word: "t" } })]));
  await attempt(db.$transaction(async (tx) => {
    await tx.tag.create({ data: { word: "u" } });
    say(plain(await tx.$queryRaw`select current_setting('transaction_isolation') as level`));
    throw new Error("mine");
  }, { isolationLevel: "RepeatableRead" }));
  const again = async (tries) => {
    try {
      await db.$transaction(async (tx) => {
        await tx.user.findUnique({ where: { id: 1 } });
        if (!tries) await db.user.update({ where: { id: 1 }, data: { ratio: 1 } });
        await tx.user.update({ where: { id: 1 }, data: { ratio: 2 } });
      }, { isolationLevel: "RepeatableRead" });
      return tries;
    } catch (error) {
      if (error.code !== "P2034") throw error;
      return again(tries + 1);
    }
  };
  say("again", await again(0), await tried(db.tag.findMany({ orderBy: { word: "asc" } })));
});

await run();
await db.$disconnect();
