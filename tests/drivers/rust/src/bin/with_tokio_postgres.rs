//! tokio-postgres: types in binary and text, prepared statements, pipelines, COPY, portals, notices, cancel.

use std::error::Error;
use std::fmt::Debug;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use futures_util::{SinkExt, StreamExt, TryStreamExt, future, stream};
use postgres_types::{FromSql, ToSql};
use quorate_drivers::{dsn, part};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, IsolationLevel, NoTls, SimpleQueryMessage};
use uuid::Uuid;

type Done = Result<(), Box<dyn Error>>;

/// An error as its SQLSTATE and what the server said.
fn told(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(it) => format!(
            "{} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            it.code().code(),
            it.message(),
            it.detail(),
            it.hint(),
            it.position(),
            it.table(),
            it.column(),
            it.constraint(),
            it.where_()
        ),
        None => error.to_string(),
    }
}

fn tell<T>(result: Result<T, tokio_postgres::Error>) -> Option<T> {
    result.map_err(|error| println!("! {}", told(&error))).ok()
}

/// A client, and what the server says unasked.
async fn connect() -> (Client, UnboundedReceiver<AsyncMessage>) {
    let (client, mut connection) = tokio_postgres::connect(&dsn(), NoTls)
        .await
        .expect("a server");
    let (to, from) = unbounded_channel();
    tokio::spawn(async move {
        let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            let _ = to.send(message);
        }
    });
    (client, from)
}

async fn both_ways<T>(client: &Client, kind: &str, value: T)
where
    T: ToSql + Sync + Debug + for<'a> FromSql<'a>,
{
    let text = format!("select $1::{kind} as v, null::{kind} is null");
    match client.query_one(&text, &[&value]).await {
        Ok(row) => println!(
            "{kind} {} {:?}",
            row.columns()[0].type_(),
            row.try_get::<_, T>(0).map_err(|error| error.to_string())
        ),
        Err(error) => println!("{kind} ! {}", told(&error)),
    }
}

async fn types(client: &Client) -> Done {
    let at = NaiveDate::from_ymd_opt(2024, 2, 29).unwrap_or_default();
    let moment =
        at.and_time(NaiveTime::from_hms_micro_opt(23, 59, 59, 999_999).unwrap_or_default());
    both_ways(client, "bool", true).await;
    both_ways(client, "\"char\"", 7_i8).await;
    both_ways(client, "int2", i16::MIN).await;
    both_ways(client, "int4", i32::MIN).await;
    both_ways(client, "int8", i64::MAX).await;
    both_ways(client, "oid", u32::MAX).await;
    both_ways(client, "float4", 1.5_f32).await;
    both_ways(client, "float8", f64::NEG_INFINITY).await;
    for text in ["", "Ünïcödé ✓ 𝒳"] {
        for kind in ["text", "varchar", "bpchar", "name"] {
            both_ways(client, kind, text.to_owned()).await;
        }
    }
    both_ways(client, "bytea", vec![0_u8, 1, 255, 39]).await;
    both_ways(client, "date", at).await;
    both_ways(client, "time", moment.time()).await;
    both_ways(client, "timestamp", moment).await;
    both_ways(client, "timestamptz", moment.and_utc()).await;
    both_ways(client, "timestamptz", SystemTime::UNIX_EPOCH).await;
    both_ways(client, "uuid", Uuid::from_u128(7)).await;
    both_ways(client, "json", json!({"b": 1, "a": [null, true]})).await;
    both_ways(client, "jsonb", json!({"b": 1, "a": [null, true]})).await;
    both_ways(client, "inet", "10.1.2.3".parse::<IpAddr>()?).await;
    both_ways(client, "int4[]", vec![Some(1), None, Some(3)]).await;
    both_ways(client, "int4[]", Vec::<i32>::new()).await;
    both_ways(client, "text[]", vec![Some("a".to_owned()), None]).await;
    both_ways(client, "timestamp[]", vec![moment]).await;
    both_ways(client, "jsonb[]", vec![json!(1)]).await;
    both_ways(client, "uuid[]", vec![Uuid::nil()]).await;
    both_ways(client, "bytea[]", vec![vec![0_u8]]).await;
    both_ways(client, "int4", None::<i32>).await;
    for message in client
        .simple_query("select 1.50::numeric, '1 day'::interval, '[1,3)'::int4range, null, '{1,2}'::int[], row(1, 'a'), 'a & b'::tsquery; select 2 where false")
        .await?
    {
        match message {
            SimpleQueryMessage::Row(row) => println!("{:?}", (0..row.len()).map(|at| row.get(at)).collect::<Vec<_>>()),
            SimpleQueryMessage::CommandComplete(count) => println!("complete {count}"),
            SimpleQueryMessage::RowDescription(columns) => println!("{:?}", columns.iter().map(|it| it.name().to_owned()).collect::<Vec<_>>()),
            _ => println!("?"),
        }
    }
    Ok(())
}

async fn rows(client: &Client) -> Done {
    client
        .batch_execute("create table items (id bigserial primary key, name text not null unique, price float8 check (price >= 0), tags text[] default '{}', made timestamptz default '2024-01-01 00:00+00')")
        .await?;
    let insert = client
        .prepare("insert into items (name, price) values ($1, $2) returning id, made")
        .await?;
    println!(
        "{:?} {:?}",
        insert.params(),
        insert
            .columns()
            .iter()
            .map(|it| (it.name(), it.type_().name(), it.column_id()))
            .collect::<Vec<_>>()
    );
    for name in ["a", "b", "c"] {
        let row = client.query_one(&insert, &[&name, &1.5]).await?;
        println!(
            "{} {}",
            row.get::<_, i64>(0),
            row.get::<_, DateTime<Utc>>(1)
        );
    }
    println!(
        "{}",
        client
            .execute(
                "update items set price = price + $1, tags = tags || $2::text where name = any($3)",
                &[&1.0, &"t", &vec!["a", "c"]]
            )
            .await?
    );
    for row in client
        .query("select id, name, price, tags from items order by id", &[])
        .await?
    {
        println!(
            "{} {} {:?} {:?}",
            row.get::<_, i64>(0),
            row.get::<_, &str>(1),
            row.get::<_, Option<f64>>(2),
            row.get::<_, Vec<String>>(3)
        );
    }
    tell(client.execute(&insert, &[&"a", &1.0]).await);
    tell(client.execute(&insert, &[&None::<String>, &1.0]).await);
    tell(client.execute(&insert, &[&"z", &-1.0]).await);
    tell(client.prepare("select nothing from items").await);
    tell(
        client
            .prepare_typed("select $1 + $2", &[Type::INT4])
            .await
            .map(|it| println!("{:?}", it.params())),
    );
    tell(
        client
            .query_typed("select $1 || $2", &[(&"a", Type::TEXT), (&"b", Type::TEXT)])
            .await
            .map(|it| println!("{}", it[0].get::<_, &str>(0))),
    );
    let unknown = client.prepare("select $1::text, $2::int, $3 = any($4::uuid[]), $5::jsonb -> $6, now() - $7, $8::date + $9::int").await?;
    println!("{:?}", unknown.params());
    Ok(())
}

async fn transactions(client: &mut Client) -> Done {
    client
        .batch_execute("create table steps (n int primary key)")
        .await?;
    let mut outer = client.transaction().await?;
    outer.execute("insert into steps values (1)", &[]).await?;
    let inner = outer.savepoint("within").await?;
    tell(inner.execute("insert into steps values (1)", &[]).await);
    tell(inner.execute("select 1", &[]).await);
    inner.rollback().await?;
    let portal = outer
        .bind("select g from generate_series(1, 5) g", &[])
        .await?;
    for _ in 0..3 {
        println!(
            "{:?}",
            outer
                .query_portal(&portal, 2)
                .await?
                .iter()
                .map(|it| it.get::<_, i32>(0))
                .collect::<Vec<_>>()
        );
    }
    outer.commit().await?;
    for level in [
        IsolationLevel::ReadCommitted,
        IsolationLevel::RepeatableRead,
        IsolationLevel::Serializable,
    ] {
        let read = client
            .build_transaction()
            .isolation_level(level)
            .read_only(true)
            .deferrable(true)
            .start()
            .await?;
        println!(
            "{}",
            read.query_one("show transaction_isolation", &[])
                .await?
                .get::<_, String>(0)
        );
        tell(read.execute("insert into steps values (2)", &[]).await);
    }
    let dropped = client.transaction().await?;
    dropped.execute("insert into steps values (2)", &[]).await?;
    drop(dropped);
    println!(
        "{}",
        client
            .query_one("select count(*) from steps", &[])
            .await?
            .get::<_, i64>(0)
    );
    Ok(())
}

async fn retries(one: &mut Client, two: &mut Client) -> Done {
    let mut again = 0;
    loop {
        let first = two
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .start()
            .await?;
        first.query("select * from steps", &[]).await?;
        if again == 0 {
            one.execute("update steps set n = n + 100", &[]).await?;
        }
        match first.execute("update steps set n = n + 1", &[]).await {
            Ok(_) => break first.commit().await?,
            Err(error) if error.code().is_some_and(|code| code.code() == "40001") => again += 1,
            Err(error) => return Err(error.into()),
        }
    }
    println!("again {again}");
    let rows = one.query("select n from steps", &[]).await?;
    println!(
        "{:?}",
        rows.iter()
            .map(|it| it.get::<_, i32>(0))
            .collect::<Vec<_>>()
    );
    Ok(())
}

async fn pipelines(client: &Client) -> Done {
    let statement = client.prepare("select $1::int4 * 2").await?;
    let doubled = future::try_join_all((0..100).map(|n| {
        let statement = &statement;
        async move {
            client
                .query_one(statement, &[&n])
                .await
                .map(|row| row.get::<_, i32>(0))
        }
    }))
    .await?;
    println!("{}", doubled.iter().sum::<i32>());
    let one: [&(dyn ToSql + Sync); 1] = [&1];
    let (good, bad, after) = future::join3(
        client.query("select 1", &[]),
        client.query("select 1 / ($1::int4 - 1)", &one),
        client.query("select 2", &[]),
    )
    .await;
    println!("{} {}", good.is_ok(), after.is_ok());
    tell(bad);
    let rows = client
        .query_raw("select generate_series(1, 5)", &[] as &[&i32])
        .await?;
    println!(
        "{:?}",
        rows.map_ok(|row| row.get::<_, i32>(0))
            .try_collect::<Vec<_>>()
            .await?
    );
    Ok(())
}

async fn copies(client: &Client) -> Done {
    client
        .batch_execute("create table copied (a int, b text, c timestamp)")
        .await?;
    let kinds = [Type::INT4, Type::TEXT, Type::TIMESTAMP];
    let writer = BinaryCopyInWriter::new(
        client
            .copy_in("copy copied from stdin (format binary)")
            .await?,
        &kinds,
    );
    futures_util::pin_mut!(writer);
    for n in 0..100 {
        writer
            .as_mut()
            .write(&[&n, &format!("line {n}"), &None::<NaiveDateTime>])
            .await?;
    }
    println!("{}", writer.finish().await?);
    let sink = client
        .copy_in("copy copied (a, b) from stdin (format csv)")
        .await?;
    futures_util::pin_mut!(sink);
    sink.send(bytes::Bytes::from_static(b"100,x\n101,\"y,z\"\n"))
        .await?;
    println!("{}", sink.finish().await?);
    let out = client
        .copy_out("copy (select * from copied where a > 98 order by a) to stdout")
        .await?;
    println!(
        "{:?}",
        out.map_ok(|it| String::from_utf8_lossy(&it).into_owned())
            .try_collect::<String>()
            .await?
    );
    let out = BinaryCopyOutStream::new(
        client
            .copy_out(
                "copy (select * from copied where a > 98 order by a) to stdout (format binary)",
            )
            .await?,
        &kinds,
    );
    println!(
        "{:?}",
        out.map_ok(|row| (
            row.get::<i32>(0),
            row.get::<String>(1),
            row.get::<Option<NaiveDateTime>>(2)
        ))
        .try_collect::<Vec<_>>()
        .await?
    );
    let sink = client.copy_in("copy copied from stdin").await?;
    futures_util::pin_mut!(sink);
    sink.send(bytes::Bytes::from_static(b"x\ty\n")).await?;
    tell(sink.finish().await);
    let dropped = client
        .copy_in::<_, bytes::Bytes>("copy copied from stdin")
        .await?;
    drop(dropped);
    println!(
        "{}",
        client
            .query_one("select count(*) from copied", &[])
            .await?
            .get::<_, i64>(0)
    );
    Ok(())
}

async fn messages(
    client: &Client,
    from: &mut UnboundedReceiver<AsyncMessage>,
    other: &Client,
) -> Done {
    client
        .batch_execute("drop table if exists nowhere; listen news")
        .await?;
    other.batch_execute("notify news, 'hello'").await?;
    for _ in 0..2 {
        match tokio::time::timeout(Duration::from_secs(10), from.recv()).await? {
            Some(AsyncMessage::Notice(it)) => {
                println!("notice {} {}", it.code().code(), it.message())
            }
            Some(AsyncMessage::Notification(it)) => println!("{} {}", it.channel(), it.payload()),
            _ => println!("?"),
        }
    }
    let token = client.cancel_token();
    let (slept, _) = future::join(client.batch_execute("select pg_sleep(30)"), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        token.cancel_query(NoTls).await
    })
    .await;
    tell(slept);
    Ok(())
}

#[derive(Debug, ToSql, FromSql)]
#[postgres(name = "mood", rename_all = "lowercase")]
enum Mood {
    Sad,
    Ok,
}

#[derive(Debug, ToSql, FromSql)]
#[postgres(name = "pair")]
struct Pair {
    a: Option<i32>,
    b: Option<String>,
    m: Option<Mood>,
}

#[derive(Debug, ToSql, FromSql)]
#[postgres(name = "positive")]
struct Positive(i32);

async fn user_types(client: &Client) -> Done {
    client
        .batch_execute("create type mood as enum ('sad', 'ok'); create type pair as (a int, b text, m mood); create domain positive as int check (value > 0);
            create table typed (m mood, ms mood[], p pair, ps pair[], d positive)")
        .await?;
    let insert = client
        .prepare("insert into typed (m, ms, p, ps, d) values ($1, $2, $3, $4, $5)")
        .await?;
    println!(
        "{}",
        format!("{:?}", insert.params())
            .chars()
            .filter(|it| !it.is_ascii_digit())
            .collect::<String>()
    );
    let pair = || Pair {
        a: Some(1),
        b: Some("x,\"y\"".into()),
        m: Some(Mood::Ok),
    };
    tell(
        client
            .execute(
                &insert,
                &[
                    &Mood::Ok,
                    &vec![Mood::Sad, Mood::Ok],
                    &pair(),
                    &vec![
                        pair(),
                        Pair {
                            a: None,
                            b: None,
                            m: None,
                        },
                    ],
                    &Positive(5),
                ],
            )
            .await,
    );
    tell(
        client
            .execute(
                &insert,
                &[
                    &Mood::Ok,
                    &Vec::<Mood>::new(),
                    &pair(),
                    &Vec::<Pair>::new(),
                    &Positive(-5),
                ],
            )
            .await,
    );
    for row in client.query("select * from typed", &[]).await? {
        println!(
            "{:?} {:?} {:?} {:?} {:?}",
            row.get::<_, Mood>(0),
            row.get::<_, Vec<Mood>>(1),
            row.get::<_, Pair>(2),
            row.get::<_, Vec<Pair>>(3),
            row.get::<_, Positive>(4)
        );
        println!(
            "{:?}",
            row.columns()
                .iter()
                .map(|it| format!("{:?}", it.type_().kind())
                    .chars()
                    .filter(|it| !it.is_ascii_digit())
                    .collect::<String>())
                .collect::<Vec<_>>()
        );
    }
    Ok(())
}

async fn own_ranges(client: &Client) -> Done {
    client
        .batch_execute("create type spans as range (subtype = float8)")
        .await?;
    println!(
        "{:?}",
        client.prepare("select $1::spans").await?.params()[0].name()
    );
    Ok(())
}

fn ended(done: Done) {
    if let Err(error) = done {
        match error.downcast_ref::<tokio_postgres::Error>() {
            Some(error) => println!("! {}", told(error)),
            None => println!("! {error}"),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (mut client, mut from) = connect().await;
    let (mut other, _kept) = connect().await;
    part("types");
    ended(types(&client).await);
    part("rows");
    ended(rows(&client).await);
    part("transactions");
    ended(transactions(&mut client).await);
    part("retries");
    ended(retries(&mut other, &mut client).await);
    part("pipelines");
    ended(pipelines(&client).await);
    part("copies");
    ended(copies(&client).await);
    part("messages");
    ended(messages(&client, &mut from, &other).await);
    part("user types");
    ended(user_types(&client).await);
    part("own ranges");
    ended(own_ranges(&client).await);
}
