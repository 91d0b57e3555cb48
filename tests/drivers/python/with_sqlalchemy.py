"""SQLAlchemy 2: models with every type through three drivers, reflection of all that they make, two-phase sessions."""
import asyncio
import datetime
import decimal
import enum
import uuid

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

import sections
from sections import part


class Mood(enum.Enum):
    sad = "sad"
    ok = "ok"


class Base(orm.DeclarativeBase):
    pass


tagged = sa.Table(
    "tagged", Base.metadata, sa.Column("author_id", sa.ForeignKey("authors.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag_id", sa.ForeignKey("other.tags.id", onupdate="CASCADE", deferrable=True, initially="DEFERRED"), primary_key=True))


class Tag(Base):
    __tablename__ = "tags"
    __table_args__ = {"schema": "other", "comment": "words"}
    id: orm.Mapped[int] = orm.mapped_column(sa.Identity(always=True, start=10), primary_key=True)
    word: orm.Mapped[str] = orm.mapped_column(sa.String(20), unique=True)


class Author(Base):
    __tablename__ = "authors"
    __table_args__ = (
        sa.CheckConstraint("born < died", name="lived"), sa.UniqueConstraint("name", "born", name="one_of"),
        sa.Index("authors_data", "data", postgresql_using="gin"), sa.Index("authors_name", sa.text("lower(name) desc nulls last"), postgresql_where=sa.text("mood is not null")),
        sa.Index("authors_covering", "born", postgresql_include=["name"]), pg.ExcludeConstraint((sa.column("span"), "&&"), using="gist", name="no_overlap"))
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.Text, comment="in full")
    mood: orm.Mapped[Mood | None] = orm.mapped_column(sa.Enum(Mood, name="mood"))
    born: orm.Mapped[datetime.date | None]
    died: orm.Mapped[datetime.date | None]
    seen: orm.Mapped[datetime.datetime | None] = orm.mapped_column(sa.DateTime(timezone=True), server_default=sa.text("'2024-01-01 00:00+00'"))
    at: orm.Mapped[datetime.time | None]
    took: orm.Mapped[datetime.timedelta | None]
    price: orm.Mapped[decimal.Decimal | None] = orm.mapped_column(sa.Numeric(10, 2))
    ratio: orm.Mapped[float | None]
    key: orm.Mapped[uuid.UUID | None]
    raw: orm.Mapped[bytes | None]
    yes: orm.Mapped[bool] = orm.mapped_column(server_default=sa.true())
    big: orm.Mapped[int | None] = orm.mapped_column(sa.BigInteger)
    small: orm.Mapped[int | None] = orm.mapped_column(sa.SmallInteger)
    data: orm.Mapped[dict | None] = orm.mapped_column(pg.JSONB)
    plain: orm.Mapped[dict | None] = orm.mapped_column(sa.JSON)
    words: orm.Mapped[list[str] | None] = orm.mapped_column(pg.ARRAY(sa.Text))
    grid: orm.Mapped[list | None] = orm.mapped_column(pg.ARRAY(sa.Integer, dimensions=2))
    moods: orm.Mapped[list[Mood] | None] = orm.mapped_column(pg.ARRAY(sa.Enum(Mood, name="mood")))
    span: orm.Mapped[pg.Range | None] = orm.mapped_column(pg.INT4RANGE)
    during: orm.Mapped[pg.Range | None] = orm.mapped_column(pg.TSTZRANGE)
    spans: orm.Mapped[list | None] = orm.mapped_column(pg.INT4MULTIRANGE)
    net: orm.Mapped[str | None] = orm.mapped_column(pg.CIDR)
    bits: orm.Mapped[str | None] = orm.mapped_column(pg.BIT(4))
    sum: orm.Mapped[decimal.Decimal | None] = orm.mapped_column(sa.Numeric, sa.Computed("price * 2"))
    tags: orm.Mapped[list[Tag]] = orm.relationship(secondary=tagged)
    books: orm.Mapped[list["Book"]] = orm.relationship(back_populates="author", cascade="all, delete-orphan", order_by="Book.title")


class Book(Base):
    __tablename__ = "books"
    id: orm.Mapped[uuid.UUID] = orm.mapped_column(primary_key=True, server_default=sa.func.gen_random_uuid())
    title: orm.Mapped[str]
    version: orm.Mapped[int] = orm.mapped_column()
    author_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("authors.id"), index=True)
    author: orm.Mapped[Author] = orm.relationship(back_populates="books")
    __mapper_args__ = {"version_id_col": version}


def fixed(value):
    """Values whose order or form are the driver's, made the same."""
    if isinstance(value, dict):
        return {key: fixed(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [fixed(one) for one in value]
    return value if isinstance(value, (int, float, type(None))) else str(value)


def author():
    return Author(
        name="Ünïcödé", mood=Mood.ok, born=datetime.date(1900, 1, 2), died=datetime.date(1980, 1, 1), at=datetime.time(1, 2, 3, 4), took=datetime.timedelta(days=3, seconds=4),
        price=decimal.Decimal("1.50"), ratio=0.1, key=uuid.UUID(int=7), raw=b"\x00\xff", big=2**40, small=-5, data={"a": [1, None]}, plain={"b": 1}, words=["x", "y,z"],
        grid=[[1, 2], [3, 4]], moods=[Mood.sad], span=pg.Range(1, 5), during=pg.Range(datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc), None),
        spans=[pg.Range(1, 2), pg.Range(5, 6)], bits="1010", tags=[Tag(word="one"), Tag(word="two")], books=[Book(title="t1"), Book(title="t2")])


@part
def schema(engine):
    with engine.begin() as conn:
        conn.execute(sa.schema.CreateSchema("other", if_not_exists=True))
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)


@part
def objects(engine):
    with orm.Session(engine) as session:
        session.add(author())
        session.commit()
        found = session.scalars(sa.select(Author).options(orm.selectinload(Author.books), orm.joinedload(Author.tags))).unique().one()
        print([(column.name, fixed(getattr(found, column.name))) for column in Author.__table__.columns], [tag.word for tag in found.tags], [book.title for book in found.books])
        found.books[0].title = "changed"
        found.data = {"a": [2]}
        del found.books[1]
        session.flush()
        print([(book.title, book.version) for book in found.books])
        session.execute(sa.update(Book).values(version=99))
        found.books[0].title = "again"
        try:
            session.flush()
        except orm.exc.StaleDataError:
            print("StaleDataError")
        session.rollback()
        query = (sa.select(Author.name, sa.func.count(Book.id).label("n"), sa.func.array_agg(pg.aggregate_order_by(Book.title, Book.title.desc())))
                 .join(Author.books).where(Author.data["a"][0].astext == "1", Author.words.contains(["x"]), Author.span.op("&&")(sa.cast("[2,3)", pg.INT4RANGE)))
                 .group_by(Author.id).having(sa.func.count() > 1))
        print([fixed(tuple(row)) for row in session.execute(query)])
        tree = sa.select(sa.literal(1).label("n")).cte("tree", recursive=True)
        tree = tree.union_all(sa.select(tree.c.n + 1).where(tree.c.n < 5))
        print(session.scalars(sa.select(sa.func.sum(tree.c.n))).one())
        ranked = sa.select(Tag.word, sa.func.row_number().over(order_by=Tag.word.desc()).label("r")).subquery()
        print([tuple(row) for row in session.execute(sa.select(ranked).order_by(ranked.c.r))])
        upsert = pg.insert(Tag.__table__).values([{"word": "one"}, {"word": "three"}])
        upsert = upsert.on_conflict_do_update(index_elements=["word"], set_={"word": upsert.excluded.word + "!"}).returning(Tag.word)
        print(session.execute(upsert).scalars().all())
        session.execute(sa.insert(Tag), [{"word": f"w{n}"} for n in range(2000)])
        print(session.scalar(sa.select(sa.func.count()).select_from(Tag)))
        print(session.execute(sa.select(Tag.word).where(Tag.word.like("w199_")).order_by(Tag.id).with_for_update(skip_locked=True, of=Tag)).scalars().all())
        for bad in [Tag(word="w1"), Tag(word="x" * 30), Author(name=None), Author(name="n", born=datetime.date(2000, 1, 1), died=datetime.date(1999, 1, 1)), Author(name="n", span=pg.Range(2, 3))]:
            nested = session.begin_nested()
            session.add(bad)
            try:
                session.flush()
            except sa.exc.DBAPIError as error:
                print(type(error).__name__, str(error.orig).splitlines()[0].split(": ", 1)[-1])
                nested.rollback()
        session.rollback()


@part
def streams(engine):
    with engine.connect() as conn:
        result = conn.execution_options(stream_results=True, max_row_buffer=100).execute(sa.text("select g from generate_series(1, 1000) g"))
        print(sum(row[0] for row in result))
        print([len(some) for some in conn.execution_options(yield_per=400).execute(sa.text("select g from generate_series(1, 1000) g")).partitions()])


@part
def isolation(engine):
    for level in ["AUTOCOMMIT", "READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]:
        with engine.connect().execution_options(isolation_level=level) as conn:
            print(level, conn.exec_driver_sql("show transaction_isolation").scalar(), conn.get_isolation_level())
    with engine.connect().execution_options(postgresql_readonly=True, postgresql_deferrable=True, isolation_level="SERIALIZABLE") as conn:
        print(conn.exec_driver_sql("select current_setting('transaction_read_only'), current_setting('transaction_deferrable')").one())
    print(engine.dialect.server_version_info[0], engine.dialect.default_schema_name)


@part
def phases(engine):
    if not engine.dialect.driver == "asyncpg":
        with engine.connect() as conn:
            transaction = conn.begin_twophase(f"xid {engine.dialect.driver}")
            conn.execute(sa.insert(Tag).values(word=f"phase {engine.dialect.driver}"))
            transaction.prepare()
            transaction.commit()
            transaction = conn.begin_twophase(f"xid {engine.dialect.driver}")
            conn.execute(sa.insert(Tag).values(word="rolled back"))
            transaction.prepare()
            transaction.rollback()
            print(conn.recover_twophase(), conn.scalar(sa.select(sa.func.count()).where(Tag.word.in_(["rolled back", f"phase {engine.dialect.driver}"]))))


@part
def reflection(engine):
    with engine.begin() as conn:
        for text in ["""create table if not exists parts (id int, at timestamptz(3) not null, code varchar(7) collate "C", n numeric(8,3)[], b bit varying(5), i interval day to second(2), t time(1),
                        primary key (id, at)) partition by range (id)""", "create table if not exists parts_1 partition of parts for values from (0) to (10)",
                     "create or replace view seen as select id, name from authors", "create materialized view if not exists kept as select 1 as one",
                     "create domain other.positive as int not null default 1 check (value > 0) check (value < 100)", "create table holds (p other.positive, m mood default 'ok')",
                     "create sequence counts increment 5 start 100", "create unique index on authors ((data->>'a'), big desc) nulls not distinct where small > 3", "create index on authors using hash (name)"]:
            conn.exec_driver_sql(text)
    look = sa.inspect(engine)
    print([name for name in look.get_schema_names() if name != "quorate"])
    for schema in [None, "other"]:
        print(sorted(look.get_table_names(schema)), look.get_view_names(schema), look.get_materialized_view_names(schema), look.get_sequence_names(schema), look.get_enums(schema), look.get_domains(schema))
        for kind in ["columns", "pk_constraint", "foreign_keys", "unique_constraints", "check_constraints", "table_comment", "indexes", "table_options"]:
            for (_, table), found in sorted(getattr(look, f"get_multi_{kind}")(schema, kind=sa.engine.reflection.ObjectKind.ANY).items()):
                one = lambda it: sorted((key, repr(value)) for key, value in it.items())
                print(kind, table, one(found) if isinstance(found, dict) else sorted(one(it) for it in found))
    for view in "seen", "kept":
        print(look.get_view_definition(view))
    print(look.has_table("authors"), look.has_table("nowhere"), look.has_schema("other"), look.has_sequence("counts"), look.has_index("authors", "authors_name"), look.get_temp_table_names())
    metadata = sa.MetaData()
    metadata.reflect(engine, views=True)
    print(sorted(metadata.tables), [str(column.type) for column in metadata.tables["authors"].columns])
    print(str(sa.schema.CreateTable(metadata.tables["authors"]).compile(engine)))


@part
def undone(engine):
    with engine.begin() as conn:
        conn.exec_driver_sql("drop table parts, holds; drop view seen; drop materialized view kept; drop domain other.positive; drop sequence counts")
    Base.metadata.drop_all(engine)
    print(sa.inspect(engine).get_table_names(), sa.inspect(engine).get_enums())


@part
def asynchronous(_):
    async def run():
        engine = create_async_engine(sections.url("postgresql+asyncpg"))
        async with engine.begin() as conn:
            await conn.run_sync(Base.metadata.create_all)
        async with AsyncSession(engine, expire_on_commit=False) as session:
            session.add(author())
            await session.commit()
            found = (await session.scalars(sa.select(Author).options(orm.selectinload(Author.books)))).one()
            print(found.name, [book.title for book in found.books])
            await session.delete(found)
            await session.commit()
            async for row in await session.stream(sa.select(Tag.word).order_by(Tag.word)):
                print(row)
        async with engine.begin() as conn:
            await conn.run_sync(Base.metadata.drop_all)
        await engine.dispose()
    asyncio.run(run())


if __name__ == "__main__":
    for driver in ["psycopg", "psycopg2"]:
        print("##", driver)
        engine = sa.create_engine(sections.url("postgresql+" + driver))
        sections.run(engine)
        engine.dispose()
