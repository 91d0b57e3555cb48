//! The foreign keys that a statement touches: [`Rules`], settled when it is planned.
//!
//! The written table comes first; those that its rows refer to, and those that refer to it, follow,
//! and further ones as far as cascades reach. Every table that may be looked at or changed is locked
//! with the statement's own, as PostgreSQL does when it gets there.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result};

use super::Binder;
use crate::plan::compile;
use crate::plan::foreign::{
    Compare, Link, LinkColumn, Named, ReferencedPartitions, RuleTable, Rules,
};
use crate::plan::{Expr, ExprKind};
use catalog::partition::column_map;
use catalog::trigger::Events;
use catalog::{Action, Catalog, ForeignKey, RelationKind, Table};
use functions::{find_coercion, CastContext};
use types::TypeId;

/// What is done to the rows of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touch {
    /// Rows come.
    pub inserts: bool,
    /// The columns that change.
    pub changes: Vec<usize>,
    /// Rows go.
    pub deletes: bool,
}

impl Touch {
    fn changes_any(&self, columns: &[usize]) -> bool {
        columns.iter().any(|place| self.changes.contains(place))
    }

    /// Takes over what another does besides; whether that is anything.
    fn merge(&mut self, other: &Touch) -> bool {
        let before = self.clone();
        self.inserts |= other.inserts;
        self.deletes |= other.deletes;
        for place in &other.changes {
            if !self.changes.contains(place) {
                self.changes.push(*place);
            }
        }
        *self != before
    }

    /// What this makes of the rows that refer by a foreign key.
    fn of_referrers(&self, key: &ForeignKey, referenced: &[usize]) -> Touch {
        let mut touch = Touch::default();
        if self.deletes {
            match key.on_delete {
                Action::Cascade => touch.deletes = true,
                Action::SetNull | Action::SetDefault => {
                    touch.changes.extend_from_slice(key.set_on_delete());
                }
                Action::NoAction | Action::Restrict => {}
            }
        }
        if self.changes_any(referenced) && key.on_update.writes() {
            touch.changes.extend_from_slice(&key.columns);
        }
        touch
    }
}

/// Whether two columns can be those of a foreign key.
pub fn are_comparable(child: TypeId, parent: TypeId) -> bool {
    child == parent
        || (is_integer(child) && is_integer(parent))
        || find_coercion(child, parent, CastContext::Implicit).is_some()
}

fn is_integer(ty: TypeId) -> bool {
    matches!(ty, TypeId::INT2 | TypeId::INT4 | TypeId::INT8)
}

impl Binder<'_> {
    /// What writing a table so sets off; none if it is nothing.
    pub fn rules(&mut self, table: &Arc<Table>, touch: Touch) -> Result<Option<Rc<Rules>>> {
        let catalog = self.cx.catalog.clone();
        // The rows of a partitioned table are its partitions', and what inherits is written by itself.
        let has_rows = table.kind != RelationKind::Partitioned && !table.has_children();
        let referred = referrers(&catalog, table).next().is_some();
        if !has_rows || table.foreign_keys.is_empty() && !referred {
            return Ok(None);
        }
        let mut rules = Rules::default();
        self.reach(&mut rules, table)?;
        let mut touches = vec![touch];
        let mut open = VecDeque::from([0]);
        while let Some(place) = open.pop_front() {
            let touch = touches[place].clone();
            let table = rules.tables[place].table.clone();
            for key in &table.foreign_keys {
                if touch.inserts || touch.changes_any(&key.columns) {
                    let link = self.link(&mut rules, (&table, key), None)?;
                    touches.resize_with(rules.tables.len(), Touch::default);
                    add(&mut rules.tables[place].refers, link);
                    let parent = rules.tables[rules.links[link].parent].table.tree;
                    self.lock(parent, TableLock::RowShare);
                }
            }
            for (above, child, key) in referrers(&catalog, &table) {
                let referenced = places_in(above, &key.referenced, &table)?;
                if !touch.deletes && !touch.changes_any(&referenced) {
                    continue;
                }
                let link = self.link(&mut rules, (child, key), Some(&table))?;
                if above.oid != table.oid && touch.deletes {
                    rules.links[link].whole = Some(self.link(&mut rules, (child, key), None)?);
                }
                touches.resize_with(rules.tables.len(), Touch::default);
                add(&mut rules.tables[place].referred, link);
                let further = touch.of_referrers(key, &referenced);
                let lock = match further == Touch::default() {
                    true => TableLock::RowShare,
                    false => TableLock::RowExclusive,
                };
                for locked in catalog.with_ancestors(child) {
                    self.lock(locked.tree, lock);
                }
                let child = rules.links[link].child;
                if touches[child].merge(&further) {
                    self.prepare_changes(&mut rules, child, key)?;
                    open.push_back(child);
                }
            }
        }
        if rules.links.is_empty() {
            return Ok(None);
        }
        order(&mut rules);
        Ok(Some(Rc::new(rules)))
    }

    /// The rules of one foreign key alone, to check the rows that are there.
    pub fn rules_of(&mut self, table: &Arc<Table>, key: &ForeignKey) -> Result<Rules> {
        let mut rules = Rules::default();
        self.link(&mut rules, (table, key), None)?;
        Ok(rules)
    }

    /// The place of a table among those that are reached.
    fn reach(&mut self, rules: &mut Rules, table: &Arc<Table>) -> Result<usize> {
        let known = rules.tables.iter().position(|t| t.table.oid == table.oid);
        Ok(known.unwrap_or_else(|| {
            rules.tables.push(RuleTable {
                table: table.clone(),
                generated: Vec::new(),
                checks: Vec::new(),
                partition_check: None,
                entries: Rc::default(),
                triggers: None,
                defaults: Vec::new(),
                refers: Vec::new(),
                referred: Vec::new(),
            });
            rules.tables.len() - 1
        }))
    }

    /// The link of a foreign key, for rows that leave a partition of the table that it refers to, or
    /// that table itself.
    fn link(
        &mut self,
        rules: &mut Rules,
        (child, key): (&Arc<Table>, &ForeignKey),
        left: Option<&Arc<Table>>,
    ) -> Result<usize> {
        let missing = || Error::internal(format!("foreign key {} refers to nothing", key.name));
        let parent = match key.table == child.oid {
            true => child.clone(),
            false => {
                let found = self.cx.catalog.table_by_oid(key.table);
                found.ok_or_else(missing)?.clone()
            }
        };
        let left = left.unwrap_or(&parent).clone();
        let mut links = rules.links.iter();
        let known = links.position(|link| link.key.oid == key.oid && link.left.oid == left.oid);
        if let Some(place) = known {
            return Ok(place);
        }
        let index = parent.indexes.iter().position(|i| i.oid == key.index);
        let mut columns = Vec::new();
        let places = places_in(&parent, &key.referenced, &left)?;
        for ((from, to), left) in key.columns.iter().zip(&key.referenced).zip(places) {
            columns.push(LinkColumn {
                child: *from,
                parent: *to,
                left,
                compare: self.comparison(child, *from, &parent, *to)?,
            });
        }
        let link = Link {
            key: key.clone(),
            child: self.reach(rules, child)?,
            parent: self.reach(rules, &parent)?,
            index: index.ok_or_else(missing)?,
            columns,
            partitions: self.referenced_partitions(&parent, key)?,
            named: self.named(child, key, &left)?,
            left,
            whole: None,
        };
        rules.links.push(link);
        Ok(rules.links.len() - 1)
    }

    /// Where the rows of a partitioned table that is referred to are.
    fn referenced_partitions(
        &mut self,
        parent: &Arc<Table>,
        key: &ForeignKey,
    ) -> Result<Option<ReferencedPartitions>> {
        if parent.kind != RelationKind::Partitioned {
            return Ok(None);
        }
        self.lock(parent.tree, TableLock::RowShare);
        let partitions = self.partitions(parent)?;
        let mut indexes = Vec::with_capacity(partitions.leaves.len());
        for leaf in &partitions.leaves {
            let mut own = leaf.table.indexes.iter();
            let part = own.position(|index| {
                let above = self.indexes_above(&leaf.table, index.oid);
                above.contains(&key.index)
            });
            let missing = || Error::internal("a partition without an index that is referred to");
            indexes.push(part.ok_or_else(missing)?);
        }
        Ok(Some(ReferencedPartitions {
            partitions,
            indexes,
        }))
    }

    fn named(&mut self, child: &Arc<Table>, key: &ForeignKey, left: &Table) -> Result<Named> {
        let catalog = self.cx.catalog;
        let (table, whole) = catalog.whole_of(child, key.oid);
        let known = table.foreign_keys.iter().find(|known| known.oid == whole);
        let known = known.unwrap_or(key);
        let mut parts = table.foreign_parts.iter();
        let part = parts.find(|part| part.key == whole && part.partition == left.oid);
        let events = Events::UPDATE.with(Events::DELETE);
        let triggers = match table.oid == child.oid {
            true => None,
            false => self.triggers_on(table, events, &[])?,
        };
        Ok(Named {
            triggers,
            columns: known.columns.clone(),
            name: part.map_or_else(|| known.name.clone(), |part| part.name.clone()),
            table: table.clone(),
        })
    }

    /// How a column of the child compares with one of the parent.
    fn comparison(
        &mut self,
        child: &Arc<Table>,
        from: usize,
        parent: &Table,
        to: usize,
    ) -> Result<Compare> {
        let (own, other) = (child.columns[from].type_id, parent.columns[to].type_id);
        if own == other {
            return Ok(Compare::Same);
        }
        if is_integer(own) && is_integer(other) {
            return Ok(Compare::Integers);
        }
        // The program is given the one value as its row.
        let value = Expr::new(ExprKind::Column(0), own, -1);
        match self.try_coerce(value, other, -1, CastContext::Implicit)? {
            Ok(cast) => Ok(Compare::Cast(compile(&cast))),
            Err(_) => Err(Error::internal(format!("no way from {own} to {other}"))),
        }
    }

    /// What is needed to change rows of a table because of a foreign key.
    fn prepare_changes(&mut self, rules: &mut Rules, place: usize, key: &ForeignKey) -> Result<()> {
        let table = rules.tables[place].table.clone();
        rules.tables[place].generated = self.generated(&table)?;
        rules.tables[place].checks = self.checks(&table)?;
        rules.tables[place].partition_check = self.partition_check(&table)?;
        rules.tables[place].entries = self.entries(&table)?.into();
        let events = Events::UPDATE.with(Events::DELETE);
        rules.tables[place].triggers = self.triggers_on(&table, events, &[])?;
        if key.on_delete != Action::SetDefault && key.on_update != Action::SetDefault {
            return Ok(());
        }
        for column in &key.columns {
            let known = &rules.tables[place].defaults;
            if known.iter().all(|default| default.0 != *column) {
                let default = self.default(&table, *column)?;
                rules.tables[place]
                    .defaults
                    .push((*column, compile(&default)));
            }
        }
        Ok(())
    }
}

/// The foreign keys that refer to the rows of a table, each with the table that it names, which may be
/// one above, and with the table that has it. What partitioned tables have their partitions have too.
fn referrers<'c>(
    catalog: &'c Catalog,
    table: &'c Arc<Table>,
) -> impl Iterator<Item = (&'c Arc<Table>, &'c Arc<Table>, &'c ForeignKey)> {
    let above = catalog.with_ancestors(table).into_iter();
    let all = above.flat_map(|above| {
        let keys = catalog.referrers(above.oid);
        keys.map(move |(child, key)| (above, child, key))
    });
    all.filter(|(_, child, _)| child.kind != RelationKind::Partitioned)
}

/// Where a partition has columns of a table above it, or of its own.
fn places_in(above: &Table, places: &[usize], table: &Table) -> Result<Vec<usize>> {
    let map = match above.oid == table.oid {
        true => None,
        false => column_map(above, table)?,
    };
    let Some(map) = map else {
        return Ok(places.to_vec());
    };
    let found: Option<Vec<usize>> = places.iter().map(|place| map[*place]).collect();
    found.ok_or_else(|| Error::internal("a foreign key to a dropped column"))
}

fn add(links: &mut Vec<usize>, link: usize) {
    if !links.contains(&link) {
        links.push(link);
    }
}

/// Foreign keys are looked at in the order in which they were made.
fn order(rules: &mut Rules) {
    let made: Vec<_> = rules.links.iter().map(|link| link.key.oid).collect();
    for table in &mut rules.tables {
        table.refers.sort_by_key(|link| made[*link]);
        table.referred.sort_by_key(|link| made[*link]);
    }
}
