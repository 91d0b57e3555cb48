//! The views of `pg_catalog` and `information_schema`, as SQL over the other relations.
//!
//! `views.sql` has them: a line `-- schema.name` and the query behind it, whose columns are those
//! of `relations.txt` in their order. The binder puts the query in the place of the name, as it
//! does for any view.

use std::sync::OnceLock;

use base::hash::HashMap;

use crate::{Table, INFORMATION_SCHEMA};

const TEXTS: &str = include_str!("views.sql");

/// The query of a view.
pub(super) fn text(table: &Table) -> Option<&'static str> {
    static READ: OnceLock<HashMap<&'static str, &'static str>> = OnceLock::new();
    let read = READ.get_or_init(|| {
        let parts = TEXTS.split("\n-- ").skip(1);
        parts
            .filter_map(|part| part.split_once('\n'))
            .map(|(name, query)| (name.trim(), query.trim()))
            .collect()
    });
    let schema = match table.schema {
        INFORMATION_SCHEMA => "information_schema",
        _ => "pg_catalog",
    };
    read.get(format!("{schema}.{}", table.name).as_str())
        .copied()
}
