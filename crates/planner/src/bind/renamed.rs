//! Stored text with the names that things have now in the places of their oids.
//!
//! ```text
//! stored:  SELECT * FROM "#"."16384" AS t(id, a) WHERE nextval('16400'::regclass) > 1
//! shown:   SELECT * FROM s.t WHERE nextval('q'::regclass) > 1
//! ```
//! Columns that have other names by now are listed behind the alias, so that it is the same query.

use std::sync::Arc;

use base::Result;

use super::Binder;
use catalog::depend::{routine_name, shown_name};
use catalog::view::BY_OID;
use catalog::Table;
use functions::strings::quote_identifier;
use syntax::parser::{self, Token, TokenKind};
use types::TypeId;

impl Binder<'_> {
    /// Stored text with the names of relations in the places of their oids.
    pub(super) fn renamed(&self, text: &str) -> Result<String> {
        let tokens = parser::tokens(text)?;
        let part = |at: usize| {
            tokens
                .get(at)
                .map_or("", |token| &text[token.start..token.end])
        };
        let schema = format!("\"{BY_OID}\"");
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (at, token) in tokens.iter().enumerate() {
            let is_oid = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let is_item = part(at) == schema && part(at + 1) == ".";
            if let Some((shown, last)) = self.own_renamed(&part, at, token, is_item) {
                out.push_str(&text[done..token.start]);
                out.push_str(&shown);
                done = tokens[last].end;
                continue;
            }
            let oid = match is_item {
                true => part(at + 2).trim_matches('"'),
                false if token.kind != TokenKind::String || part(at + 2) != "regclass" => continue,
                false => part(at).trim_matches('\''),
            };
            let oid = Some(oid).filter(|oid| is_oid(oid));
            let oid = oid.and_then(|oid| oid.parse().ok());
            let routine = oid.filter(|_| is_item);
            if let Some(routine) = routine.and_then(|oid| self.cx.catalog.routine(oid)) {
                let shown = routine_name(self.cx.catalog, self.cx.search_path, routine);
                out.push_str(&text[done..token.start]);
                out.push_str(&shown);
                done = tokens[at + 2].end;
                continue;
            }
            let name = oid.and_then(|oid| shown_name(self.cx.catalog, self.cx.search_path, oid));
            let (Some(oid), Some(name)) = (oid, name) else {
                continue;
            };
            out.push_str(&text[done..token.start]);
            if is_item {
                let (alias, columns, end) = stored_alias(&tokens[at + 3..], text);
                let table = self.cx.catalog.table_by_oid(oid);
                out.push_str(&item_as_named(table, &name, &alias, &columns));
                done = end.max(tokens[at + 2].end);
            } else {
                out.push_str(&format!("'{}'", name.replace('\'', "''")));
                done = token.end;
            }
        }
        out.push_str(&text[done..]);
        Ok(out)
    }

    /// What stands for a type of one's own, or for a literal with labels, in stored text, as anyone
    /// may write it, and the place of its last token.
    fn own_renamed<'p>(
        &self,
        part: &impl Fn(usize) -> &'p str,
        at: usize,
        token: &Token,
        is_item: bool,
    ) -> Option<(String, usize)> {
        if is_item {
            let id = TypeId(part(at + 2).trim_matches('"').parse().ok()?);
            let shown = self.cx.catalog.shown_type(self.cx.search_path, id);
            return shown.filter(|_| id.is_own()).map(|shown| (shown, at + 2));
        }
        let is_label = token.kind == TokenKind::String && part(at).contains('#');
        let (kept, eval) = (part(at), self.cx.eval);
        let shown = is_label.then(|| eval.name_labels(kept)).flatten();
        shown.map(|shown| (shown, at))
    }
}

/// The alias of an item of FROM in stored text, the names that its columns have there, and where
/// that ends: `AS "t"("a", "b")`.
fn stored_alias(tokens: &[Token], text: &str) -> (String, Vec<String>, usize) {
    let name = |at: usize| {
        let token = tokens.get(at).map(|token| &text[token.start..token.end]);
        let quoted = token.and_then(|token| token.strip_prefix('"')?.strip_suffix('"'));
        quoted.map(|name| name.replace("\"\"", "\""))
    };
    let is = |at: usize, c: u8| {
        let token = tokens.get(at);
        token.is_some_and(|token| token.kind == TokenKind::Char(c))
    };
    let end = |at: usize| tokens.get(at).map_or(0, |token| token.end);
    // What is written to may have none.
    let is_as = tokens
        .first()
        .is_some_and(|token| text[token.start..token.end].eq_ignore_ascii_case("as"));
    let Some(alias) = name(1).filter(|_| is_as) else {
        return (String::new(), Vec::new(), 0);
    };
    let mut columns = Vec::new();
    if !is(2, b'(') {
        return (alias, columns, end(1));
    }
    let mut at = 3;
    while let Some(column) = name(at) {
        columns.push(column);
        at += 1;
        if is(at, b',') {
            at += 1;
        }
    }
    (alias, columns, end(at))
}

/// An item of FROM by its name, as anyone may write it: with a list of columns only where they have
/// other names by now, and with those alone that were there when the text was stored.
fn item_as_named(table: Option<&Arc<Table>>, name: &str, alias: &str, stored: &[String]) -> String {
    if alias.is_empty() || stored.is_empty() && table.is_some_and(|table| !table.columns.is_empty())
    {
        let own = (!alias.is_empty()).then(|| format!(" AS {}", quote_identifier(alias)));
        return format!("{name}{}", own.unwrap_or_default());
    }
    let own = match table {
        Some(table) if table.name == alias => String::new(),
        _ => format!(" {}", quote_identifier(alias)),
    };
    let Some(table) = table else {
        return format!("{name}{own}");
    };
    let listed = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| quote_identifier(name)).collect();
        names.join(", ")
    };
    let live = table.columns.iter().filter(|column| !column.dropped);
    let live: Vec<_> = live.map(|column| column.name.as_str()).collect();
    let seen = stored.iter().zip(&table.columns);
    let seen: Vec<_> = seen.filter(|(_, column)| !column.dropped).collect();
    let names: Vec<_> = seen.iter().map(|(stored, _)| stored.as_str()).collect();
    let now: Vec<_> = seen
        .iter()
        .map(|(_, column)| column.name.as_str())
        .collect();
    let (alias, list) = (quote_identifier(alias), listed(&names));
    match (names == now, now.len() == live.len()) {
        (true, true) => format!("{name}{own}"),
        (false, true) => format!("{name} {alias}({list})"),
        // Whatever came later must not be in `*`.
        (_, false) => format!("(SELECT {} FROM {name}) {alias}({list})", listed(&now)),
    }
}
