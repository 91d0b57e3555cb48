//! What can be done to a relation: `pg_relation_is_updatable`, `pg_column_is_updatable`.
//!
//! ```text
//! create view v as select a, b + 1 as c from t      INSERT, UPDATE and DELETE; of c alone, DELETE
//! create view w as select count(*) from t           nothing
//! create rule r as on insert to w do instead …      INSERT
//! ```
//! A table takes all of the three; a view takes those for which it has an INSTEAD rule without a
//! condition, those for which it has an INSTEAD OF trigger if these are asked for, and what the only
//! relation that it selects from takes.

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result};

use super::from::as_meant;
use super::scope::{table_columns, Scope};
use super::updatable::{
    clause_in_the_way, column_in_the_way, not_updatable, only_relation, place_of, Verb, Writable,
};
use super::view::query_of_text;
use super::Binder;
use catalog::trigger::Events;
use catalog::{RelationKind, Table};

/// All that can be done.
const ALL: [Events; 3] = [Events::INSERT, Events::UPDATE, Events::DELETE];

/// The relation that a view selects from, and the places in it of the view's columns.
type Level = (Arc<Table>, Vec<Option<usize>>);

impl<'a> Binder<'a> {
    /// What can be done to a relation, as far as these columns go if they are given; with what its
    /// INSTEAD OF triggers do, or without.
    ///
    /// # Errors
    /// What has become of the relations that views name.
    pub fn updatable_events(
        &mut self,
        relation: &Table,
        with_triggers: bool,
        asked: Option<&[usize]>,
    ) -> Result<Events> {
        let all = ALL.into_iter().fold(Events::NONE, Events::with);
        match relation.kind {
            RelationKind::Table | RelationKind::Partitioned => return Ok(all),
            RelationKind::View if !self.expanding.contains(&relation.oid) => {}
            RelationKind::View
            | RelationKind::MaterializedView
            | RelationKind::Sequence
            | RelationKind::System => return Ok(Events::NONE),
        }
        let own = ALL.into_iter().filter(|event| {
            relation.has_instead_rule(*event) || with_triggers && relation.has_instead_of(*event)
        });
        let own = own.fold(Events::NONE, Events::with);
        if own == all {
            return Ok(all);
        }
        let Some((below, places)) = self.view_level(relation)? else {
            return Ok(own);
        };
        let columns = match asked {
            Some(asked) => asked
                .iter()
                .filter_map(|place| *places.get(*place)?)
                .collect(),
            None => places.into_iter().flatten().collect::<Vec<_>>(),
        };
        let through = self.below(relation, |binder| {
            binder.updatable_events(&below, with_triggers, Some(&columns))
        })?;
        Ok(match columns.is_empty() {
            true if through.has(Events::DELETE) => own.with(Events::DELETE),
            true => own,
            false => own.with(through),
        })
    }

    /// What is said of a view that cannot be written through: it is about the one at which that ends.
    pub(super) fn not_written_through(
        &mut self,
        named: &Arc<Table>,
        verb: Verb,
        detail: &'static str,
    ) -> Result<Error> {
        let mut view = named.clone();
        while let Some((below, _)) = self.view_level(&view)? {
            if below.kind != RelationKind::View {
                break;
            }
            view = below;
        }
        Ok(not_updatable(&view, verb, detail))
    }

    /// The relation that a view selects from, if its clauses let it be written through.
    pub(super) fn relation_below(&mut self, view: &Table) -> Result<Option<&'a Arc<Table>>> {
        let Some(query) = &view.view else {
            return Ok(None);
        };
        let select = &query_of_text(&query.query)?;
        match only_relation(select)?.filter(|_| clause_in_the_way(select).is_none()) {
            None => Ok(None),
            Some(range) => self.in_stored_text(&query.query, |binder| binder.ruled(range)),
        }
    }

    /// What a view shows of one relation; none if it is no selection of one.
    fn view_level(&mut self, view: &Table) -> Result<Option<Level>> {
        let Some(query) = &view.view else {
            return Ok(None);
        };
        let select = &query_of_text(&query.query)?;
        let Some(range) = only_relation(select)?.filter(|_| clause_in_the_way(select).is_none())
        else {
            return Ok(None);
        };
        self.in_stored_text(&query.query, |binder| {
            let table = as_meant(range, binder.table(range, TableLock::AccessShare)?)?;
            let mut columns = table_columns(&table);
            let alias = binder.alias(range.alias.as_ref(), &table.name, &mut columns)?;
            let mut item = Writable::table(table.clone()).item(&alias, 0);
            item.columns = columns;
            let mut scope = Scope {
                tables: vec![item],
                ..Scope::default()
            };
            binder.window_clause(&select.window_clause, &mut scope)?;
            let mut exprs = Vec::new();
            for (expr, _) in binder.targets(&select.target_list, &scope)? {
                exprs.push(binder.settle(expr)?);
            }
            let is_selection = column_in_the_way(&exprs).is_none();
            Ok(is_selection.then(|| (table, exprs.iter().map(place_of).collect())))
        })
    }
}
