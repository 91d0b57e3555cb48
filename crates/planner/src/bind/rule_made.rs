//! CREATE RULE: condition and actions bound as they stand, and as the catalog keeps them.
//!
//! While a rule is made or shown, `old` and `new` are variables ([`RuleRows`]), so nothing of its
//! statements means their columns unless it says so:
//!
//! ```text
//! insert into log select new.a from u where u.b = old.b     kept: … new.a … old.b, as written
//! ```
//! Where it is applied they are items of FROM ([`super::rule`]).
//!
//! # What it leaves out
//! WITH that writes, in an action.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{Node, SelectStmt, WithClause};

use super::definition::is_alone;
use super::expr::Place;
use super::scope::Scope;
use super::{boxed, inner, Binder, Conflict, OutputColumn, Variables};
use crate::plan::Collated;
use catalog::sql_body::{Known, SqlBody};
use catalog::trigger::Events;
use catalog::{Table, Uses};
use functions::strings::quote_identifier;
use syntax::parser::{self, NodeEnum, TokenKind};
use types::{TypeId, NO_TYPMOD};

/// The names of the two rows, by whether it is the new one.
const ROWS: [&str; 2] = ["old", "new"];

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::of("42P17"), message)
}

/// The rows that a rule is about, as its statements name them.
#[derive(Debug)]
pub struct RuleRows<'t> {
    table: &'t Table,
    body: Option<&'t SqlBody>,
    /// What was looked at: of the new row or not, and which column, or all of it.
    used: RefCell<BTreeSet<(bool, Option<usize>)>>,
    /// To what the rule is applied, while its condition is bound: there columns may stand alone.
    condition_of: Cell<Events>,
}

impl<'t> RuleRows<'t> {
    /// Those of a relation; of a rule that is kept, with the names that it knows.
    pub fn of(table: &'t Table, body: Option<&'t SqlBody>) -> RuleRows<'t> {
        RuleRows {
            table,
            body,
            used: RefCell::default(),
            condition_of: Cell::default(),
        }
    }

    /// The condition of a rule on this is bound from here on; of one on nothing, its actions are.
    pub fn in_condition(&self, event: Events) {
        self.condition_of.set(event);
    }

    /// The row that a column means which stands alone: whether it is the new one.
    fn meant(&self) -> Option<bool> {
        match self.condition_of.get() {
            Events::INSERT => Some(true),
            Events::DELETE => Some(false),
            _ => None,
        }
    }

    fn place_of(&self, column: &str) -> Option<usize> {
        let mut places = 0..self.table.columns.len();
        places.find(|place| self.name(*place) == Some(column))
    }

    /// What a column is called, if it can be named.
    fn name(&self, place: usize) -> Option<&str> {
        let column = self.table.columns.get(place)?;
        let known = self.body.and_then(|body| body.named(self.table.oid));
        match known {
            _ if column.dropped => None,
            Some(known) => known.columns.get(place).map(String::as_str),
            None => Some(&column.name),
        }
    }

    /// The place of a column among the variables, behind the other row's if it is of the new one. Behind
    /// all columns stand the rows themselves.
    fn place(&self, is_new: bool, column: Option<usize>) -> usize {
        let width = self.table.columns.len();
        match column {
            Some(column) => usize::from(is_new) * width + column,
            None => 2 * width + usize::from(is_new),
        }
    }

    /// The variables as they are shown, by their places, with the names that columns have now.
    pub(super) fn shown(&self) -> Vec<String> {
        let of = |row: &'static str| {
            let columns = self.table.columns.iter();
            columns.map(move |column| format!("{row}.{}", quote_identifier(&column.name)))
        };
        let wholes = ROWS.iter().map(|row| format!("{row}.*"));
        ROWS.into_iter().flat_map(of).chain(wholes).collect()
    }

    /// Refuses a row that there is not.
    ///
    /// # Errors
    /// 42P17.
    pub fn check(&self, event: Events) -> Result<()> {
        let missing = match event {
            Events::INSERT => Some((false, "ON INSERT rule cannot use OLD")),
            Events::DELETE => Some((true, "ON DELETE rule cannot use NEW")),
            _ => None,
        };
        let used = self.used.borrow();
        let is_missing = |row: bool| used.iter().any(|used| used.0 == row);
        match missing.filter(|missing| is_missing(missing.0)) {
            Some((_, message)) => Err(invalid(message)),
            None => Ok(()),
        }
    }

    /// The columns that were looked at.
    pub fn uses(&self) -> Uses {
        let used = self.used.borrow();
        let mut columns: Vec<_> = used.iter().filter_map(|used| used.1).collect();
        columns.sort_unstable();
        columns.dedup();
        Uses {
            relation: self.table.oid,
            columns,
        }
    }
}

impl Variables for RuleRows<'_> {
    fn find(&self, names: &[&str]) -> Result<Option<(usize, TypeId, i32)>> {
        let row_named = |name: &str| ROWS.iter().position(|row| *row == name);
        let found = match names {
            [name] => match (row_named(name), self.meant()) {
                (Some(row), _) => Some((row == 1, None)),
                (None, Some(is_new)) => self.place_of(name).map(|place| (is_new, Some(place))),
                (None, None) => None,
            },
            [row, column] => row_named(row).and_then(|row| {
                let place = self.place_of(column)?;
                Some((row == 1, Some(place)))
            }),
            _ => None,
        };
        let Some((is_new, column)) = found else {
            return Ok(None);
        };
        self.used.borrow_mut().insert((is_new, column));
        let (ty, typmod) = match column {
            Some(column) => self.table.columns[column].declared(),
            None => {
                let row_type = self.table.row_type();
                (row_type.unwrap_or(TypeId::RECORD), NO_TYPMOD)
            }
        };
        Ok(Some((self.place(is_new, column), ty, typmod)))
    }

    fn collation(&self, place: usize) -> Collated {
        let width = self.table.columns.len();
        let column = (place < 2 * width).then(|| &self.table.columns[place % width]);
        column.map_or_else(Collated::default, |column| {
            Collated::implicit(column.collation)
        })
    }

    fn fields(&self, record: &str) -> Option<Vec<String>> {
        if !ROWS.contains(&record) {
            return None;
        }
        let places = 0..self.table.columns.len();
        let names = places.filter_map(|place| self.name(place));
        Some(names.map(str::to_owned).collect())
    }

    fn sql_body(&self) -> Option<&SqlBody> {
        self.body
    }

    fn conflict(&self) -> Conflict {
        Conflict::Column
    }

    fn are_rows_of_rule(&self) -> bool {
        true
    }

    fn row_unsaid(&self, names: &[&str]) -> Option<&'static str> {
        match names {
            [name] if !ROWS.contains(name) => self.meant().map(|is_new| ROWS[usize::from(is_new)]),
            _ => None,
        }
    }

    fn are_both_meant(&self) -> bool {
        self.condition_of.get() == Events::UPDATE
    }
}

/// A statement of a rule as the catalog keeps it.
#[derive(Debug)]
pub struct MadeStatement {
    /// Its text.
    pub text: String,
    /// What it names.
    pub uses: Vec<Uses>,
    /// The names that it has for what it writes to.
    pub known: Vec<Known>,
}

/// Which row a text names, by whether it is the new one.
pub(super) fn rows_named(text: &str) -> Result<[bool; 2]> {
    let tokens = parser::tokens(text)?;
    let names = |row: &str| {
        tokens.iter().any(|token| {
            let word = text[token.start..token.end].trim_matches('"');
            token.kind != TokenKind::String && word.eq_ignore_ascii_case(row)
        })
    };
    Ok(ROWS.map(names))
}

/// Refuses WITH that looks at the rows, or writes.
fn check_with(with: Option<&WithClause>) -> Result<()> {
    for item in with.iter().flat_map(|with| &with.ctes) {
        let NodeEnum::CommonTableExpr(cte) = inner(item)? else {
            continue;
        };
        let query = boxed(&cte.ctequery)?;
        if !matches!(query, NodeEnum::SelectStmt(_)) {
            return Err(Error::unsupported("WITH that writes, in a rule"));
        }
        let named = rows_named(&parser::deparse_statement(query)?)?;
        if let Some(row) = named.iter().position(|named| *named) {
            let row = ROWS[row].to_uppercase();
            let message = format!("cannot refer to {row} within WITH query");
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    }
    Ok(())
}

/// The query that an INSERT takes its rows from.
pub(super) fn source_of(node: &NodeEnum) -> Option<&SelectStmt> {
    let NodeEnum::InsertStmt(insert) = node else {
        return None;
    };
    match insert.select_stmt.as_ref()?.node.as_ref()? {
        NodeEnum::SelectStmt(select) => Some(select),
        _ => None,
    }
}

/// Refuses what RETURNING of an action gives if that is no row of the relation.
///
/// # Errors
/// 42P17; 0A000 where the relation has lost columns.
pub fn check_returned(table: &Table, given: &[OutputColumn]) -> Result<()> {
    for (place, column) in table.columns.iter().enumerate() {
        if column.dropped {
            let message =
                "cannot create a RETURNING list for a relation containing dropped columns";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let Some(entry) = given.get(place) else {
            return Err(invalid("RETURNING list has too few entries"));
        };
        let number = place + 1;
        let shown = |ty: TypeId| ty.to_string();
        if entry.ty != column.type_id {
            let message = format!(
                "RETURNING list's entry {number} has different type from column \"{}\"",
                column.name
            );
            return Err(invalid(message).with_detail(format!(
                "RETURNING list entry has type {}, but column has type {}.",
                shown(entry.ty),
                shown(column.type_id)
            )));
        }
        if entry.typmod != column.typmod {
            let message = format!(
                "RETURNING list's entry {number} has different size from column \"{}\"",
                column.name
            );
            return Err(invalid(message));
        }
    }
    match given.len() > table.columns.len() {
        true => Err(invalid("RETURNING list has too many entries")),
        false => Ok(()),
    }
}

impl Binder<'_> {
    /// Binds the condition of a rule as it is written.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_rule_condition(&mut self, node: &Node) -> Result<()> {
        self.names_only = true;
        let bound = self.node(node, &Scope::default(), Place::plain("WHERE"))?;
        self.condition(bound, "WHERE").map(|_| ())
    }

    /// The condition of a rule as the catalog keeps it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn fixed_rule_condition(&mut self, node: &Node) -> Result<MadeStatement> {
        let select = parser::selection(node, None);
        self.fixed_rule_action(&NodeEnum::SelectStmt(Box::new(select)))
    }

    /// Binds an action of a rule as it is written; gives the columns of its RETURNING, if it has one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_rule_action(
        &mut self,
        node: &NodeEnum,
        is_conditional: bool,
    ) -> Result<Option<Vec<OutputColumn>>> {
        self.names_only = true;
        let (with, returns) = match node {
            NodeEnum::InsertStmt(it) => (&it.with_clause, it.returning_clause.is_some()),
            NodeEnum::UpdateStmt(it) => (&it.with_clause, it.returning_clause.is_some()),
            NodeEnum::DeleteStmt(it) => (&it.with_clause, it.returning_clause.is_some()),
            NodeEnum::NotifyStmt(_) => return Ok(None),
            _ => return Err(Error::unsupported("this statement in a rule")),
        };
        check_with(with.as_ref())?;
        check_with(source_of(node).and_then(|select| select.with_clause.as_ref()))?;
        let bound = self.statement(node)?;
        let is_united = source_of(node).is_some_and(|select| !is_alone(select));
        if is_united && rows_named(&parser::deparse_statement(node)?)?.contains(&true) {
            let message =
                "UNION/INTERSECT/EXCEPT member statement cannot refer to other relations of same \
                           query level";
            return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        if is_united && is_conditional {
            let message = "conditional UNION/INTERSECT/EXCEPT statements are not implemented";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(returns.then_some(bound.columns))
    }

    /// The statement with the columns of rows in the place of `new.*` in its VALUES.
    fn spread_values(&self, node: &NodeEnum) -> NodeEnum {
        let mut node = node.clone();
        let NodeEnum::InsertStmt(insert) = &mut node else {
            return node;
        };
        let source = insert.select_stmt.as_mut();
        let source = source.and_then(|source| source.node.as_mut());
        let Some(NodeEnum::SelectStmt(select)) = source else {
            return node;
        };
        for list in &mut select.values_lists {
            if let Some(NodeEnum::List(list)) = &mut list.node {
                if let Some(items) = self.spread(&list.items, &Scope::default()) {
                    list.items = items;
                }
            }
        }
        node
    }

    /// An action of a rule as the catalog keeps it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn fixed_rule_action(&mut self, node: &NodeEnum) -> Result<MadeStatement> {
        let catalog = self.cx.catalog;
        if matches!(node, NodeEnum::NotifyStmt(_)) {
            return Ok(MadeStatement {
                text: parser::deparse_statement(node)?,
                uses: Vec::new(),
                known: Vec::new(),
            });
        }
        let (text, recorded) = self.fixed_statement(&self.spread_values(node))?;
        let targets = recorded.targets.iter();
        let targets = targets.map(|target| Known::relation(&target.table));
        let rows = recorded.fields.iter();
        let rows = rows.map(|(ty, _)| Known::row_type(catalog, *ty));
        Ok(MadeStatement {
            known: targets.chain(rows).collect(),
            uses: recorded.uses(),
            text,
        })
    }

    /// Binds a rule that the catalog has where it is applied, to no rows.
    ///
    /// # Errors
    /// What stands in the way of that.
    pub fn try_rule(&mut self, table: u32, name: &str) -> Result<()> {
        let table = self.cx.catalog.table_by_oid(table);
        let found = table.and_then(|table| Some((table, table.rule(name)?)));
        let (table, rule) = found.ok_or_else(|| Error::internal("a rule that is none"))?;
        self.names_only = true;
        self.tried(table, rule)
    }
}
