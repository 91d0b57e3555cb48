//! TRUNCATE: new, empty trees in the place of the old ones, for several tables at once.

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{DropBehavior, TruncateStmt};

use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use catalog::access::Privileges;
use catalog::{store, RelationKind, Table};
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
            if table.kind != RelationKind::Table {
                return Err(Error::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("\"{}\" is not a table", table.name),
                ));
            }
            if tables.iter().all(|known| known.oid != table.oid) {
                tables.push(table);
            }
        }
        let cascade = truncate.behavior == DropBehavior::DropCascade as i32;
        self.reach_referrers(&mut tables, cascade, sink)?;
        for old in &tables {
            self.refuse_pending(old, "TRUNCATE")?;
        }
        for old in &tables {
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
        Ok(tag("TRUNCATE TABLE"))
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
            let further: Vec<_> = catalog
                .referrers(table.oid)
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
