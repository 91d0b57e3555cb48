//! sqlx: migrations forth and back, types, what a prepared statement says of itself, pools, COPY, listeners, nested transactions.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use futures_util::TryStreamExt;
use quorate_drivers::{part, url};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::types::{PgInterval, PgRange};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Column, Connection, Executor, Row, SqlSafeStr, Statement, TypeInfo};
use uuid::Uuid;

type Done = Result<(), sqlx::Error>;

fn tell<T>(result: Result<T, sqlx::Error>) -> Option<T> {
    result
        .map_err(|error| match error.as_database_error() {
            Some(it) => println!(
                "! {:?} {} {:?} {:?}",
                it.code(),
                it.message(),
                it.table(),
                it.constraint()
            ),
            None => println!("! {error}"),
        })
        .ok()
}

fn migrator() -> Migrator {
    let texts = [
        (
            1,
            "create table people (id bigint generated always as identity primary key, name text not null unique, age int check (age > 0)); create type mood as enum ('sad', 'ok');",
            "drop table people; drop type mood",
        ),
        (
            2,
            "alter table people add mood mood default 'ok'",
            "alter table people drop mood",
        ),
    ];
    let migrations = texts.into_iter().flat_map(|(version, up, down)| {
        [
            (MigrationType::ReversibleUp, up),
            (MigrationType::ReversibleDown, down),
        ]
        .map(|(kind, text)| {
            Migration::new(
                version,
                Cow::Borrowed("step"),
                kind,
                text.into_sql_str(),
                false,
            )
        })
    });
    Migrator {
        migrations: migrations.collect(),
        ..Migrator::DEFAULT
    }
}

async fn migrations(pool: &PgPool) -> Done {
    let migrator = migrator();
    for _ in 0..2 {
        tell(migrator.run(pool).await.map_err(sqlx::Error::from));
    }
    tell(migrator.undo(pool, 1).await.map_err(sqlx::Error::from));
    let left: i64 = sqlx::query_scalar("select count(*) from _sqlx_migrations")
        .fetch_one(pool)
        .await?;
    println!("{left}");
    tell(migrator.undo(pool, 0).await.map_err(sqlx::Error::from));
    tell(migrator.run(pool).await.map_err(sqlx::Error::from));
    Ok(())
}

async fn both_ways<T>(pool: &PgPool, kind: &str, value: T) -> Done
where
    T: for<'q> sqlx::Encode<'q, sqlx::Postgres>
        + for<'r> sqlx::Decode<'r, sqlx::Postgres>
        + sqlx::Type<sqlx::Postgres>
        + std::fmt::Debug
        + Send
        + Unpin
        + 'static,
{
    let row = sqlx::query(AssertSqlSafe(format!("select $1::{kind} as v")))
        .bind(value)
        .fetch_one(pool)
        .await?;
    println!(
        "{kind} {} {:?}",
        row.column(0).type_info().name(),
        row.try_get::<T, _>(0)?
    );
    Ok(())
}

#[derive(Debug, sqlx::Type)]
#[sqlx(type_name = "mood", rename_all = "lowercase")]
enum Mood {
    Sad,
    Ok,
}

#[derive(Debug, sqlx::Type)]
#[sqlx(type_name = "pair")]
struct Pair {
    a: Option<i32>,
    b: Option<String>,
}

async fn types(pool: &PgPool) -> Done {
    let day = NaiveDate::from_ymd_opt(2024, 2, 29).unwrap_or_default();
    both_ways(pool, "bool", true).await?;
    both_ways(pool, "int2", -3_i16).await?;
    both_ways(pool, "int4", 7_i32).await?;
    both_ways(pool, "int8", i64::MAX).await?;
    both_ways(pool, "float4", 1.5_f32).await?;
    both_ways(pool, "float8", -1e300_f64).await?;
    both_ways(pool, "text", "Ünï ✓".to_owned()).await?;
    both_ways(pool, "bytea", vec![0_u8, 255]).await?;
    both_ways(pool, "date", day).await?;
    both_ways(pool, "time", NaiveTime::MIN).await?;
    both_ways(pool, "timestamp", day.and_time(NaiveTime::MIN)).await?;
    both_ways(pool, "timestamptz", DateTime::<Utc>::UNIX_EPOCH).await?;
    both_ways(
        pool,
        "interval",
        PgInterval {
            months: 14,
            days: 3,
            microseconds: 7,
        },
    )
    .await?;
    both_ways(pool, "uuid", Uuid::from_u128(7)).await?;
    both_ways(pool, "jsonb", Json(serde_json::json!({"a": [1]}))).await?;
    both_ways(pool, "int4range", PgRange::from(1..5)).await?;
    both_ways(pool, "int4[]", vec![Some(1), None]).await?;
    both_ways(pool, "text[]", vec!["a".to_owned(), String::new()]).await?;
    both_ways(pool, "int8", None::<i64>).await?;
    pool.execute("create type pair as (a int, b text)").await?;
    both_ways(pool, "mood", Mood::Ok).await?;
    both_ways(pool, "mood[]", vec![Mood::Sad]).await?;
    both_ways(
        pool,
        "pair",
        Pair {
            a: Some(1),
            b: Some("x,\"y\"".into()),
        },
    )
    .await?;
    let mut connection = pool.acquire().await?;
    let statement = (&mut *connection)
        .prepare(
            "select id, name, mood, age + $1 as sum from people where name = any($2)"
                .into_sql_str(),
        )
        .await?;
    println!(
        "{:?}",
        statement
            .columns()
            .iter()
            .map(|it| (it.name(), it.type_info().name().to_owned()))
            .collect::<Vec<_>>()
    );
    println!(
        "{:?}",
        statement
            .parameters()
            .map(|either| either.map_left(|all| all
                .iter()
                .map(|it| it.name().to_owned())
                .collect::<Vec<_>>()))
    );
    Ok(())
}

async fn rows(pool: &PgPool) -> Done {
    for name in ["a", "b", "a"] {
        let made = sqlx::query_as::<_, (i64, Mood)>(
            "insert into people (name, age) values ($1, $2) returning id, mood",
        )
        .bind(name)
        .bind(5)
        .fetch_one(pool)
        .await;
        println!("{:?}", tell(made));
    }
    tell(
        sqlx::query("insert into people (name, age) values ('z', -1)")
            .execute(pool)
            .await,
    );
    tell(sqlx::query("select * from nowhere").execute(pool).await);
    println!(
        "{}",
        sqlx::query("update people set age = age + 1 where name = any($1)")
            .bind(vec!["a", "b"])
            .execute(pool)
            .await?
            .rows_affected()
    );
    let names: Vec<String> = sqlx::query_scalar("select name from people order by name")
        .fetch(pool)
        .try_collect()
        .await?;
    println!(
        "{names:?} {:?}",
        sqlx::query("select 1 where false")
            .fetch_optional(pool)
            .await?
            .is_some()
    );
    let mut many = sqlx::raw_sql("select 1; select 2").fetch_many(pool);
    let mut count = 0;
    while many.try_next().await?.is_some() {
        count += 1;
    }
    println!("{count}");
    drop(many);
    let mut connection = pool.acquire().await?;
    let mut copy = connection
        .copy_in_raw("copy people (name, age) from stdin (format csv)")
        .await?;
    copy.send(&b"c,1\nd,2\n"[..]).await?;
    println!("{}", copy.finish().await?);
    let out: Vec<_> = connection
        .copy_out_raw("copy (select name, age from people order by name) to stdout")
        .await?
        .try_collect()
        .await?;
    println!("{:?}", String::from_utf8_lossy(&out.concat()));
    Ok(())
}

async fn transactions(pool: &PgPool) -> Done {
    let mut outer = pool
        .begin_with("begin isolation level serializable")
        .await?;
    sqlx::query("insert into people (name) values ('t')")
        .execute(&mut *outer)
        .await?;
    let mut inner = outer.begin().await?;
    tell(
        sqlx::query("insert into people (name) values ('t')")
            .execute(&mut *inner)
            .await,
    );
    inner.rollback().await?;
    println!(
        "{}",
        sqlx::query_scalar::<_, String>("show transaction_isolation")
            .fetch_one(&mut *outer)
            .await?
    );
    outer.rollback().await?;
    println!(
        "{}",
        sqlx::query_scalar::<_, i64>("select count(*) from people")
            .fetch_one(pool)
            .await?
    );
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen("news").await?;
    sqlx::query("select pg_notify('news', 'hello')")
        .execute(pool)
        .await?;
    let heard = listener.recv().await?;
    println!("{} {}", heard.channel(), heard.payload());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let options: PgConnectOptions = url().parse().expect("a url");
    let pool = PgPoolOptions::new()
        .max_connections(3)
        .connect_with(options.options([("TimeZone", "UTC")]))
        .await
        .expect("a server");
    part("migrations");
    tell(migrations(&pool).await);
    part("types");
    tell(types(&pool).await);
    part("rows");
    tell(rows(&pool).await);
    part("transactions");
    tell(transactions(&pool).await);
}
