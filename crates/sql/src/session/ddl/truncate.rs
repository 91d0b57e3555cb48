//! TRUNCATE: new, empty trees in the place of the old ones, for several tables at once.

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{DropBehavior, TruncateStmt};

use super::super::in_use::Using;
use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use catalog::access::Privileges;
use catalog::trigger::{Events, Timing};
use catalog::{store, RelationKind, Table};
use execution::exec::program::Evaluate;
use execution::exec::trigger::Firing;
use execution::exec::Exec;
use execution::system::Relations;
use planner::plan::permit::Permit;
use planner::plan::trigger::Triggers;
use syntax::parser::NodeEnum;

impl Session {
    pub(in crate::session) fn truncate(
        &mut self,
        truncate: &TruncateStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for node in &truncate.relations {
            let Some(NodeEnum::RangeVar(range)) = &node.node else {
                continue;
            };
            let table =
                self.lock_table_for(range, Privileges::TRUNCATE, TableLock::AccessExclusive)?;
            if !matches!(table.kind, RelationKind::Table | RelationKind::Partitioned) {
                return Err(Error::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("\"{}\" is not a table", table.name),
                ));
            }
            if table.kind == RelationKind::Partitioned && !range.inh {
                let message = "cannot truncate only a partitioned table";
                return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message).with_hint(
                    "Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions \
                     directly.",
                ));
            }
            let catalog = self.current_catalog()?;
            let mut below = catalog.below(&table);
            if range.inh {
                below.extend(catalog.heirs(&table));
            }
            for table in std::iter::once(table).chain(below) {
                if tables.iter().any(|known| known.oid == table.oid) {
                    continue;
                }
                self.lock_fully(&table)?;
                let now = self.current_catalog()?.table_by_oid(table.oid).cloned();
                tables.extend(now);
            }
        }
        let cascade = truncate.behavior == DropBehavior::DropCascade as i32;
        self.reach_referrers(&mut tables, cascade, sink)?;
        for old in &tables {
            self.refuse_in_use(old, "TRUNCATE")?;
        }
        let catalog = self.current_catalog()?;
        let mut triggers = Vec::new();
        for table in tables.iter().filter(|table| !table.triggers.is_empty()) {
            triggers.extend(self.try_binding("", &catalog, |binder| {
                binder.triggers_on(table, Events::TRUNCATE, &[])
            })?);
        }
        let using = || Using::tables(tables.iter().map(|table| &**table));
        for triggers in &triggers {
            self.using(using(), |session| {
                session.fire_for_statement(triggers, Timing::Before)
            })?;
        }
        for old in tables.iter().filter(|table| table.kind.has_rows()) {
            let new = self.with_new_trees(old)?;
            let database = self.current_catalog()?.database.oid;
            let Some(open) = &mut self.open else {
                return Err(Error::internal("nothing is open"));
            };
            store::create_trees(open.txn.as_mut(), &new)?;
            store::update_table(open.txn.as_mut(), database, &new)?;
            store::drop_trees(open.txn.as_mut(), old)?;
            self.changed_catalog();
            if truncate.restart_seqs {
                self.restart_sequences(old.oid)?;
                self.changed_catalog();
            }
        }
        for triggers in &triggers {
            self.using(using(), |session| {
                session.fire_for_statement(triggers, Timing::After)
            })?;
        }
        self.hand_on_notices(sink)?;
        Ok(tag("TRUNCATE TABLE"))
    }

    /// Fires the triggers on TRUNCATE.
    fn fire_for_statement(&mut self, triggers: &Triggers, timing: Timing) -> Result<()> {
        let replica = self.shared.settings.parsed().replica;
        for place in triggers.of(timing, false, Events::TRUNCATE, &[]) {
            let planned = &triggers.all[place];
            if !planned.trigger.fires(replica) {
                continue;
            }
            if let Some(condition) = &planned.condition {
                let catalog = self.current_catalog()?;
                let eval = self.eval.clone();
                let permit = Permit::of_definition(&catalog);
                let mut cx = Exec::new(&Relations, self, permit, &eval, &[]);
                if !condition.test(&mut cx, &[])? {
                    continue;
                }
            }
            self.fire_trigger(&Firing {
                triggers,
                place,
                event: Events::TRUNCATE,
                old: None,
                new: None,
                role: None,
                transition: None,
            })?;
        }
        Ok(())
    }

    /// Tables whose rows refer to those that are emptied are emptied with them, or stand in the way.
    fn reach_referrers(
        &mut self,
        tables: &mut Vec<Arc<Table>>,
        cascade: bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let mut at = 0;
        while at < tables.len() {
            let table = tables[at].clone();
            at += 1;
            let catalog = self.current_catalog()?;
            let named = catalog.with_ancestors(&table).into_iter();
            let further: Vec<_> = named
                .flat_map(|table| catalog.referrers(table.oid))
                .map(|(child, _)| child.clone())
                .filter(|child| tables.iter().all(|known| known.oid != child.oid))
                .collect();
            for child in further {
                if tables.iter().any(|known| known.oid == child.oid) {
                    continue;
                }
                if !cascade {
                    return Err(Error::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "cannot truncate a table referenced in a foreign key constraint",
                    )
                    .with_detail(format!(
                        "Table \"{}\" references \"{}\".",
                        child.name, table.name
                    ))
                    .with_hint(format!(
                        "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                        child.name
                    )));
                }
                let message = format!("truncate cascades to table \"{}\"", child.name);
                let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
                self.notice(NoticeSeverity::Notice, body, sink)?;
                self.must_hold(&child, Privileges::TRUNCATE)?;
                self.lock_fully(&child)?;
                let now = self.current_catalog()?;
                if let Some(child) = now.table_by_oid(child.oid) {
                    tables.push(child.clone());
                }
            }
        }
        Ok(())
    }
}
