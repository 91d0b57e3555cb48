"""Django: migrations made, run forth and back, models with PostgreSQL's own fields, queries, locks, inspectdb."""
import contextlib
import datetime
import decimal
import io
import json
import os
import re
import sys
import tempfile
import uuid

import django
from django.conf import settings

import sections
from sections import part

HOST = sections.address()
# Migrations are made anew in a directory of this run.
MADE = tempfile.TemporaryDirectory()
os.mkdir(os.path.join(MADE.name, "made"))
open(os.path.join(MADE.name, "made", "__init__.py"), "w").close()
sys.path.insert(0, MADE.name)
APPS = ["admin", "auth", "contenttypes", "messages", "sessions", "postgres"]
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "HOST": HOST["host"], "PORT": HOST["port"], "USER": HOST["user"], "NAME": HOST["database"], "OPTIONS": {"server_side_binding": True}}},
    INSTALLED_APPS=["django.contrib." + name for name in APPS] + ["shop"], MIGRATION_MODULES={"shop": "made"}, USE_TZ=True, SECRET_KEY="of tests only",
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", SILENCED_SYSTEM_CHECKS=["admin", "templates"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "OPTIONS": {"context_processors": ["django.template.context_processors.request", "django.contrib.auth.context_processors.auth", "django.contrib.messages.context_processors.messages"]}}],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware", "django.contrib.messages.middleware.MessageMiddleware"])
django.setup()

from django.contrib.postgres import aggregates, search
from django.core import serializers
from django.core.management import call_command
from django.db import DatabaseError, connection, models, transaction
from django.db.models import F, Q, Window, functions
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange, NumericRange
from shop.models import Author, Book, Tag

UTC = datetime.timezone.utc


def command(*words, **options):
    """What a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        call_command(*words, stdout=out, no_color=True, **options)
    print(re.sub(r"\(\d+\.\d+s\)", "", out.getvalue()).strip())


@part
def migrations():
    migration = os.path.join(MADE.name, "made", "0001_extensions.py")
    with open(migration, "w", encoding="utf8") as file:
        file.write("from django.contrib.postgres.operations import *\nfrom django.db import migrations\n\n\nclass Migration(migrations.Migration):\n"
                   "    operations = [BtreeGistExtension(), HStoreExtension(), TrigramExtension(), UnaccentExtension(), CITextExtension()]\n")
    call_command("makemigrations", "shop", name="models", verbosity=0)
    command("migrate", verbosity=1)
    command("sqlmigrate", "shop", "0002")
    command("makemigrations", check=True, dry_run=True)
    command("showmigrations")
    command("check", databases=["default"])


@part
def changed():
    """Migrations as they come in a year: new and renamed columns, other types, data, indexes beside writers."""
    text = '''
import django.contrib.postgres.operations as postgres
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("shop", "0002_models")]
    operations = [
        migrations.AddField("author", "rank", models.IntegerField(default=7)),
        migrations.AlterField("author", "rank", models.BigIntegerField(null=True, db_index=True)),
        migrations.RenameField("author", "rank", "score"),
        migrations.AlterField("book", "title", models.TextField(unique=True)),
        migrations.AlterField("tag", "word", models.CharField(max_length=80, primary_key=True, serialize=False)),
        migrations.RunSQL("insert into shop_tag values ('from sql')", "delete from shop_tag where word = 'from sql'"),
        migrations.RunPython(lambda apps, _: apps.get_model("shop", "Tag").objects.create(word="from python"), lambda apps, _: apps.get_model("shop", "Tag").objects.all().delete()),
        postgres.AddIndexConcurrently("author", models.Index(fields=["score", "name"], name="author_score")),
        migrations.RenameIndex("author", new_name="author_score_name", old_name="author_score"),
        postgres.AddConstraintNotValid("author", models.CheckConstraint(condition=models.Q(score__gte=0), name="author_score_positive")),
        postgres.ValidateConstraint("author", "author_score_positive"),
        migrations.CreateModel("Extra", [("id", models.AutoField(primary_key=True)), ("author", models.ForeignKey("shop.Author", models.CASCADE, db_constraint=True))]),
        migrations.AlterField("extra", "id", models.BigAutoField(primary_key=True)),
        migrations.AlterModelTable("extra", "renamed"),
        migrations.AlterUniqueTogether("extra", {("author", "id")}),
        migrations.AlterField("author", "id", models.AutoField(primary_key=True)),
        migrations.RemoveField("author", "bio"),
    ]
'''
    with open(os.path.join(MADE.name, "made", "0003_changed.py"), "w", encoding="utf8") as file:
        file.write(text)
    command("sqlmigrate", "shop", "0003")
    command("migrate", "shop", "0003")
    with connection.cursor() as cursor:
        for table in ["shop_author", "shop_book", "renamed", "shop_book_tags"]:
            print(table, sorted((name, sorted((key, str(value)) for key, value in of.items())) for name, of in connection.introspection.get_constraints(cursor, table).items()))
    command("migrate", "shop", "0002")
    with connection.cursor() as cursor:
        print(sorted(connection.introspection.get_constraints(cursor, "shop_author")))


@part
def objects():
    from django.contrib.auth.models import Permission, User
    user = User.objects.create_superuser("admin", "a@example.com", None)
    print(User.objects.filter(is_superuser=True).count(), Permission.objects.count())
    author = Author.objects.create(name="Ünïcödé", email="a@b.c", born=datetime.date(1900, 1, 2))
    book = Book.objects.create(
        id=uuid.UUID(int=1), title="First", author=author, price=decimal.Decimal("1.50"), pages=10, big=2**40, weight=0.1, at=datetime.time(1, 2, 3, 4),
        took=datetime.timedelta(days=400, microseconds=5), raw=b"\x00\xff", data={"a": [1, None, {"b": "x"}]}, words=["x", "y,z"], grid=[[1, 2], [3, 4]],
        span=NumericRange(1, 5), during=DateTimeTZRange(datetime.datetime(2024, 1, 1, tzinfo=UTC), None), more={"k": "v", "n": None}, net="10.0.0.1",
        made=datetime.datetime(2024, 1, 1, tzinfo=UTC))
    book.tags.set(Tag.objects.bulk_create([Tag(word="one"), Tag(word="two")]))
    Book.objects.bulk_create([Book(id=uuid.UUID(int=10 + n), title=f"Book {n}", author=author, pages=n, price=n, data={"n": n}, made=datetime.datetime(2024, 1, n + 1, tzinfo=UTC)) for n in range(9)])
    said = json.loads(serializers.serialize("json", Book.objects.filter(pk=book.pk)))
    said[0]["fields"]["tags"].sort()
    print(said)
    print(Author.objects.bulk_create([Author(name="new", email="a@b.c")], update_conflicts=True, update_fields=["name"], unique_fields=["email"])[0].name)
    print(Tag.objects.bulk_create([Tag(word="one")], ignore_conflicts=True)[0].pk, Tag.objects.get_or_create(word="one")[1], Tag.objects.update_or_create(word="three")[1])
    print(Book.objects.filter(pages__gt=4).update(price=F("price") + 1, title=functions.Concat("title", models.Value("!"))))
    objects = list(Book.objects.order_by("pk"))
    for one in objects:
        one.big = one.pages
    print(Book.objects.bulk_update(objects, ["big"], batch_size=3))


@part
def queries():
    books = Book.objects.order_by("pk")
    show = lambda query: print([str(one) if not isinstance(one, dict) else one for one in query])
    titles = lambda query: print(list(query.values_list("title", flat=True)))
    titles(books.filter(data__a__0=1))
    titles(books.filter(data__n__gte=7))
    titles(books.filter(data__contains={"a": [1]}))
    titles(books.filter(data__has_any_keys=["a", "zz"]))
    titles(books.filter(words__contains=["x"], words__len=2, words__overlap=["x", "q"]))
    titles(books.filter(span__contains=2, span__overlap=NumericRange(4, 9), span__startswith=1))
    titles(books.filter(more__k="v", more__has_key="n"))
    titles(books.filter(title__iregex="^book [3-5]", title__icontains="OK"))
    titles(books.filter(title__trigram_similar="Frist").annotate(s=search.TrigramSimilarity("title", "First")).filter(s__gt=0.2))
    titles(books.filter(title__unaccent="First!"))
    titles(books.annotate(v=search.SearchVector("title", config="english"), r=search.SearchRank(search.SearchVector("title"), search.SearchQuery("book"))).filter(v=search.SearchQuery("books", config="english"), r__gt=0))
    print(books.annotate(h=search.SearchHeadline("title", search.SearchQuery("first"))).first().h)
    print(books.aggregate(models.Sum("price"), models.Avg("pages"), models.StdDev("pages"), models.Max("made"), n=models.Count("pk", filter=Q(pages__gt=3)), authors=models.Count("author", distinct=True)))
    print(Author.objects.annotate(all=aggregates.ArrayAgg("books__title", order_by="-books__title", filter=Q(books__pages__lt=3)), s=aggregates.StringAgg("books__title", ", ", order_by="books__title"),
          j=aggregates.JSONBAgg("books__pages", order_by="books__pages"), b=aggregates.BitOr("books__pages"), c=aggregates.Corr("books__pages", "books__price")).values("name", "all", "s", "j", "b", "c"))
    show(books.annotate(r=Window(functions.RowNumber(), order_by=F("pages").desc()), s=Window(models.Sum("pages"), order_by="pages", frame=models.RowRange(start=-1, end=1)), l=Window(functions.Lag("pages"), order_by="pages")).values("r", "s", "l").order_by("r"))
    print(list(books.annotate(m=functions.TruncWeek("made"), y=functions.ExtractIsoWeekDay("made"), later=functions.TruncHour("made", tzinfo=datetime.timezone(datetime.timedelta(hours=5)))).values_list("m", "y", "later")[:2]))
    inner = Book.objects.filter(author=models.OuterRef("pk")).order_by("-pages")
    print(list(Author.objects.annotate(top=models.Subquery(inner.values("title")[:1]), any=models.Exists(inner), n=models.Count("books")).values_list("name", "top", "any", "n")))
    titles(books.filter(pages__lt=2).union(books.filter(pages__gt=9)).order_by("title"))
    titles(books.distinct("author_id").order_by("author_id", "title"))
    print(list(books.filter(made__date__range=("2024-01-02", "2024-01-03"), made__year=2024, made__week_day=3).values_list("title", "total")))
    print(list(books.dates("made", "day"))[:2], list(Book.objects.datetimes("made", "month")))
    print(books.select_related("author").prefetch_related("tags").get(pk=uuid.UUID(int=1)).tags.count(), Author.objects.in_bulk(field_name="email").keys())
    print(sum(one.pages for one in books.iterator(chunk_size=2)), "Index" in books.filter(pk=uuid.UUID(int=1)).explain(format="text"), books.raw("select id, title from shop_book where title = %s", ["Book 1"])[0].title)
    print(books.filter(models.Case(models.When(pages=1, then=True), default=False, output_field=models.BooleanField())).count(), books.filter(Q(pages=1) ^ Q(price=1)).count())
    print(list(books.values_list(functions.Cast("pages", models.TextField()), functions.MD5("title"), functions.Round(F("price") / 3, 2), functions.Greatest("pages", 5), functions.JSONObject(t="title"))[:1]))


@part
def transactions():
    author = Author.objects.get()
    try:
        with transaction.atomic():
            Author.objects.create(name="kept not")
            with transaction.atomic():
                Author.objects.create(name="ÜNÏCÖDÉ")
                Author.objects.create(name="NEW")
    except DatabaseError as error:
        print(sections.told(error))
    print(Author.objects.count())
    with transaction.atomic():
        print(Book.objects.select_for_update(skip_locked=True, of=("self",), no_key=True).filter(pages=3).count())
        transaction.on_commit(lambda: print("committed"))
        first, second = Book.objects.order_by("pk")[:2]
        first.title, second.title = second.title, first.title
        first.save()
        second.save()
    for bad in [{"title": "d", "during": DateTimeTZRange(datetime.datetime(2024, 1, 5, tzinfo=UTC), None)}, {"title": "Book 1"}, {"title": "p", "pages": -1}, {"title": "t" * 200}, {"title": None}]:
        try:
            Book.objects.create(author=author, **bad)
        except DatabaseError as error:
            print(sections.told(error))
    try:
        Book(author_id=99, title="orphan").save()
    except DatabaseError as error:
        print(sections.told(error))
    print(author.delete())


@part
def inspected():
    command("inspectdb", "shop_author", "shop_book", "shop_book_tags", "shop_tag", "auth_user")
    with connection.cursor() as cursor:
        print(sorted((t.name, t.type, t.comment) for t in connection.introspection.get_table_list(cursor)))
        print([tuple(c) for c in connection.introspection.get_table_description(cursor, "shop_author")], connection.introspection.get_sequences(cursor, "shop_author"), sorted(connection.introspection.get_relations(cursor, "shop_book").items()))
    print(sorted(connection.introspection.django_table_names(only_existing=True, include_views=False)))
    command("sqlsequencereset", "shop", "auth")
    command("flush", interactive=False, verbosity=0)
    print(Author.objects.create(name="after").pk)


@part
def back():
    command("migrate", "shop", "zero")
    command("migrate", "admin", "zero", verbosity=0)
    command("migrate", "auth", "zero", verbosity=0)
    print(sorted(connection.introspection.table_names()))


if __name__ == "__main__":
    sections.run()
    MADE.cleanup()
