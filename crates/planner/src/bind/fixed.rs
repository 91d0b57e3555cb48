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
use super::{strings, Binder, OutputColumn, Variables};
use crate::plan::Needed;
use catalog::cast::note;
use catalog::layout::FIRST_USER_OID;
use catalog::view::BY_OID;
use catalog::{Column, Table, Uses};
use syntax::parser::{self, NodeEnum, Token, TokenKind};
use types::own::kept_label;
use types::range::ranges_of;
use types::{Array, Bound, Datum, OwnKind, Range, TypeId};

/// What a text names, gathered while it is bound.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Constants of type `regclass`: where, and which relation.
    pub constants: Vec<(i32, u32)>,
    /// Names of types of one's own: where, and which.
    types: Vec<(i32, TypeId)>,
    /// Collations of one's own that COLLATE names: where, and which.
    collations: Vec<(i32, u32)>,
    /// Constants that name labels of enums: where, and how they are kept.
    labels: Vec<(i32, String)>,
    /// Types of one's own of constants that do not name them.
    of_constants: Vec<TypeId>,
    /// Items of FROM.
    pub relations: Vec<Named>,
    /// The routines that compute operators of extensions which are used: their names stay as they
    /// are.
    pub operators: Vec<u32>,
    /// Casts of users which are used, and their functions: they have no names there. Operators of users whose
    /// schema is not written.
    pub casts: Vec<u32>,
    /// Operators of users whose schema is written: where the word OPERATOR stands, how many names stand before
    /// the operator's, and which.
    in_schemas: Vec<(i32, usize, u32)>,
    /// Calls of routines: where, and which.
    pub routines: Vec<(i32, u32)>,
    /// Those in FROM that give rows of a table.
    pub items: Vec<CalledItem>,
    /// Constraints without which the text would mean nothing.
    pub constraints: Vec<u32>,
    /// Names of constraints: where ON begins that they follow, and which.
    pub arbiters: Vec<(i32, u32)>,
    /// Arguments of a function in SQL: where, and whether its name stands before theirs.
    pub arguments: Vec<(i32, bool)>,
    /// Columns of the rows of a rule that stand without their row: where, and which.
    pub rows: Vec<(i32, &'static str)>,
    /// What is written to.
    pub targets: Vec<WrittenTo>,
    /// Whether joins have USING, or are natural.
    pub has_using: bool,
    /// Columns of relations that are looked at, by their numbers.
    pub looked_at: Vec<(u32, i16)>,
    /// Fields of rows that are named: the type of the row, and the place of the column or the attribute.
    pub fields: Vec<(TypeId, usize)>,
}

/// A relation that a statement names to write to it.
#[derive(Debug)]
pub struct WrittenTo {
    location: i32,
    /// The relation.
    pub table: Arc<Table>,
    /// The places of the columns that are given values.
    pub given: Vec<usize>,
}

/// A call in FROM that gives rows of a table. The columns that the table has now are fixed, as those
/// that come later are not seen.
#[derive(Debug)]
pub struct CalledItem {
    /// Where the call stands.
    pub location: i32,
    /// The alias that it has.
    pub alias: Option<Alias>,
    /// What it is called without one.
    pub name: String,
    /// What its columns are called.
    pub columns: Vec<String>,
    /// The table.
    pub table: u32,
    /// The places of its columns.
    pub places: Vec<usize>,
}

impl CalledItem {
    /// The alias and the names of the columns that stand after the call.
    fn text(&self) -> String {
        let given = self.alias.iter().flat_map(|alias| strings(&alias.colnames));
        let given: Vec<_> = given.map(quoted).collect();
        let others = self.columns.iter().skip(given.len());
        let columns: Vec<_> = given
            .iter()
            .cloned()
            .chain(others.map(|name| quoted(name)))
            .collect();
        let alias = self.alias.as_ref();
        let alias = alias.map_or(self.name.as_str(), |alias| alias.aliasname.as_str());
        format!(" AS {}({})", quoted(alias), columns.join(", "))
    }
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
    /// A constant stands there.
    pub fn constant(&mut self, location: i32, value: &Datum, ty: TypeId) {
        match value {
            Datum::Oid(oid) if ty == TypeId::REGCLASS => self.constants.push((location, *oid)),
            Datum::Unsigned8(place) if ty.is_enum() => {
                self.labels.push((location, kept_label(ty, *place)));
                self.of_constants.push(ty);
            }
            Datum::Array(array) if array.element.is_enum() => {
                self.labels.push((location, kept_labels(array)));
                self.of_constants.push(array.element);
            }
            _ => {
                let ranges = ranges_of(value).filter(|found| found.0.is_enum());
                if let Some((element, ranges)) = ranges {
                    let is_list = matches!(value, Datum::Multirange(_));
                    let text = kept_ranges(ranges, is_list);
                    self.labels.push((location, text));
                    self.of_constants.push(element);
                }
            }
        }
    }

    /// A type is named there.
    pub fn type_named(&mut self, location: i32, ty: TypeId) {
        if ty.is_own() {
            let own = ty.array_element().unwrap_or(ty);
            self.types.push((location, own));
        }
    }

    /// An operator of a user's stands there, after so many names.
    pub fn operator(&mut self, location: i32, names: usize, oid: u32) {
        match names {
            0 if self.casts.contains(&oid) => {}
            0 => self.casts.push(oid),
            names => self.in_schemas.push((location, names, oid)),
        }
    }

    /// A COLLATE names a collation there.
    pub fn collation_named(&mut self, location: i32, oid: u32) {
        if oid >= FIRST_USER_OID {
            self.collations.push((location, oid));
        }
    }

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

    /// A relation is named to write to it.
    pub fn target(&mut self, range: &RangeVar, table: &Arc<Table>) {
        self.targets.push(WrittenTo {
            location: range.location,
            table: table.clone(),
            given: Vec::new(),
        });
    }

    /// What was named last to write to that relation.
    pub fn target_of(&mut self, relation: u32) -> Option<&mut WrittenTo> {
        let mut targets = self.targets.iter_mut().rev();
        targets.find(|target| target.table.oid == relation)
    }

    /// An argument stands there; whether the function's name may stand before it.
    pub fn argument(&mut self, location: i32, names: &[&str], known: &dyn Variables) {
        let is_qualified = match names {
            [label, name, ..] if known.label() == Some(label) => {
                matches!(known.find(&[label, name]), Ok(Some(_)))
            }
            _ => false,
        };
        if !names[0].starts_with('$') {
            self.arguments.push((location, is_qualified));
        }
    }

    /// Operators of users whose schema is written.
    fn of_schemas(&self) -> impl Iterator<Item = &u32> {
        self.in_schemas.iter().map(|named| &named.2)
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
        for (_, oid) in self.constants.iter().chain(&self.routines) {
            relation(*oid);
        }
        for oid in &self.constraints {
            relation(*oid);
        }
        for target in &self.targets {
            let place = relation(target.table.oid);
            let of_target = |looked: &&(u32, i16)| looked.0 == target.table.oid;
            let looked_at = self.looked_at.iter().filter(of_target);
            let places = looked_at.filter_map(|looked| usize::try_from(looked.1 - 1).ok());
            let places = places.chain(target.given.iter().copied());
            found.extend(places.map(|column| (place, column)));
        }
        for (_, oid) in &self.arbiters {
            relation(*oid);
        }
        for (ty, column) in &self.fields {
            if ty.own_kind() == Some(OwnKind::Row) {
                found.push((relation(ty.own_number()), *column));
            }
        }
        for item in &self.items {
            let place = relation(item.table);
            found.extend(item.places.iter().map(|column| (place, *column)));
        }
        let named = self.types.iter().map(|named| named.1);
        let collations = self.collations.iter().map(|named| &named.1);
        let noted = self.operators.iter().chain(&self.casts);
        for oid in noted.chain(self.of_schemas()).chain(collations) {
            relation(*oid);
        }
        for ty in named.chain(self.of_constants.iter().copied()) {
            relation(ty.0);
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
    for (location, kept) in &recorded.labels {
        let at = token_at(&tokens, *location)?;
        edits.push((tokens[at].start, tokens[at].end, format!("'{kept}'")));
    }
    for (location, ty) in &recorded.types {
        let at = token_at(&tokens, *location)?;
        let end = end_of_name(&tokens, at);
        let named = format!("{}.\"{}\"", quoted(BY_OID), ty.0);
        edits.push((tokens[at].start, tokens[end].end, named));
    }
    for (location, oid) in &recorded.collations {
        // Behind the word COLLATE.
        let at = (token_at(&tokens, *location)? + 1).min(tokens.len() - 1);
        let end = end_of_name(&tokens, at);
        let named = format!("{}.\"{oid}\"", quoted(BY_OID));
        edits.push((tokens[at].start, tokens[end].end, named));
    }
    for (location, names, oid) in &recorded.in_schemas {
        // Behind the word and a parenthesis.
        let at = token_at(&tokens, *location)? + 2;
        let end = at + 2 * (names - 1);
        let (Some(first), Some(last)) = (tokens.get(at), tokens.get(end)) else {
            return Err(Error::internal("an operator without its schema"));
        };
        let named = format!("{}.\"{oid}\"", quoted(BY_OID));
        edits.push((first.start, last.end, named));
    }
    for item in &recorded.items {
        let at = token_at(&tokens, item.location)?;
        let close = end_of_call(&tokens, end_of_name(&tokens, at), text);
        let end = end_of_item(&tokens, close, item.alias.as_ref());
        edits.push((tokens[close].end, tokens[end].end, item.text()));
    }
    for (location, oid) in &recorded.routines {
        let at = token_at(&tokens, *location)?;
        let end = end_of_name(&tokens, at);
        let name = format!("{}.\"{oid}\"", quoted(BY_OID));
        edits.push((tokens[at].start, tokens[end].end, name));
    }
    for named in &recorded.relations {
        let at = token_at(&tokens, named.location)?;
        let end = end_of_item(&tokens, at, named.alias.as_ref());
        edits.push((tokens[at].start, tokens[end].end, item(named)));
    }
    for target in &recorded.targets {
        let at = token_at(&tokens, target.location)?;
        let end = end_of_item(&tokens, at, None);
        let named = format!("{}.\"{}\"", quoted(BY_OID), target.table.oid);
        edits.push((tokens[at].start, tokens[end].end, named));
    }
    for (location, oid) in &recorded.arbiters {
        let name = tokens.get(token_at(&tokens, *location)? + 2);
        let name = name.ok_or_else(|| Error::internal("a constraint without a name"))?;
        edits.push((name.start, name.end, quoted(&format!("{BY_OID}{oid}"))));
    }
    for (location, is_qualified) in &recorded.arguments {
        let at = tokens[token_at(&tokens, *location)?];
        edits.push(match is_qualified {
            true => (at.start, at.end, quoted(BY_OID)),
            false => (at.start, at.start, format!("{}.", quoted(BY_OID))),
        });
    }
    for (location, row) in &recorded.rows {
        let start = tokens[token_at(&tokens, *location)?].start;
        edits.push((start, start, format!("{row}.")));
    }
    edits.sort_by_key(|edit| edit.0);
    edits.dedup();
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
    out.push_str(&note(recorded.has_using, &recorded.casts));
    Ok(out)
}

fn token_at(tokens: &[Token], location: i32) -> Result<usize> {
    let place = usize::try_from(location).unwrap_or(usize::MAX);
    tokens
        .binary_search_by_key(&place, |token| token.start)
        .map_err(|_| Error::internal(format!("no token at {location}")))
}

/// The text of ranges over labels as kept text has it.
fn kept_ranges(ranges: &[Range], is_list: bool) -> String {
    let one = |range: &Range| {
        let Some((lower, upper)) = range.bounds() else {
            return "empty".to_owned();
        };
        let label = |bound: &Bound| match bound.value {
            Some(Datum::Unsigned8(place)) => kept_label(range.element(), place),
            _ => String::new(),
        };
        let (open, close) = (
            if lower.inclusive { '[' } else { '(' },
            if upper.inclusive { ']' } else { ')' },
        );
        format!("{open}{},{}{close}", label(lower), label(upper))
    };
    let shown: Vec<_> = ranges.iter().map(one).collect();
    match (is_list, shown.is_empty()) {
        (true, _) => format!("{{{}}}", shown.join(",")),
        (false, true) => "empty".to_owned(),
        (false, false) => shown.concat(),
    }
}

/// The text of an array of labels as kept text has it.
fn kept_labels(array: &Array) -> String {
    let label = |value: &Datum| match value {
        Datum::Unsigned8(place) => kept_label(array.element, *place),
        _ => "NULL".to_owned(),
    };
    let dimensions = array.dimensions.iter();
    let bounds = dimensions.map(|d| format!("[{}:{}]", d.lower, d.lower + d.len - 1));
    let bounds: String = bounds.collect();
    match array.dimensions.as_slice() {
        [] => "{}".to_owned(),
        [_] => {
            let labels: Vec<_> = array.elements.iter().map(label).collect();
            format!("{bounds}={{{}}}", labels.join(","))
        }
        // Braces inside of braces, level by level from within.
        many => {
            let mut parts: Vec<_> = array.elements.iter().map(label).collect();
            for dimension in many.iter().rev() {
                let len = usize::try_from(dimension.len).unwrap_or(1).max(1);
                let groups = parts.chunks(len);
                parts = groups
                    .map(|group| format!("{{{}}}", group.join(",")))
                    .collect();
            }
            format!("{bounds}={}", parts.concat())
        }
    }
}

/// The last token of `name [. name]…`.
fn end_of_name(tokens: &[Token], start: usize) -> usize {
    let dot = |at: usize| {
        let token = tokens.get(at);
        token.is_some_and(|token| token.kind == TokenKind::Char(b'.'))
    };
    let mut end = start;
    while dot(end + 1) {
        end += 2;
    }
    end.min(tokens.len() - 1)
}

/// The last token of `(arguments) [WITH ORDINALITY]` after a name.
fn end_of_call(tokens: &[Token], name: usize, text: &str) -> usize {
    let mut depth = 0;
    let mut end = name;
    for (at, token) in tokens.iter().enumerate().skip(name + 1) {
        end = at;
        match token.kind {
            TokenKind::Char(b'(') => depth += 1,
            TokenKind::Char(b')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    let is = |at: usize, word: &str| {
        let token = tokens.get(at).map(|token| &text[token.start..token.end]);
        token.is_some_and(|found| found.eq_ignore_ascii_case(word))
    };
    match is(end + 1, "with") && is(end + 2, "ordinality") {
        true => end + 2,
        false => end,
    }
}

/// The last token of `name [*] [[AS] alias [(columns)]]`.
fn end_of_item(tokens: &[Token], start: usize, alias: Option<&Alias>) -> usize {
    let is = |at: usize, c: u8| {
        tokens
            .get(at)
            .is_some_and(|token| token.kind == TokenKind::Char(c))
    };
    let mut end = end_of_name(tokens, start);
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

    /// A default as the catalog keeps it, and the relations and types that it names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn fixed(&mut self, node: &Node, column: &Column) -> Result<(String, Vec<u32>)> {
        let (text, recorded) = self.fixed_part(node, |binder, node| {
            let bound = binder.node(node, &Scope::default(), Place::DEFAULT)?;
            if column.type_id.is_own() || !binder.cx.catalog.casts.is_empty() {
                binder.assign(bound, column.type_id, column.typmod, &column.name)?;
            }
            Ok(())
        })?;
        let types = recorded.types.iter().map(|named| named.1);
        let types = types.chain(recorded.of_constants.iter().copied());
        let named = recorded.constants.iter().chain(&recorded.routines);
        let mut uses: Vec<_> = named.map(|named| named.1).collect();
        uses.extend(recorded.operators.iter().chain(&recorded.casts));
        uses.extend(recorded.of_schemas());
        uses.extend(recorded.collations.iter().map(|named| named.1));
        uses.extend(types.map(|ty| ty.0));
        uses.sort_unstable();
        uses.dedup();
        Ok((text, uses))
    }

    /// An expression as the catalog keeps it, if it has no queries inside, and what it names. `bind`
    /// binds it where it is going to stand.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn fixed_part(
        &mut self,
        node: &Node,
        bind: impl FnOnce(&mut Self, &Node) -> Result<()>,
    ) -> Result<(String, Recorded)> {
        const PREFIX: &str = "SELECT ";
        let text = format!("{PREFIX}{}", parser::deparse_expression(node)?);
        let names_nothing = !text.contains("::") && !text.contains('\'');
        let catalog = self.cx.catalog;
        let has_none = catalog.casts.is_empty() && catalog.operators.is_empty();
        if names_nothing && catalog.routines.is_empty() && has_none {
            return Ok((text[PREFIX.len()..].to_owned(), Recorded::default()));
        }
        let statements = parser::parse(&text)?;
        let target = match statements.first().map(|statement| statement.node()) {
            Some(NodeEnum::SelectStmt(select)) => select.target_list.first(),
            _ => None,
        };
        let Some(Some(NodeEnum::ResTarget(target))) = target.map(|node| node.node.as_ref()) else {
            return Err(Error::internal("an expression that is none"));
        };
        let node = target.val.as_deref();
        let node = node.ok_or_else(|| Error::internal("an expression that is none"))?;
        self.recorded = Some(Recorded::default());
        let bound = bind(self, node);
        let recorded = self.recorded.take().unwrap_or_default();
        bound?;
        let fixed = fix(&text, &recorded)?;
        Ok((fixed[PREFIX.len()..].to_owned(), recorded))
    }
}
