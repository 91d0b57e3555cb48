//! Diesel, through libpq: migrations forth and back, tables, queries, upserts, locks, nested transactions.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use diesel::connection::SimpleConnection;
use diesel::dsl::{count_star, exists, max, sql, sum};
use diesel::prelude::*;
use diesel::result::Error;
use diesel::sql_types::{BigInt, Bool, Text};
use diesel::upsert::excluded;
use diesel_migrations::{FileBasedMigrations, MigrationHarness};
use quorate_drivers::{part, tell, url};
use serde_json::{Value, json};
use uuid::Uuid;

diesel::table! {
    users (id) {
        id -> Integer,
        email -> Varchar,
        age -> Nullable<SmallInt>,
        big -> BigInt,
        ratio -> Double,
        active -> Bool,
        data -> Jsonb,
        plain -> Nullable<Json>,
        tags -> Array<Text>,
        numbers -> Array<Nullable<Integer>>,
        key -> Nullable<Uuid>,
        day -> Nullable<Date>,
        at -> Nullable<Time>,
        made -> Timestamptz,
        local -> Nullable<Timestamp>,
        raw -> Nullable<Bytea>,
    }
}

diesel::table! {
    posts (id) {
        id -> BigInt,
        user_id -> Integer,
        title -> Text,
    }
}

diesel::joinable!(posts -> users (user_id));
diesel::allow_tables_to_appear_in_same_query!(users, posts);

#[derive(Debug, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = users)]
struct User {
    #[diesel(skip_insertion)]
    id: i32,
    email: String,
    age: Option<i16>,
    big: i64,
    ratio: f64,
    active: bool,
    data: Value,
    plain: Option<Value>,
    tags: Vec<String>,
    numbers: Vec<Option<i32>>,
    key: Option<Uuid>,
    day: Option<NaiveDate>,
    at: Option<NaiveTime>,
    made: DateTime<Utc>,
    local: Option<NaiveDateTime>,
    raw: Option<Vec<u8>>,
}

const UP: &str = "create table users (id serial primary key, email varchar not null unique, age smallint check (age > 0), big bigint not null default 0, ratio double precision not null default 0,
    active boolean not null default true, data jsonb not null default '{}', plain json, tags text[] not null default '{}', numbers int[] not null default '{}', key uuid, day date, at time,
    made timestamptz not null default '2024-01-01 00:00+00', local timestamp, raw bytea);
    create table posts (id bigserial primary key, user_id int not null references users on delete cascade, title text not null);
    create or replace function set_local() returns trigger as $$ begin if new is distinct from old then new.local = '2024-01-02 00:00'; end if; return new; end; $$ language plpgsql;
    create trigger set_local before update on users for each row execute procedure set_local();";
const DOWN: &str = "drop table posts; drop table users; drop function set_local()";

fn user() -> User {
    let day = NaiveDate::from_ymd_opt(2024, 2, 29).unwrap_or_default();
    User {
        id: 0,
        email: "a@b".into(),
        age: Some(5),
        big: 1 << 60,
        ratio: 0.1,
        active: true,
        data: json!({"a": [1, null]}),
        plain: Some(json!(1)),
        tags: vec!["x".into(), "y\"z".into()],
        numbers: vec![Some(1), None],
        key: Some(Uuid::from_u128(7)),
        day: Some(day),
        at: NaiveTime::from_hms_opt(1, 2, 3),
        made: Utc.timestamp_opt(0, 0).unwrap(),
        local: Some(day.and_time(NaiveTime::MIN)),
        raw: Some(vec![0, 255]),
    }
}

fn migrations(on: &mut PgConnection) {
    let directory = std::env::temp_dir().join(format!("diesel-{}", std::process::id()));
    for (name, up, down) in [
        ("2024-01-01-000000_first", UP, DOWN),
        (
            "2024-01-02-000000_second",
            "alter table posts add score int; create index on posts (title)",
            "alter table posts drop score",
        ),
    ] {
        let folder = directory.join("migrations").join(name);
        std::fs::create_dir_all(&folder).expect("a directory");
        std::fs::write(folder.join("up.sql"), up).expect("a file");
        std::fs::write(folder.join("down.sql"), down).expect("a file");
    }
    let all =
        FileBasedMigrations::find_migrations_directory_in_path(&directory).expect("migrations");
    println!(
        "{:?}",
        tell(on.run_pending_migrations(all.clone())).map(|done| done.len())
    );
    println!(
        "{:?}",
        tell(on.revert_last_migration(all.clone())).map(|version| version.to_string())
    );
    println!("{:?}", tell(on.has_pending_migration(all.clone())));
    println!(
        "{:?}",
        tell(on.revert_all_migrations(all.clone())).map(|done| done.len())
    );
    println!(
        "{:?}",
        tell(on.run_pending_migrations(all)).map(|done| done.len())
    );
    println!(
        "{:?}",
        tell(on.applied_migrations())
            .map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())
    );
    std::fs::remove_dir_all(directory).expect("it is there");
}

fn rows(on: &mut PgConnection) -> QueryResult<()> {
    let made = diesel::insert_into(users::table)
        .values(user())
        .returning(User::as_returning())
        .get_result(on)?;
    println!("{} {made:?}", made.id);
    println!(
        "{:?}",
        diesel::insert_into(posts::table)
            .values(["t1", "t2"].map(|it| (posts::user_id.eq(1), posts::title.eq(it))))
            .returning(posts::id)
            .get_results::<i64>(on)?
    );
    let upsert =
        diesel::insert_into(users::table).values((users::email.eq("a@b"), users::age.eq(9)));
    println!(
        "{}",
        upsert
            .on_conflict(users::email)
            .do_update()
            .set(users::age.eq(excluded(users::age)))
            .execute(on)?
    );
    println!(
        "{}",
        diesel::insert_into(users::table)
            .values(users::email.eq("a@b"))
            .on_conflict_do_nothing()
            .execute(on)?
    );
    println!(
        "{:?}",
        users::table
            .select((users::age, users::local))
            .first::<(Option<i16>, Option<NaiveDateTime>)>(on)?
    );
    println!(
        "{:?}",
        users::table
            .left_join(posts::table)
            .group_by(users::email)
            .select((
                users::email,
                count_star(),
                sum(users::ratio),
                max(posts::title.nullable())
            ))
            .load::<(String, i64, Option<f64>, Option<String>)>(on)?
    );
    let found = users::table.filter(
        users::tags
            .contains(vec!["x"])
            .and(users::data.contains(json!({"a": [1]})))
            .and(exists(posts::table.filter(posts::user_id.eq(users::id))))
            .and(users::email.ilike("A%"))
            .and(users::id.eq_any([1, 2])),
    );
    println!(
        "{:?}",
        found
            .select(users::email)
            .for_update()
            .skip_locked()
            .load::<String>(on)?
    );
    println!(
        "{:?}",
        posts::table
            .distinct_on(posts::user_id)
            .order((posts::user_id, posts::title.desc()))
            .select(posts::title)
            .load::<String>(on)?
    );
    println!(
        "{:?}",
        diesel::select(sql::<Bool>("1 = ").bind::<BigInt, _>(1)).get_result::<bool>(on)?
    );
    println!(
        "{:?}",
        diesel::update(posts::table.filter(posts::title.eq("t1")))
            .set(posts::title.eq(posts::title.concat("!")))
            .returning(posts::title)
            .get_results::<String>(on)?
    );
    println!(
        "{}",
        diesel::delete(posts::table.filter(posts::title.like("%!"))).execute(on)?
    );
    for (email, age) in [("a@b", Some(1)), ("c@d", Some(-1))] {
        match diesel::insert_into(users::table)
            .values((users::email.eq(email), users::age.eq(age)))
            .execute(on)
        {
            Err(Error::DatabaseError(kind, told)) => println!(
                "{kind:?} {} {:?} {:?} {:?}",
                told.message(),
                told.details(),
                told.table_name(),
                told.constraint_name()
            ),
            other => println!("{other:?}"),
        }
    }
    println!(
        "{:?}",
        tell(diesel::sql_query("select nothing").execute(on))
    );
    println!("{:?}", users::table.count().get_result::<i64>(on)?);
    let mut rows = 0;
    for row in posts::table
        .select(posts::title)
        .load_iter::<String, diesel::pg::PgRowByRowLoadingMode>(on)?
    {
        rows += row?.len();
    }
    println!("{rows}");
    let copied = diesel::copy_to(posts::table)
        .with_format(diesel::pg::CopyFormat::Csv)
        .load_raw(on)?;
    println!("{:?}", std::io::read_to_string(copied).unwrap_or_default());
    Ok(())
}

fn transactions(on: &mut PgConnection) -> QueryResult<()> {
    let outcome = on
        .build_transaction()
        .serializable()
        .deferrable()
        .run(|on| {
            diesel::insert_into(posts::table)
                .values((posts::user_id.eq(1), posts::title.eq("in")))
                .execute(on)?;
            tell(on.transaction(|on| {
                diesel::insert_into(posts::table)
                    .values((posts::user_id.eq(99), posts::title.eq("orphan")))
                    .execute(on)
            }));
            println!(
                "{:?}",
                diesel::select(sql::<Text>("current_setting('transaction_isolation')"))
                    .get_result::<String>(on)?
            );
            Err::<(), _>(Error::RollbackTransaction)
        });
    tell(outcome);
    println!("{:?}", posts::table.count().get_result::<i64>(on)?);
    let mut other = PgConnection::establish(&url()).expect("a server");
    let mut again = 0;
    loop {
        let outcome = on.build_transaction().repeatable_read().run(|on| {
            users::table.count().get_result::<i64>(on)?;
            if again == 0 {
                diesel::update(users::table)
                    .set(users::ratio.eq(1.0))
                    .execute(&mut other)?;
            }
            diesel::update(users::table)
                .set(users::ratio.eq(2.0))
                .execute(on)
        });
        match outcome {
            Err(Error::DatabaseError(
                diesel::result::DatabaseErrorKind::SerializationFailure,
                _,
            )) => again += 1,
            other => break println!("{again} {other:?}"),
        }
    }
    Ok(())
}

fn main() {
    let mut on = PgConnection::establish(&url()).expect("a server");
    tell(on.batch_execute("set timezone to 'UTC'"));
    part("migrations");
    migrations(&mut on);
    part("rows");
    tell(rows(&mut on));
    part("transactions");
    tell(transactions(&mut on));
}
