//! The engine knows trees and no names. What it says of a lock that was not to be had, or of a
//! deadlock, gets the names of relations here.

use base::{Error, SqlState, TreeId};

use catalog::{Catalog, Table};

/// How the engine writes a tree.
const TREE: &str = "\"tree ";

/// The same error, naming relations.
pub(super) fn named(error: Error, catalog: &Catalog) -> Error {
    renamed(error, &|tree| name_of(tree, catalog))
}

/// The same error, naming a table.
pub(super) fn named_table(error: Error, table: &Table) -> Error {
    renamed(error, &|tree| (table.tree == tree).then_some(&table.name))
}

fn renamed<'a>(error: Error, name: &dyn Fn(TreeId) -> Option<&'a str>) -> Error {
    let is_of_locks = [SqlState::LOCK_NOT_AVAILABLE, SqlState::DEADLOCK_DETECTED];
    if !is_of_locks.contains(&error.state()) {
        return error;
    }
    let message = put_names(error.message(), name);
    let mut out = Error::of_class(error.class(), error.state(), message);
    let mut fields = error.fields().clone();
    fields.detail = fields.detail.map(|detail| put_names(&detail, name));
    *out.fields_mut() = fields;
    out
}

fn put_names<'a>(text: &str, name: &dyn Fn(TreeId) -> Option<&'a str>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(TREE) {
        out.push_str(before);
        let number = after.split('"').next().unwrap_or_default();
        let known = number.parse().ok().and_then(|id| name(TreeId(id)));
        out.push_str(known.map_or(TREE, |_| "\""));
        out.push_str(known.unwrap_or(number));
        rest = &after[number.len()..];
    }
    out.push_str(rest);
    out
}

fn name_of(tree: TreeId, catalog: &Catalog) -> Option<&str> {
    catalog.tables.iter().find_map(|table| {
        if table.tree == tree {
            return Some(table.name.as_str());
        }
        table.index_of_tree(tree).map(|index| index.name.as_str())
    })
}
