//! The tables of `pg_catalog`.

use std::sync::{Arc, OnceLock};

use super::Table;

/// The tables of `pg_catalog`, by oid.
pub fn tables() -> &'static [Arc<Table>] {
    static TABLES: OnceLock<Vec<Arc<Table>>> = OnceLock::new();
    TABLES.get_or_init(Vec::new)
}
