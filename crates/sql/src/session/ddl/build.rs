//! Trees made of the rows that a table has: new indexes, and the table itself under other keys.
//!
//! The engine makes them beside the work, on every replica ([`base::engine::Building::build`]);
//! here is how they follow from two states of a table's definition, and what is said when its rows
//! do not allow them. The entries of computed indexes are made here, from the rows as the table has
//! them then ([`Session::fill_computed`]).

use std::sync::Arc;

use base::engine::{Build, Built, Rekeyed, RowKey, TreeKind};
use base::{Error, Result, SequenceId, SqlState, TreeId};

use super::alter::about;
use crate::session::Session;
use catalog::{store, Index, Table};
use execution::exec::entries::{self, Taken};
use execution::exec::{self, exclusion, new_row, rows, Exec};
use execution::system::Relations;
use planner::plan::permit::Permit;
use types::{self, Datum, EvalContext};

impl Session {
    /// Builds the indexes that `new` has and `old` has not, and puts `new` into the catalog. Both
    /// have the same rows under the same keys. The table is locked against writers.
    ///
    /// # Errors
    /// 23505 when a unique index finds rows that are equal.
    pub(super) fn build_indexes(&mut self, database: u32, old: &Table, new: &Table) -> Result<()> {
        let is_known = |tree: TreeId| old.indexes.iter().any(|index| index.tree == tree);
        let mut indexes = Vec::new();
        let made = new.indexes.iter().filter(|index| !is_known(index.tree));
        let (computed, derived): (Vec<_>, Vec<_>) = made.partition(|own| own.computed.is_some());
        for index in derived {
            indexes.push((index.tree, store::index_descriptor(new, index)?));
        }
        let build = Build {
            source: old.tree,
            rekeyed: None,
            indexes,
        };
        match (build.indexes.is_empty(), &mut self.open) {
            (false, _) => self.build(database, new, &build)?,
            (true, Some(open)) => store::update_table(open.txn.as_mut(), database, new)?,
            (true, None) => return Err(Error::internal("nothing is open")),
        }
        let trees: Vec<_> = computed.iter().map(|index| index.tree).collect();
        self.fill_computed(new, &trees)?;
        self.check_equal(new, |index| !is_known(index.tree))?;
        self.check_excluded(new, |index| !is_known(index.tree))
    }

    /// Looks for equal rows in new indexes whose constraints are checked later.
    ///
    /// # Errors
    /// 23505.
    pub(super) fn check_equal(
        &mut self,
        table: &Table,
        wanted: impl Fn(&Index) -> bool,
    ) -> Result<()> {
        for (place, index) in table.indexes.iter().enumerate() {
            if index.checked.is_none() || !wanted(index) {
                continue;
            }
            let catalog = self.current_catalog()?;
            let Some(open) = &mut self.open else {
                return Err(Error::internal("nothing is open"));
            };
            open.txn.begin_statement()?;
            let permit = Permit::of_definition(&catalog);
            let eval = self.eval.clone();
            let mut cx = Exec::new(&Relations, self, permit, &eval, &[]);
            if let Some(values) = exec::checked::find_equal(table, index, &mut cx)? {
                let columns = index.columns.iter();
                let types = columns.map(|own| table.columns[own.column].type_id);
                let taken = Taken {
                    index: place,
                    values: types.zip(values).collect(),
                    met: None,
                };
                return Err(about(twice(table, &taken, &cx), &catalog, table));
            }
        }
        Ok(())
    }

    /// Looks for rows that conflict under the exclusion constraints of new indexes.
    ///
    /// # Errors
    /// 23P01.
    pub(super) fn check_excluded(
        &mut self,
        table: &Table,
        wanted: impl Fn(&Index) -> bool,
    ) -> Result<()> {
        let mut indexes = table.indexes.iter();
        if !indexes.any(|index| index.exclusion.is_some() && wanted(index)) {
            return Ok(());
        }
        let (catalog, table) = (self.current_catalog()?, Arc::new(table.clone()));
        let mut rules = self.try_binding("", &catalog, |binder| binder.entries(&table))?;
        rules.retain(|rule| rule.exclusion.is_some() && wanted(&table.indexes[rule.index]));
        self.as_owner(table.owner, |session| {
            for rule in &rules {
                session.for_each_row(&table, |cx, key, row| {
                    exclusion::check_built(rule, &table, key, row, cx)
                })?;
            }
            Ok(())
        })
    }

    /// Makes the trees of computed indexes, with an entry for every row of the table.
    ///
    /// # Errors
    /// 23505 when a unique index finds rows that are equal; what computing entries raises.
    fn fill_computed(&mut self, table: &Table, trees: &[TreeId]) -> Result<()> {
        if trees.is_empty() {
            return Ok(());
        }
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        for tree in trees {
            store::create_tree(open.txn.as_mut(), *tree, TreeKind::Table)?;
        }
        self.changed_catalog();
        let (catalog, table) = (self.current_catalog()?, Arc::new(table.clone()));
        let mut rules = self.try_binding("", &catalog, |binder| binder.entries(&table))?;
        rules.retain(|rule| trees.contains(&table.indexes[rule.index].tree));
        // Whether rows conflict is looked at once all are there.
        rules.iter_mut().for_each(|rule| rule.exclusion = None);
        // What the expressions call must not run with the rights of whoever happens to build this.
        self.as_owner(table.owner, |session| {
            session.for_each_row(&table, |cx, key, row| {
                match entries::insert(&rules, &table, key, row, cx)? {
                    None => Ok(()),
                    Some(taken) => Err(about(twice(&table, &taken, cx), &catalog, &table)),
                }
            })
        })
    }

    /// Moves the rows of `old` to the keys that `new` has, its primary key or hidden numbers, with
    /// new trees for the table and all its indexes ([`Session::with_new_trees`]); puts `new` into
    /// the catalog and drops the old trees. Columns are the same in both. The table is locked
    /// against everyone.
    ///
    /// # Errors
    /// 23505 when rows are equal in the new key or a new unique index; 23502 when the new key is
    /// NULL somewhere.
    pub(super) fn rekey(&mut self, database: u32, old: &Table, new: &Table) -> Result<()> {
        let new = &Table {
            // What stands for a long value is moved as it is.
            long_tree: old.long_tree,
            ..new.clone()
        };
        let key = match new.primary_key() {
            Some(index) => RowKey::Columns(store::index_descriptor(new, index)?),
            None => RowKey::Numbers(SequenceId(u64::from(new.oid))),
        };
        let mut indexes = Vec::new();
        let mut computed = Vec::new();
        for index in new.indexes.iter().filter(|index| !index.primary) {
            match index.computed {
                None => indexes.push((index.tree, store::index_descriptor(new, index)?)),
                Some(_) => computed.push(index.tree),
            }
        }
        let build = Build {
            source: old.tree,
            rekeyed: Some(Rekeyed {
                tree: new.tree,
                key,
            }),
            indexes,
        };
        self.build(database, new, &build)?;
        self.fill_computed(new, &computed)?;
        self.check_equal(new, |_| true)?;
        self.check_excluded(new, |_| true)?;
        match &mut self.open {
            Some(open) => store::drop_row_trees(open.txn.as_mut(), old),
            None => Err(Error::internal("nothing is open")),
        }
    }

    fn build(&mut self, database: u32, new: &Table, build: &Build) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        match open.txn.build(build)? {
            Built::Done => store::update_table(open.txn.as_mut(), database, new),
            Built::Duplicate { tree, row } => {
                let error = duplicated(new, tree, &row, &self.eval);
                Err(about(error, &*self.current_catalog()?, new))
            }
            Built::NullKey { column } => {
                let error = null_key(new, column);
                Err(about(error, &*self.current_catalog()?, new))
            }
        }
    }
}

/// 23505 for rows that a new computed index finds equal.
pub(super) fn twice(table: &Table, taken: &Taken, cx: &Exec<'_>) -> Error {
    let index = &table.indexes[taken.index];
    let message = format!("could not create unique index \"{}\"", index.name);
    let key = new_row::key_text(table, index, &taken.values, cx);
    let mut error = Error::new(SqlState::UNIQUE_VIOLATION, message)
        .with_detail(format!("{key} is duplicated."));
    error.fields_mut().constraint = Some(index.name.clone());
    error
}

/// 23505 for rows that a new unique index finds equal.
pub(super) fn duplicated(table: &Table, tree: TreeId, row: &[u8], eval: &EvalContext) -> Error {
    match describe_duplicate(table, tree, row, eval) {
        Ok(error) | Err(error) => error,
    }
}

fn describe_duplicate(
    table: &Table,
    tree: TreeId,
    row: &[u8],
    eval: &EvalContext,
) -> Result<Error> {
    let index = table.index_of_tree(tree);
    let index = index.ok_or_else(|| Error::internal("a duplicate in no index"))?;
    let row = rows::decode(table, &[], row, &[], false)?;
    let names: Vec<_> = index
        .columns
        .iter()
        .map(|column| table.columns[column.column].name.as_str())
        .collect();
    let values: Vec<_> = index
        .columns
        .iter()
        .map(|column| {
            let ty = table.columns[column.column].type_id;
            match &row[column.column] {
                Datum::Null => "null".to_owned(),
                value => types::output(eval, ty, value).unwrap_or_default(),
            }
        })
        .collect();
    let mut error = Error::new(
        SqlState::UNIQUE_VIOLATION,
        format!("could not create unique index \"{}\"", index.name),
    )
    .with_detail(format!(
        "Key ({})=({}) is duplicated.",
        names.join(", "),
        values.join(", ")
    ));
    error.fields_mut().constraint = Some(index.name.clone());
    Ok(error)
}

/// 23502 for a row that has no value for the new key.
fn null_key(table: &Table, column: usize) -> Error {
    let column = &table.columns[column];
    let message = format!(
        "column \"{}\" of relation \"{}\" contains null values",
        column.name, table.name
    );
    let mut error = Error::new(SqlState::NOT_NULL_VIOLATION, message);
    error.fields_mut().column = Some(column.name.clone());
    error
}
