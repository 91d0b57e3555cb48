//! What the real psql is told, where nothing but an answer will do.

use lab::host::Endpoint;

/// What psql prints for some SQL.
pub fn psql(endpoint: &Endpoint, sql: &str) -> String {
    let answer = endpoint.query(sql);
    answer.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The one number that it prints.
pub fn number(endpoint: &Endpoint, sql: &str) -> i64 {
    let shown = psql(endpoint, sql);
    shown
        .parse()
        .unwrap_or_else(|_| panic!("{sql}: {shown} is no number"))
}
