//! CREATE TABLE … INHERITS: what a new table has from others, and what becomes of what it says itself of the
//! same columns and constraints (PostgreSQL 15 manual, section 5.10).
//!
//! ```text
//! create table a (k int, v text default 'x')
//! create table b (k int not null)
//! create table c (v text default 'y', n int) inherits (a, b)
//!     k int not null        merged, of a and b
//!     v text default 'y'    merged, of a and its own
//!     n int
//! ```
//! Inherited columns come first, in the order of the parents. Parents are locked against everybody, for they
//! list their children.
//!
//! # What it leaves out
//! A temporary table does not inherit from a permanent one, and LIKE does not stand beside INHERITS (0A000).

use std::sync::Arc;

use base::engine::Transaction;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{ColumnDef, ConstrType, Constraint, CreateStmt};

use super::super::{NoticeSeverity, Session, Sink};
use super::alter::constraint_twice;
use catalog::local::is_local;
use catalog::{collation, store, Catalog, Check, Column, Identity, RelationKind, Table};
use syntax::parser::NodeEnum;

/// What a new table inherits, while it is made.
pub(super) struct Inherited {
    parents: Vec<Arc<Table>>,
    /// How many of its columns are inherited.
    columns: usize,
    /// The places of columns whose defaults differ among the parents.
    conflicts: Vec<usize>,
    /// How many columns it was given by itself until now, merged ones included.
    given: usize,
}

impl Inherited {
    /// Puts the new table on the lists of its parents.
    pub(super) fn list(&self, txn: &mut dyn Transaction, database: u32, child: u32) -> Result<()> {
        for parent in &self.parents {
            let mut new = (**parent).clone();
            new.inheritance_mut().children.push(child);
            store::update_table(txn, database, &new)?;
        }
        Ok(())
    }
}

/// 42804, with the two types.
fn type_conflict(message: String, known: &Column, other: &Column) -> Error {
    let shown = |column: &Column| {
        let (ty, typmod) = column.declared();
        types::format_type(ty, typmod)
    };
    let detail = format!("{} versus {}", shown(known), shown(other));
    Error::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail)
}

fn same_type(
    catalog: &Catalog,
    (what, name): (&str, &str),
    known: &Column,
    other: &Column,
) -> Result<()> {
    if known.declared() != other.declared() {
        let message = format!("{what} \"{name}\" has a type conflict");
        return Err(type_conflict(message, known, other));
    }
    if known.collation != other.collation {
        let shown = |column: &Column| {
            let oid = match column.collation {
                0 => collation::of_type(column.type_id),
                oid => oid,
            };
            catalog
                .collation(oid)
                .map_or_else(String::new, |known| known.name.clone())
        };
        let message = format!("{what} \"{name}\" has a collation conflict");
        let detail = format!("\"{}\" versus \"{}\"", shown(known), shown(other));
        return Err(Error::new(SqlState::of("42P21"), message).with_detail(detail));
    }
    Ok(())
}

/// 42804 for a column that two parents keep in different ways.
fn same_storage(known: &Column, other: &Column) -> Result<()> {
    let (one, two) = (known.storage(), other.storage());
    if one == two {
        return Ok(());
    }
    let name = &known.name;
    let message = format!("inherited column \"{name}\" has a storage parameter conflict");
    let detail = format!("{} versus {}", one.name(), two.name());
    Err(Error::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail))
}

/// A column that says nothing of its compression has that of another.
///
/// # Errors
/// 42804 where both say something else.
fn merge_compression(known: &mut Column, other: &Column) -> Result<()> {
    match (known.compression, other.compression) {
        (_, None) => {}
        (None, said) => known.compression = said,
        (Some(one), Some(two)) if one == two => {}
        (Some(one), Some(two)) => {
            let name = &known.name;
            let message = format!("column \"{name}\" has a compression method conflict");
            let detail = format!("{} versus {}", one.name(), two.name());
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail));
        }
    }
    Ok(())
}

/// Refuses a child that goes with its session while the parent stays, and the other way round.
///
/// # Errors
/// 0A000, 42809.
pub(super) fn check_persistence(parent: &Table, child: &Table) -> Result<()> {
    match (is_local(parent.oid), is_local(child.oid)) {
        (true, false) => Err(Error::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("cannot inherit from temporary relation \"{}\"", parent.name),
        )),
        (false, true) => Err(Error::unsupported(
            "a temporary table that inherits from a permanent one",
        )),
        _ => Ok(()),
    }
}

/// 42611.
fn wrong_column(message: String) -> Error {
    Error::new(SqlState::of("42611"), message)
}

impl Session {
    /// The tables that INHERITS names, locked.
    ///
    /// # Errors
    /// 42809 for what nothing can inherit from; 42P07 for one that is named twice; 42501.
    pub(super) fn named_parents(&mut self, create: &CreateStmt) -> Result<Vec<Arc<Table>>> {
        let mut parents: Vec<Arc<Table>> = Vec::new();
        if create.partbound.is_some() {
            return Ok(parents);
        }
        for node in &create.inh_relations {
            let Some(NodeEnum::RangeVar(range)) = &node.node else {
                continue;
            };
            let parent = self.lock_table(range)?;
            let name = &parent.name;
            let wrong = |message| Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
            match parent.kind {
                RelationKind::Table if parent.partition_of.is_some() => {
                    return wrong(format!("cannot inherit from partition \"{name}\""));
                }
                RelationKind::Table => {}
                RelationKind::Partitioned => {
                    return wrong(format!("cannot inherit from partitioned table \"{name}\""));
                }
                _ => {
                    let message =
                        format!("inherited relation \"{name}\" is not a table or foreign table");
                    return wrong(message);
                }
            }
            if parents.iter().any(|known| known.oid == parent.oid) {
                let message = format!("relation \"{name}\" would be inherited from more than once");
                return Err(Error::new(SqlState::DUPLICATE_TABLE, message));
            }
            self.refuse_in_use(&parent, "CREATE TABLE")?;
            parents.push(parent);
        }
        if parents.is_empty() {
            return Ok(parents);
        }
        let columns = create
            .table_elts
            .iter()
            .filter_map(|node| match &node.node {
                Some(NodeEnum::ColumnDef(column)) => Some(&column.colname),
                _ => None,
            });
        let mut given: Vec<_> = columns.collect();
        given.sort_unstable();
        if let Some(twice) = given.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("column \"{}\" specified more than once", twice[0]);
            return Err(Error::new(SqlState::DUPLICATE_COLUMN, message));
        }
        if create.partspec.is_some() {
            let message = "cannot create partitioned table as inheritance child";
            return Err(Error::new(SqlState::of("42P17"), message));
        }
        Ok(parents)
    }

    /// Gives a new table, which has nothing yet, the columns and CHECK constraints of its parents.
    ///
    /// # Errors
    /// 42804 and 42P21 where they contradict each other.
    pub(super) fn inherit_from(
        &mut self,
        catalog: &Catalog,
        parents: Vec<Arc<Table>>,
        table: &mut Table,
        sink: &mut dyn Sink,
    ) -> Result<Inherited> {
        for parent in &parents {
            check_persistence(parent, table)?;
        }
        let mut conflicts = Vec::new();
        for parent in &parents {
            let places = self.inherit_columns(catalog, parent, table, &mut conflicts, sink)?;
            for column in parent.columns.iter().filter(|column| column.generated) {
                if let Some(place) = table.column(&column.name) {
                    let from = column.generated_from.iter().map(|at| places[*at]);
                    table.columns[place].generated_from = from.collect();
                }
            }
            self.inherit_checks(parent, table, &places)?;
        }
        if !parents.is_empty() {
            table.inheritance_mut().parents = parents.iter().map(|parent| parent.oid).collect();
        }
        Ok(Inherited {
            columns: table.columns.len(),
            parents,
            conflicts,
            given: 0,
        })
    }

    /// The places where the table has the columns of a parent then; those whose defaults contradict what
    /// other parents say are noted.
    fn inherit_columns(
        &mut self,
        catalog: &Catalog,
        parent: &Table,
        table: &mut Table,
        conflicts: &mut Vec<usize>,
        sink: &mut dyn Sink,
    ) -> Result<Vec<usize>> {
        let mut places = vec![0; parent.columns.len()];
        for (from, column) in parent.columns.iter().enumerate() {
            if column.dropped {
                continue;
            }
            let name = &column.name;
            let Some(place) = table.column(name) else {
                places[from] = table.columns.len();
                table.columns.push(inherited(column));
                continue;
            };
            places[from] = place;
            let message = format!("merging multiple inherited definitions of column \"{name}\"");
            self.say(message, None, sink)?;
            let known = &mut table.columns[place];
            same_type(catalog, ("inherited column", name), known, column)?;
            same_storage(known, column)?;
            merge_compression(known, column)?;
            if known.generated != column.generated {
                let message = format!("inherited column \"{name}\" has a generation conflict");
                return Err(wrong_column(message));
            }
            known.not_null |= column.not_null;
            let other = inherited(column);
            match (&known.default, &other.default) {
                (_, None) => {}
                (None, Some(_)) => {
                    known.default = other.default;
                    known.default_uses = other.default_uses;
                }
                (own, given) if own != given => conflicts.push(place),
                _ => {}
            }
        }
        Ok(places)
    }

    fn inherit_checks(
        &mut self,
        parent: &Table,
        table: &mut Table,
        places: &[usize],
    ) -> Result<()> {
        for check in parent.checks.iter().filter(|check| !check.no_inherit) {
            let known = table.checks.iter().find(|known| known.name == check.name);
            match known {
                Some(known) if known.condition == check.condition => {}
                Some(_) => {
                    let message = format!(
                        "check constraint name \"{}\" appears multiple times but with different \
                         expressions",
                        check.name
                    );
                    return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
                }
                None => table.checks.push(Check {
                    oid: self.new_oid()?,
                    validated: true,
                    columns: check.columns.iter().map(|at| places[*at]).collect(),
                    ..check.clone()
                }),
            }
        }
        Ok(())
    }

    /// Adds a column that CREATE TABLE says: to what is inherited, or as a new one. The sequence of one that
    /// is serial or an identity is handed back.
    ///
    /// # Errors
    /// As for any column; 42804, 42P21 and 42611 where it contradicts the inherited one.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn add_own_column(
        &mut self,
        (text, catalog): (&str, &Arc<Catalog>),
        column: &ColumnDef,
        inherited: &mut Inherited,
        table: &mut Table,
        constraints: &mut Vec<(Constraint, Option<usize>)>,
        sequences: &[Table],
        sink: &mut dyn Sink,
    ) -> Result<Option<Table>> {
        let name = super::table::cut_name(&column.colname);
        let ordinal = inherited.given;
        inherited.given += 1;
        let known = table.column(&name);
        let Some(place) = known.filter(|place| *place < inherited.columns) else {
            self.add_column(text, catalog, column, table, constraints)?;
            return self.own_sequence(text, catalog, column, table, sequences);
        };
        // As if it were the next one, which is how it is known to its constraints.
        let mut so_far = Table {
            columns: table.columns[..place].to_vec(),
            ..table.clone()
        };
        self.add_column(text, catalog, column, &mut so_far, constraints)?;
        let sequence = self.own_sequence(text, catalog, column, &mut so_far, sequences)?;
        let own = so_far.columns.pop();
        let own = own.ok_or_else(|| Error::internal("a column that was not added"))?;
        match ordinal == place {
            true => {
                let message = format!("merging column \"{name}\" with inherited definition");
                self.say(message, None, sink)?;
            }
            false => {
                let message =
                    format!("moving and merging column \"{name}\" with inherited definition");
                let detail = "User-specified column moved to the position of the inherited column.";
                self.say(message, Some(detail), sink)?;
            }
        }
        if merge(
            catalog,
            &mut table.columns[place],
            own,
            has_generation(column),
        )? {
            inherited.conflicts.retain(|known| *known != place);
        }
        table.inheritance_mut().local_columns.push(place);
        Ok(sequence)
    }

    /// 42611 for a column that has several defaults and none of its own.
    pub(super) fn check_inherited_defaults(inherited: &Inherited, table: &Table) -> Result<()> {
        let Some(place) = inherited.conflicts.first() else {
            return Ok(());
        };
        let column = &table.columns[*place];
        let name = &column.name;
        Err(match column.generated {
            true => {
                let what = "conflicting generation expressions";
                wrong_column(format!("column \"{name}\" inherits {what}"))
            }
            false => wrong_column(format!(
                "column \"{name}\" inherits conflicting default values"
            ))
            .with_hint("To resolve the conflict, specify a default explicitly."),
        })
    }

    /// Whether a constraint of CREATE TABLE is an inherited one again, which it is merged with.
    ///
    /// # Errors
    /// 42710 for another of the same name.
    pub(super) fn merges_check(
        &mut self,
        (text, catalog): (&str, &Arc<Catalog>),
        (constraint, column): (&Constraint, Option<usize>),
        table: &mut Table,
        sink: &mut dyn Sink,
    ) -> Result<bool> {
        let is_check = ConstrType::try_from(constraint.contype) == Ok(ConstrType::ConstrCheck);
        let name = &constraint.conname;
        let known = table.checks.iter().position(|check| check.name == *name);
        let (Some(known), true) = (known, is_check) else {
            return Ok(false);
        };
        if catalog.inherited_check(table, name) == 0 {
            return Ok(false);
        }
        let mut without = table.clone();
        let inherited = without.checks.remove(known);
        self.add_constraint(text, catalog, constraint, column, &mut without)?;
        let own = without.checks.pop();
        let is_same = own.is_some_and(|own| own.condition == inherited.condition);
        let is_given = table
            .inheritance_mut()
            .local_checks
            .contains(&inherited.oid);
        if !is_same || is_given {
            return Err(constraint_twice(table, name));
        }
        if constraint.is_no_inherit {
            let message = format!(
                "constraint \"{name}\" conflicts with inherited constraint on relation \"{}\"",
                table.name
            );
            return Err(Error::new(SqlState::of("42P17"), message));
        }
        let message = format!("merging constraint \"{name}\" with inherited definition");
        self.say(message, None, sink)?;
        table.inheritance_mut().local_checks.push(inherited.oid);
        Ok(true)
    }

    fn say(&mut self, message: String, detail: Option<&str>, sink: &mut dyn Sink) -> Result<()> {
        let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
        let body = match detail {
            Some(detail) => body.with_detail(detail),
            None => body,
        };
        self.notice(NoticeSeverity::Notice, body, sink)
    }
}

/// A parent's column as its child has it.
fn inherited(column: &Column) -> Column {
    let mut own = column.clone();
    own.missing = None;
    own.options.clear();
    if own.identity != Identity::None {
        own.identity = Identity::None;
        own.default = None;
        own.default_uses.clear();
    }
    own
}

fn has_generation(column: &ColumnDef) -> bool {
    column.constraints.iter().any(|node| match &node.node {
        Some(NodeEnum::Constraint(constraint)) => {
            ConstrType::try_from(constraint.contype) == Ok(ConstrType::ConstrGenerated)
        }
        _ => false,
    })
}

/// What a table says of a column is added to what it inherits; true if its value by default is its own.
fn merge(catalog: &Catalog, known: &mut Column, own: Column, is_generated: bool) -> Result<bool> {
    let name = &own.name;
    same_type(catalog, ("column", name), known, &own)?;
    merge_compression(known, &own)?;
    if known.generated {
        if is_generated {
            let message = format!("child column \"{name}\" specifies generation expression");
            let hint =
                "Omit the generation expression in the definition of the child table column \
                        to inherit the generation expression from the parent table.";
            return Err(wrong_column(message).with_hint(hint));
        }
        let wrong = |what: &str| {
            let message =
                format!("column \"{name}\" inherits from generated column but specifies {what}");
            Err(wrong_column(message))
        };
        if own.identity != Identity::None {
            return wrong("identity");
        }
        if own.default.is_some() {
            return wrong("default");
        }
    }
    known.not_null |= own.not_null;
    let is_own = own.default.is_some() || own.identity != Identity::None || is_generated;
    if is_own {
        known.identity = own.identity;
        known.default = own.default;
        known.default_uses = own.default_uses;
    }
    Ok(is_own)
}
