//! Text whose names are fixed, for the catalog ([`catalog::view`] says what it looks like).
//!
//! Binding a text once with a [`Recorded`] tells which relations it names, and where; [`fix`] then
//! puts the oids in the places of the names. Whoever binds the outcome later sets
//! [`super::Binder::stored`].

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result};
use pg_query::protobuf::{Alias, Node, RangeVar, SelectStmt};

use super::expr::Place;
use super::scope::Scope;
use super::{boxed, strings, Binder, OutputColumn};
use crate::plan::Needed;
use catalog::view::BY_OID;
use catalog::{Table, Uses};
use syntax::parser::{self, NodeEnum, Token, TokenKind};

/// What a text names, gathered while it is bound.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Constants of type `regclass`: where, and which relation.
    pub constants: Vec<(i32, u32)>,
    /// Items of FROM.
    pub relations: Vec<Named>,
}

/// An item of FROM that names a relation.
#[derive(Debug)]
pub struct Named {
    location: i32,
    alias: Option<Alias>,
    name: String,
    table: Arc<Table>,
    needed: Needed,
}

impl Recorded {
    /// A relation is named; the flags say, later, which of its columns are looked at.
    pub fn relation(
        &mut self,
        range: &RangeVar,
        table: &Arc<Table>,
        needed: Option<Needed>,
    ) -> Needed {
        let needed =
            needed.unwrap_or_else(|| Rc::new(RefCell::new(vec![false; table.columns.len()])));
        self.relations.push(Named {
            location: range.location,
            alias: range.alias.clone(),
            name: range.relname.clone(),
            table: table.clone(),
            needed: needed.clone(),
        });
        needed
    }

    /// The relations and columns that are named.
    pub fn uses(&self) -> Vec<Uses> {
        let mut uses: Vec<Uses> = Vec::new();
        let mut relation = |oid: u32| match uses.iter().position(|known| known.relation == oid) {
            Some(place) => place,
            None => {
                uses.push(Uses {
                    relation: oid,
                    columns: Vec::new(),
                });
                uses.len() - 1
            }
        };
        let mut found = Vec::new();
        for named in &self.relations {
            let place = relation(named.table.oid);
            let needed = named.needed.borrow();
            let flags = needed.iter().enumerate();
            found.extend(flags.filter(|flag| *flag.1).map(|flag| (place, flag.0)));
        }
        for (_, oid) in &self.constants {
            relation(*oid);
        }
        found.sort_unstable();
        found.dedup();
        for (place, column) in found {
            uses[place].columns.push(column);
        }
        uses.sort_by_key(|uses| uses.relation);
        uses
    }
}

/// The text with oids in the places of names.
///
/// # Errors
/// XX000 when a name does not stand where it was recorded.
pub fn fix(text: &str, recorded: &Recorded) -> Result<String> {
    let tokens = parser::tokens(text)?;
    let mut edits = Vec::new();
    for (location, oid) in &recorded.constants {
        let at = token_at(&tokens, *location)?;
        edits.push((tokens[at].start, tokens[at].end, format!("'{oid}'")));
    }
    for named in &recorded.relations {
        let at = token_at(&tokens, named.location)?;
        let end = end_of_item(&tokens, at, named.alias.as_ref());
        edits.push((tokens[at].start, tokens[end].end, item(named)));
    }
    edits.sort_by_key(|edit| edit.0);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (start, end, new) in edits {
        // A constant that two expressions were made of is recorded twice.
        if start < done {
            continue;
        }
        out.push_str(&text[done..start]);
        out.push_str(&new);
        done = end;
    }
    out.push_str(&text[done..]);
    Ok(out)
}

fn token_at(tokens: &[Token], location: i32) -> Result<usize> {
    let place = usize::try_from(location).unwrap_or(usize::MAX);
    tokens
        .binary_search_by_key(&place, |token| token.start)
        .map_err(|_| Error::internal(format!("no token at {location}")))
}

/// The last token of `name [*] [[AS] alias [(columns)]]`.
fn end_of_item(tokens: &[Token], start: usize, alias: Option<&Alias>) -> usize {
    let is = |at: usize, c: u8| {
        tokens
            .get(at)
            .is_some_and(|token| token.kind == TokenKind::Char(c))
    };
    let mut end = start;
    while is(end + 1, b'.') {
        end += 2;
    }
    if is(end + 1, b'*') {
        end += 1;
    }
    let Some(alias) = alias else {
        return end;
    };
    // AS is a keyword; an alias without AS may be one too, but then what follows is no name.
    let reserved = TokenKind::Keyword(true);
    if tokens
        .get(end + 1)
        .is_some_and(|token| token.kind == reserved)
    {
        end += 1;
    }
    end += 1;
    if !alias.colnames.is_empty() {
        while !is(end, b')') {
            end += 1;
        }
    }
    end.min(tokens.len() - 1)
}

fn item(named: &Named) -> String {
    let given = named
        .alias
        .as_ref()
        .map_or(Vec::new(), |alias| strings(&alias.colnames));
    let alias = named
        .alias
        .as_ref()
        .map_or(named.name.as_str(), |alias| alias.aliasname.as_str());
    item_text(&named.table, alias, &mut given.into_iter())
}

/// An item of FROM as stored text has it: under an alias, and with names for its columns, of which
/// the first may be given.
pub(super) fn item_text<'n>(
    table: &'n Table,
    alias: &str,
    given: &mut dyn Iterator<Item = &'n str>,
) -> String {
    let columns: Vec<_> = table
        .columns
        .iter()
        .enumerate()
        .map(|(place, column)| match column.dropped {
            true => quoted(&format!("........pg.dropped.{}........", place + 1)),
            false => quoted(given.next().unwrap_or(&column.name)),
        })
        .collect();
    let list = match columns.is_empty() {
        true => String::new(),
        false => format!("({})", columns.join(", ")),
    };
    format!(
        "{}.\"{}\" AS {}{list}",
        quoted(BY_OID),
        table.oid,
        quoted(alias)
    )
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A query as the catalog keeps it.
#[derive(Debug)]
pub struct FixedQuery {
    /// Its text.
    pub text: String,
    /// Its columns.
    pub columns: Vec<OutputColumn>,
    /// What it names.
    pub uses: Vec<Uses>,
}

impl Binder<'_> {
    /// A query as the catalog keeps it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn fixed_query(&mut self, select: &SelectStmt) -> Result<FixedQuery> {
        self.names_only = true;
        let text = parser::deparse_query(select)?;
        let statements = parser::parse(&text)?;
        let Some(NodeEnum::SelectStmt(select)) = statements.first().map(|first| first.node())
        else {
            return Err(Error::internal("a query that is none"));
        };
        self.recorded = Some(Recorded::default());
        let query = self.select(select, None);
        let recorded = self.recorded.take().unwrap_or_default();
        Ok(FixedQuery {
            columns: query?.columns,
            uses: recorded.uses(),
            text: fix(&text, &recorded)?,
        })
    }

    /// A default or the like as the catalog keeps it, and the relations that it names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn fixed(&mut self, node: &Node) -> Result<(String, Vec<u32>)> {
        const PREFIX: &str = "SELECT ";
        let text = format!("{PREFIX}{}", parser::deparse_expression(node)?);
        if !text.to_ascii_lowercase().contains("regclass") && !text.contains('\'') {
            return Ok((text[PREFIX.len()..].to_owned(), Vec::new()));
        }
        let statements = parser::parse(&text)?;
        let target = match statements.first().map(|statement| statement.node()) {
            Some(NodeEnum::SelectStmt(select)) => select.target_list.first(),
            _ => None,
        };
        let Some(Some(NodeEnum::ResTarget(target))) = target.map(|node| node.node.as_ref()) else {
            return Err(Error::internal("an expression that is none"));
        };
        self.recorded = Some(Recorded::default());
        let bound = self.expr(boxed(&target.val)?, &Scope::default(), Place::DEFAULT);
        let recorded = self.recorded.take().unwrap_or_default();
        bound?;
        let fixed = fix(&text, &recorded)?;
        let mut uses: Vec<_> = recorded.constants.iter().map(|named| named.1).collect();
        uses.sort_unstable();
        uses.dedup();
        Ok((fixed[PREFIX.len()..].to_owned(), uses))
    }
}
