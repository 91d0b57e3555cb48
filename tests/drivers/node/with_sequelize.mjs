// Sequelize: models with PostgreSQL's types, associations, scopes, transactions, and what its query interface describes.
import { DataTypes, Op, Sequelize, Transaction, fn, col, where, json } from "sequelize";
import { attempt, part, run, say, url } from "./sections.mjs";

const db = new Sequelize(url, { logging: false, pool: { max: 3 } });
const User = db.define("User", {
  id: { type: DataTypes.INTEGER, autoIncrement: true, primaryKey: true },
  email: { type: DataTypes.STRING(100), allowNull: false, unique: true },
  mood: { type: DataTypes.ENUM("sad", "ok"), defaultValue: "ok" },
  price: DataTypes.DECIMAL(10, 2),
  ratio: DataTypes.DOUBLE,
  big: DataTypes.BIGINT,
  key: { type: DataTypes.UUID, defaultValue: Sequelize.literal("'12345678-1234-5678-1234-567812345678'::uuid") },
  data: { type: DataTypes.JSONB, defaultValue: {} },
  plain: DataTypes.JSON,
  tags: DataTypes.ARRAY(DataTypes.TEXT),
  span: DataTypes.RANGE(DataTypes.INTEGER),
  during: DataTypes.RANGE(DataTypes.DATE),
  day: DataTypes.DATEONLY,
  at: DataTypes.TIME,
  raw: DataTypes.BLOB,
  net: DataTypes.INET,
  on: { type: DataTypes.BOOLEAN, defaultValue: true },
  ci: DataTypes.CITEXT,
  words: DataTypes.TSVECTOR,
}, { timestamps: false, comment: "who", indexes: [{ fields: ["data"], using: "gin" }, { name: "users_lower", unique: true, fields: [fn("lower", col("email"))], where: { on: true } }, { fields: [{ name: "day", order: "DESC" }, "price"] }] });
const Post = db.define("Post", { title: { type: DataTypes.TEXT, allowNull: false }, score: DataTypes.FLOAT }, { paranoid: true, underscored: true, version: true, createdAt: false, updatedAt: false });
const Tag = db.define("Tag", { word: { type: DataTypes.STRING, primaryKey: true } }, { timestamps: false, schema: "other" });
User.hasMany(Post, { as: "posts", foreignKey: { name: "userId", allowNull: false }, onDelete: "CASCADE" });
Post.belongsTo(User, { as: "user", foreignKey: "userId" });
Post.belongsToMany(Tag, { through: "PostTags", timestamps: false });
Tag.belongsToMany(Post, { through: "PostTags", timestamps: false });

part("schema", async () => {
  await db.query("create extension citext");
  await db.createSchema("other");
  await db.sync();
  await db.sync({ alter: true });
  const look = db.getQueryInterface();
  say((await look.showAllTables()).sort());
  for (const table of ["Users", "posts", "PostTags"]) {
    say(await look.describeTable(table));
    say((await look.showIndex(table)).map(({ name, primary, unique, fields, definition }) => [name, primary, unique, fields, definition]).sort());
    say((await look.getForeignKeyReferencesForTable(table)).map(({ constraintName, columnName, referencedTableName, referencedColumnName, tableName }) => [constraintName, tableName, columnName, referencedTableName, referencedColumnName]).sort());
  }
  say((await db.query("select version()", { type: "SELECT" })).length, (await db.databaseVersion()).split(".")[0]);
});

part("changes", async () => {
  const look = db.getQueryInterface();
  await look.addColumn("posts", "extra", { type: DataTypes.ENUM("x", "y"), defaultValue: "x", allowNull: false });
  await look.changeColumn("posts", "score", { type: DataTypes.DECIMAL(8, 3), allowNull: true, defaultValue: 1 });
  await look.renameColumn("posts", "extra", "more");
  await look.addConstraint("posts", { fields: ["title"], type: "unique", name: "posts_title", deferrable: Sequelize.Deferrable.INITIALLY_DEFERRED });
  await look.addConstraint("posts", { fields: ["score"], type: "check", name: "posts_score", where: { score: { [Op.gte]: 0 } } });
  await look.addIndex("posts", ["title"], { concurrently: true, name: "posts_ix" });
  say((await look.showConstraint("posts")).map(({ constraintName, constraintType }) => [constraintName, constraintType]).filter(([name]) => !name.endsWith("_not_null")).sort());
  say(await look.describeTable("posts"));
  await look.removeIndex("posts", "posts_ix");
  await look.removeConstraint("posts", "posts_score");
  await look.removeConstraint("posts", "posts_title");
  await look.removeColumn("posts", "more");
  await look.changeColumn("posts", "score", { type: DataTypes.FLOAT });
});

part("objects", async () => {
  const user = await User.create({
    email: "a@b", mood: "sad", price: "1.50", ratio: 0.1, big: "9007199254740993", data: { a: [1, { b: null }] }, plain: [1], tags: ["x", 'y"z'], span: [1, 5],
    during: [new Date(0), { value: new Date(1e12), inclusive: true }], day: "2024-02-29", at: "01:02:03", raw: Buffer.from([0, 255]), net: "10.0.0.1", ci: "MiXed",
    posts: [{ title: "t1", score: 1.5 }, { title: "t2" }],
  }, { include: [{ model: Post, as: "posts" }] });
  say((await User.findByPk(user.id, { include: { model: Post, as: "posts", separate: true, order: [["title", "DESC"]] } })).toJSON());
  await Tag.bulkCreate([{ word: "one" }, { word: "two" }]);
  await Tag.bulkCreate([{ word: "one" }], { ignoreDuplicates: true });
  await user.posts[0].setTags(["one", "two"]);
  say(await user.posts[0].countTags());
  say(await User.findOrCreate({ where: { email: "c@d" }, defaults: { mood: "ok" } }).then(([one, made]) => [one.email, made]));
  say(await User.upsert({ id: 1, email: "a@b", price: 5 }).then(([one]) => [one.id, one.price]));
  say(await Post.increment({ score: 2 }, { where: { title: "t1" } }).then(([rows]) => rows[0]?.length ?? rows.length));
  say(await Post.update({ title: "t3" }, { where: { title: "t2" }, returning: true }).then(([n, rows]) => [n, rows.map((row) => row.title)]));
  await user.posts[1].destroy();
  say(await Post.count(), await Post.count({ paranoid: false }));
  say(await User.findAll({ attributes: ["email", [fn("count", col("posts.id")), "n"], [fn("max", col("posts.score")), "m"]], include: [{ model: Post, as: "posts", attributes: [] }], group: ["User.id"], order: [["email", "ASC"]], raw: true }));
  for (const query of [{ data: { [Op.contains]: { a: [1] } } }, { "data.a[1].b": null }, { tags: { [Op.overlap]: ["x"] } }, { span: { [Op.contains]: 3 } }, { email: { [Op.iLike]: "A%" } }, { ci: "mixed" }, where(fn("lower", col("email")), "a@b"), { [Op.or]: [{ price: { [Op.between]: [4, 6] } }, { mood: { [Op.in]: ["ok"] } }] }, { email: { [Op.regexp]: "^[a-b]" } }, json("data.a", "x")]) {
    say(await attempt(User.count({ where: query })));
  }
  say((await User.findAndCountAll({ limit: 1, offset: 1, order: [["id", "ASC"]], attributes: ["email"] })).count, await User.sum("price"), await User.aggregate("mood", "DISTINCT", { plain: false }).then((rows) => rows.map((row) => row.DISTINCT).sort()));
  for (const bad of [{ email: "a@b" }, { email: null }, { email: "x", mood: "bad" }, { email: "y".repeat(200) }, { email: "z", span: [5, 1] }]) {
    await attempt(User.create(bad));
  }
  await attempt(Post.create({ title: "orphan", userId: 99 }));
});

part("transactions", async () => {
  await attempt(db.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE, deferrable: Sequelize.Deferrable.SET_DEFERRED() }, async (transaction) => {
    await User.create({ email: "t" }, { transaction });
    const inner = await db.transaction({ transaction });
    await attempt(User.create({ email: "t" }, { transaction: inner }));
    await inner.rollback();
    say((await User.findAll({ where: { email: "t" }, lock: transaction.LOCK.UPDATE, skipLocked: true, transaction })).length);
    throw new Error("mine");
  }));
  say(await User.count());
  await db.query('drop table "PostTags", posts, "Users"');
  await db.query("drop schema other cascade");
  say(await db.getQueryInterface().showAllTables());
});

await run();
await db.close();
