//! Constraints that wait: which are deferred in the open transaction, and what they have to look at
//! before it commits.
//!
//! ```text
//! set constraints all deferred      modes: all → true
//! insert into c values (1, 7)       queue: [Refers c → p]
//! savepoint s                       mark: 1 event, none done
//! set constraints c_fkey immediate  looks; done: [0]
//! rollback to s                     done: []: it is to be looked at again
//! commit                            looks; 23503 rolls everything back
//! ```

use std::sync::Arc;

use base::{Error, Key, Result, SqlState};
use pg_query::protobuf::ConstraintsSetStmt;

use super::in_use::Using;
use super::transaction::State;
use super::utility::tag;
use super::{CommandTag, NoticeSeverity, Session, Sink};
use catalog::{Catalog, Index, Table};
use execution::exec::foreign;
use execution::exec::Exec;
use execution::state::constraints::{Event, Modes};
use execution::system::Relations;
use planner::plan::permit::Permit;
use syntax::parser::NodeEnum;

impl Session {
    /// Looks at everything that was deferred, before a COMMIT.
    ///
    /// # Errors
    /// 23503.
    pub(super) fn check_deferred(&mut self) -> Result<()> {
        match self.shared.constraints.has_pending() {
            true => self.check_waiting(|_| true),
            false => Ok(()),
        }
    }

    fn check_waiting(&mut self, wanted: impl Fn(u32) -> bool) -> Result<()> {
        let Some(catalog) = self.shared.constraints.catalog.clone() else {
            return Ok(());
        };
        // What a trigger does may queue more.
        let mut places = 0..;
        while let Some(place) = places
            .next()
            .filter(|at| *at < self.shared.constraints.queue.len())
        {
            let (event, done) = &self.shared.constraints.queue[place];
            if *done || !wanted(event.constraint()) {
                continue;
            }
            let event = event.clone();
            let Some(event) = self.current_event(event)? else {
                self.note_done(place);
                continue;
            };
            let using = Using::tables(event.tables().map(|table| &**table));
            self.using(using, |session| {
                let permit = Permit::of_definition(&catalog);
                let eval = session.eval.clone();
                let mut cx = Exec::new(&Relations, session, permit, &eval, &[]);
                cx.tick()?;
                foreign::run_deferred(&event, &mut cx)
            })?;
            self.note_done(place);
        }
        Ok(())
    }

    fn note_done(&mut self, place: usize) {
        let constraints = &mut self.shared.constraints;
        constraints.queue[place].1 = true;
        constraints.done.push(place);
    }

    /// What waits, as it is now: REINDEX may have made another tree of an index. None if it is about a
    /// trigger or an index that is gone.
    fn current_event(&mut self, event: Event) -> Result<Option<Event>> {
        let catalog = self.current_catalog()?;
        Ok(match event {
            Event::Fire(fire) => {
                let oid = fire.triggers.all[fire.place].trigger.oid;
                let table = catalog.table_by_oid(fire.triggers.table.oid);
                let mut triggers = table.into_iter().flat_map(|table| &table.triggers);
                let is_there = triggers.any(|trigger| trigger.oid == oid);
                is_there.then_some(Event::Fire(fire))
            }
            Event::Equal {
                table,
                index,
                row,
                values,
            } => {
                let oid = table.indexes[index].oid;
                let table = catalog.table_by_oid(table.oid).cloned();
                table.and_then(|table| {
                    let mut indexes = table.indexes.iter();
                    let index = indexes.position(|index| index.oid == oid)?;
                    Some(Event::Equal {
                        table,
                        index,
                        row,
                        values,
                    })
                })
            }
            Event::Excluded {
                table,
                rules,
                rule,
                row,
            } => {
                let now = catalog.table_by_oid(table.oid).cloned();
                match now {
                    Some(now) if !Arc::ptr_eq(&now, &table) => {
                        let oid = table.indexes[rules[rule].index].oid;
                        self.excluded_now(&catalog, now, oid, row)?
                    }
                    now => now.map(|table| Event::Excluded {
                        table,
                        rules,
                        rule,
                        row,
                    }),
                }
            }
            other => Some(other),
        })
    }

    /// What waits for a row's exclusion constraint in a table that is another now; none if the
    /// constraint is gone.
    fn excluded_now(
        &mut self,
        catalog: &Arc<Catalog>,
        table: Arc<Table>,
        index: u32,
        row: Key,
    ) -> Result<Option<Event>> {
        let rules = self.try_binding("", catalog, |binder| binder.entries(&table))?;
        let mut own = rules.iter();
        let rule = own.position(|rule| table.indexes[rule.index].oid == index);
        Ok(rule.map(|rule| Event::Excluded {
            table,
            rules: rules.into(),
            rule,
            row,
        }))
    }

    /// SET CONSTRAINTS.
    pub(super) fn set_constraints(
        &mut self,
        set: &ConstraintsSetStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        if self.state == State::None {
            let message = "SET CONSTRAINTS can only be used in transaction blocks";
            let body = Error::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message);
            self.notice(NoticeSeverity::Warning, body, sink)?;
        }
        self.ensure_open()?;
        if set.constraints.is_empty() {
            self.shared.constraints.modes = Modes {
                all: Some(set.deferred),
                each: Vec::new(),
            };
            if !set.deferred {
                self.check_waiting(|_| true)?;
            }
            return Ok(tag("SET CONSTRAINTS"));
        }
        let mut oids = Vec::new();
        for node in &set.constraints {
            if let Some(NodeEnum::RangeVar(range)) = &node.node {
                let (schema, name) = (&range.schemaname, &range.relname);
                oids.extend(self.deferrable_constraints(schema, name, set.deferred)?);
            }
        }
        for oid in &oids {
            let each = &mut self.shared.constraints.modes.each;
            each.retain(|mode| mode.0 != *oid);
            each.push((*oid, set.deferred));
        }
        if !set.deferred {
            self.check_waiting(|oid| oids.contains(&oid))?;
        }
        Ok(tag("SET CONSTRAINTS"))
    }

    /// The deferrable constraints of that name, in the first schema that has any of it. That others
    /// are looked at at once need not be said.
    fn deferrable_constraints(
        &mut self,
        schema: &str,
        name: &str,
        deferred: bool,
    ) -> Result<Vec<u32>> {
        let catalog = self.current_catalog()?;
        let path = match schema {
            "" => self.search_path(&catalog),
            schema => match catalog.schema(schema) {
                Some(schema) => vec![schema.oid],
                None => {
                    return Err(Error::new(
                        SqlState::INVALID_SCHEMA_NAME,
                        format!("schema \"{schema}\" does not exist"),
                    ))
                }
            },
        };
        for schema in path {
            let mut found = Vec::new();
            let mut is_there = false;
            for table in catalog.tables.iter().filter(|table| table.schema == schema) {
                let known = constraints_of(&catalog, table, name);
                is_there |= !known.is_empty();
                if deferred && known.iter().any(|(_, deferrable)| !deferrable) {
                    return Err(not_deferrable(name));
                }
                let deferrable = known.into_iter().filter(|(_, deferrable)| *deferrable);
                found.extend(deferrable.map(|(oid, _)| oid));
            }
            if is_there {
                return Ok(found);
            }
        }
        Err(Error::new(
            SqlState::UNDEFINED_OBJECT,
            format!("constraint \"{name}\" does not exist"),
        ))
    }
}

/// The constraints of that name that a table has, and whether they are deferrable.
fn constraints_of(catalog: &Catalog, table: &Table, name: &str) -> Vec<(u32, bool)> {
    let mut found = Vec::new();
    let checks = table.checks.iter().filter(|check| check.name == name);
    found.extend(checks.map(|check| (check.oid, false)));
    let mut indexes = table.indexes.iter();
    if let Some(index) = indexes.find(|index| index.constraint != 0 && index.name == name) {
        let deferrable = index.is_deferrable();
        found.push((index.constraint, deferrable));
        let below = constraints_below(catalog, table, index).into_iter();
        found.extend(below.map(|oid| (oid, deferrable)));
    }
    let keys = table.foreign_keys.iter().filter(|key| key.name == name);
    found.extend(keys.map(|key| (key.oid, key.deferrable)));
    let triggers = table.triggers.iter().filter(|known| known.name == name);
    let triggers = triggers.filter_map(|known| known.constraint.as_ref());
    found.extend(triggers.map(|trigger| (trigger.oid, trigger.deferrable)));
    found
}

/// The constraints of the parts of an index, in partitions of its table.
fn constraints_below(catalog: &Catalog, table: &Table, index: &Index) -> Vec<u32> {
    let mut indexes = vec![index.oid];
    let mut constraints = Vec::new();
    for below in catalog.below(table) {
        for part in &below.indexes {
            let above = below.part_above(part.oid);
            if above.is_some_and(|above| indexes.contains(&above)) {
                indexes.push(part.oid);
                constraints.push(part.constraint);
            }
        }
    }
    constraints
}

fn not_deferrable(name: &str) -> Error {
    Error::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("constraint \"{name}\" is not deferrable"),
    )
}
