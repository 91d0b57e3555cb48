"""Models with the fields and constraints that PostgreSQL has more of than others."""
import uuid

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, HStoreField, IntegerRangeField, RangeOperators
from django.contrib.postgres.indexes import BrinIndex, BTreeIndex, GinIndex, HashIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models.functions import Lower, Now


class Author(models.Model):
    name = models.CharField(max_length=50, db_comment="in full")
    email = models.EmailField(unique=True, null=True)
    born = models.DateField(null=True, db_index=True)
    bio = models.TextField(default="", blank=True)
    active = models.BooleanField(db_default=True)

    class Meta:
        db_table_comment = "who writes"
        ordering = ["name"]
        constraints = [models.UniqueConstraint(Lower("name"), name="author_name_lower"), models.CheckConstraint(condition=~models.Q(name=""), name="author_name_given")]


class Tag(models.Model):
    word = models.SlugField(primary_key=True)


class Book(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    title = models.CharField(max_length=100, db_index=True)
    author = models.ForeignKey(Author, models.CASCADE, related_name="books")
    sequel = models.OneToOneField("self", models.SET_NULL, null=True)
    tags = models.ManyToManyField(Tag, related_name="books")
    price = models.DecimalField(max_digits=8, decimal_places=2, default=0)
    pages = models.PositiveIntegerField(default=1)
    small = models.PositiveSmallIntegerField(default=1)
    big = models.BigIntegerField(null=True)
    weight = models.FloatField(null=True)
    made = models.DateTimeField(db_default=Now())
    at = models.TimeField(null=True)
    took = models.DurationField(null=True)
    raw = models.BinaryField(null=True)
    data = models.JSONField(default=dict)
    words = ArrayField(models.CharField(max_length=20), default=list)
    grid = ArrayField(ArrayField(models.IntegerField()), null=True)
    span = IntegerRangeField(null=True)
    during = DateTimeRangeField(null=True)
    more = HStoreField(null=True)
    net = models.GenericIPAddressField(null=True)
    vector = SearchVectorField(null=True)
    total = models.GeneratedField(expression=models.F("price") * models.F("pages"), output_field=models.DecimalField(max_digits=20, decimal_places=2), db_persist=True)

    class Meta:
        indexes = [
            GinIndex(fields=["data"], name="book_data"), GinIndex(fields=["vector"], name="book_vector"), HashIndex(fields=["title"], name="book_title_hash"),
            BrinIndex(fields=["made"], name="book_made"), BTreeIndex(fields=["-pages", "title"], name="book_pages", include=["price"]),
            models.Index(Lower("title").desc(), name="book_title_lower", condition=models.Q(pages__gt=5)),
            GinIndex(name="book_title_trgm", fields=["title"], opclasses=["gin_trgm_ops"]),
        ]
        constraints = [
            ExclusionConstraint(name="book_during", expressions=[("during", RangeOperators.OVERLAPS), ("author", RangeOperators.EQUAL)]),
            models.UniqueConstraint(fields=["author", "title"], name="book_once", deferrable=models.Deferrable.DEFERRED),
            models.UniqueConstraint(fields=["net"], name="book_net", nulls_distinct=False, condition=models.Q(pages__gt=1000)),
        ]
