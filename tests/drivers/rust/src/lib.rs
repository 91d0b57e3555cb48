//! What the programs share: where the server is, and errors as one line.

use std::env;
use std::fmt::Display;

/// A part of the address, as libpq's variables have it.
pub fn at(name: &str) -> String {
    env::var(format!("PG{name}")).unwrap_or_default()
}

/// Where the server is, as libpq's connection string.
pub fn dsn() -> String {
    format!(
        "host={} port={} user={} dbname={}",
        at("HOST"),
        at("PORT"),
        at("USER"),
        at("DATABASE")
    )
}

/// The same as a URL.
pub fn url() -> String {
    format!(
        "postgres://{}@{}:{}/{}",
        at("USER"),
        at("HOST"),
        at("PORT"),
        at("DATABASE")
    )
}

/// Prints the beginning of a part.
pub fn part(name: &str) {
    println!("# {name}");
}

/// Prints an error, if there is one.
pub fn tell<T, E: Display>(result: Result<T, E>) -> Option<T> {
    result
        .map_err(|error| println!("! {}", error.to_string().replace('\n', " | ")))
        .ok()
}
