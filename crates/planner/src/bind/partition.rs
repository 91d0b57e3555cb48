//! Partitioned tables, and such that others inherit from, in statements: what is below them, and what
//! partitions ask of their rows.

use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};

use super::computed::Checked;
use super::foreign::Touch;
use super::Binder;
use crate::logical::move_columns;
use crate::plan::partition::{
    Below, Leaf, Level, PartitionCheck, Partitions, Routes, Through, Tree,
};
use crate::plan::{compile, Conflict, Expr, ExprKind, Insert, Plan, Target};
use catalog::partition::{column_map, ColumnMap};
use catalog::{KeySource, RelationKind, Table};

impl Binder<'_> {
    /// The tables whose rows a table has, if it is not a table of its own rows alone.
    pub(super) fn leaves(&mut self, table: &Arc<Table>) -> Result<Option<Rc<Partitions>>> {
        match table.kind {
            RelationKind::Partitioned => self.partitions(table).map(Some),
            _ if table.has_children() => self.with_heirs(table).map(Some),
            _ => Ok(None),
        }
    }

    /// All that is below a partitioned table, locked like the table itself.
    pub(super) fn partitions(&mut self, table: &Arc<Table>) -> Result<Rc<Partitions>> {
        self.lock_like(table, self.cx.catalog.below(table));
        let mut leaves = Vec::new();
        let tree = Some(self.tree_of(table, table, &[], &mut leaves)?);
        Ok(Rc::new(Partitions { tree, leaves }))
    }

    /// A table and all that inherit from it, locked like the table itself.
    fn with_heirs(&mut self, table: &Arc<Table>) -> Result<Rc<Partitions>> {
        let heirs = self.cx.catalog.heirs(table);
        self.lock_like(table, heirs.iter().cloned());
        let mut leaves = Vec::with_capacity(heirs.len() + 1);
        for own in std::iter::once(table).chain(&heirs) {
            leaves.push(self.leaf(table, &own.alone(), Vec::new())?);
        }
        Ok(Rc::new(Partitions { tree: None, leaves }))
    }

    fn lock_like(&mut self, table: &Table, others: impl IntoIterator<Item = Arc<Table>>) {
        let known = self.locks.iter().find(|lock| lock.0 == table.tree);
        let Some(mode) = known.map(|lock| lock.1) else {
            return;
        };
        for other in others {
            self.lock(other.tree, mode);
        }
    }

    fn leaf(
        &mut self,
        top: &Arc<Table>,
        table: &Arc<Table>,
        levels: Vec<(Rc<Level>, usize)>,
    ) -> Result<Leaf> {
        let shown = self.with_trees_seen(table.clone());
        let live = |table: &Table| {
            let columns = table.columns.iter();
            columns.filter(|column| !column.dropped).count()
        };
        Ok(Leaf {
            columns: column_map(top, table)?,
            has_more: live(table) > live(top),
            computed: self.computed_access(&shown)?,
            together: self.known_together(&shown)?,
            table: shown,
            levels,
        })
    }

    fn tree_of(
        &mut self,
        top: &Arc<Table>,
        table: &Arc<Table>,
        above: &[(Rc<Level>, usize)],
        leaves: &mut Vec<Leaf>,
    ) -> Result<Tree> {
        let catalog = self.cx.catalog;
        let mut partitions: Vec<_> = catalog.partitions(table).collect();
        partitions.sort_by(|(_, a), (_, b)| a.bound.order(&a.types, &b.bound));
        let bounds = partitions.iter().map(|(_, of)| of.bound.clone()).collect();
        let level = Rc::new(self.partition_level(top, table, bounds)?);
        let mut below = Vec::with_capacity(partitions.len());
        for (place, (partition, _)) in partitions.into_iter().enumerate() {
            let levels: Vec<_> = above
                .iter()
                .cloned()
                .chain([(level.clone(), place)])
                .collect();
            if partition.kind == RelationKind::Partitioned {
                let tree = self.tree_of(top, partition, &levels, leaves)?;
                below.push(Below::Tree(tree));
                continue;
            }
            let leaf = self.leaf(top, partition, levels)?;
            leaves.push(leaf);
            below.push(Below::Leaf(leaves.len() - 1));
        }
        Ok(Tree { level, below })
    }

    /// A level over the columns of a table: the one that is divided, one above or one below it.
    ///
    /// # Errors
    /// What binding its key gives.
    pub fn partition_level(
        &mut self,
        shown: &Arc<Table>,
        table: &Arc<Table>,
        bounds: Vec<catalog::partition::Bound>,
    ) -> Result<Level> {
        let key = table.partitioning()?;
        let places = column_map(table, shown)?;
        let mut keys = Vec::with_capacity(key.parts.len());
        for part in &key.parts {
            let mut expr = match &part.source {
                KeySource::Column(place) => {
                    let column = &table.columns[*place];
                    let mut own = Expr::new(ExprKind::Column(*place), column.type_id, -1);
                    own.typmod = column.typmod;
                    own
                }
                KeySource::Expression { text, .. } => self.index_expression(table, text)?,
            };
            if let Some(places) = &places {
                let all: Option<ColumnMap> =
                    part.uses.iter().map(|at| places[*at].map(Some)).collect();
                if all.is_none() {
                    return Err(Error::internal("a partition key of a dropped column"));
                }
                let places: Vec<_> = places.iter().map(|at| at.unwrap_or(0)).collect();
                move_columns(&mut expr, &places);
            }
            keys.push(expr);
        }
        Ok(Level {
            types: key.types(table),
            programs: keys.iter().map(compile).collect(),
            keys,
            bounds,
            table: table.clone(),
        })
    }

    /// What a table asks of its rows for being a partition.
    ///
    /// # Errors
    /// What binding keys gives.
    pub fn partition_check(&mut self, table: &Arc<Table>) -> Result<Option<Rc<PartitionCheck>>> {
        self.check_of_parent(table, table)
    }

    /// The same for one that is to be a partition of another: what that asks of its own rows.
    ///
    /// # Errors
    /// What binding keys gives.
    pub fn check_of_parent(
        &mut self,
        table: &Arc<Table>,
        parent: &Arc<Table>,
    ) -> Result<Option<Rc<PartitionCheck>>> {
        let mut levels = Vec::new();
        let mut at = parent.clone();
        while let Some(of) = &at.partition_of {
            let catalog = self.cx.catalog;
            let parent = catalog.table_by_oid(of.parent).cloned();
            let parent = parent.ok_or_else(|| Error::internal("a partition of nothing"))?;
            let siblings: Vec<_> = catalog.partitions(&parent).collect();
            let place = siblings.iter().position(|(table, _)| table.oid == at.oid);
            let place = place.ok_or_else(|| Error::internal("a partition that is not listed"))?;
            let bounds = siblings.iter().map(|(_, of)| of.bound.clone()).collect();
            levels.push((
                Rc::new(self.partition_level(table, &parent, bounds)?),
                place,
            ));
            at = parent;
        }
        levels.reverse();
        Ok((!levels.is_empty()).then(|| Rc::new(PartitionCheck { levels })))
    }

    /// What a statement that writes a partitioned table, or one that others inherit from, does with each
    /// leaf.
    pub(super) fn routes(
        &mut self,
        table: &Arc<Table>,
        touch: &Touch,
        conflict: Option<&Conflict>,
    ) -> Result<Option<Rc<Routes>>> {
        let Some(partitions) = self.leaves(table)? else {
            return Ok(None);
        };
        let mut triggers = table.triggers.iter();
        if conflict.is_some_and(|conflict| conflict.set.is_some())
            && triggers.any(|own| own.old_table.is_some() || own.new_table.is_some())
        {
            let what = "ON CONFLICT DO UPDATE of a partitioned table whose triggers name its rows";
            return Err(Error::unsupported(what));
        }
        let mut leaves = Vec::with_capacity(partitions.leaves.len());
        for leaf in &partitions.leaves {
            // A row that moves goes here and comes there.
            let touch = Touch {
                inserts: touch.inserts || !touch.changes.is_empty(),
                deletes: touch.deletes || !touch.changes.is_empty(),
                changes: (touch.changes.iter())
                    .filter_map(|place| leaf.place_of(*place))
                    .collect(),
            };
            let conflict = match conflict {
                None => None,
                Some(conflict) => Some(self.conflict_on(table, leaf, conflict)?),
            };
            leaves.push(Insert {
                target: Target {
                    routes: None,
                    through: Some(Through {
                        table: table.clone(),
                        columns: leaf.columns.clone(),
                    }),
                    ..self.target(leaf.table.clone(), Vec::new(), None, touch)?
                },
                input: Rc::new(Plan::Values(Vec::new())),
                conflict,
            });
        }
        Ok(Some(Rc::new(Routes { partitions, leaves })))
    }

    /// ON CONFLICT for a leaf: its parts of the indexes that are meant.
    fn conflict_on(
        &self,
        table: &Arc<Table>,
        leaf: &Leaf,
        conflict: &Conflict,
    ) -> Result<Conflict> {
        let named = conflict.indexes.iter().flatten();
        let named: Vec<u32> = named.map(|place| table.indexes[*place].oid).collect();
        let mut places = Vec::new();
        for (place, index) in leaf.table.indexes.iter().enumerate() {
            if self
                .indexes_above(&leaf.table, index.oid)
                .iter()
                .any(|oid| named.contains(oid))
            {
                places.push(place);
            }
        }
        if places.len() != named.len() {
            return Err(Error::internal(
                "a partition without an index of its parent",
            ));
        }
        let set = conflict.set.iter().flat_map(|set| &set.columns);
        let set: Vec<_> = set.filter_map(|(place, _)| leaf.place_of(*place)).collect();
        Ok(Conflict {
            indexes: conflict.indexes.is_some().then_some(places),
            set: conflict.set.clone(),
            condition: conflict.condition.clone(),
            sets_keys: leaf.table.key_columns().any(|column| set.contains(&column)),
            old_checks: conflict.old_checks.clone(),
            new_checks: conflict.new_checks.clone(),
        })
    }

    /// The indexes above an index of a partition, of which it is a part.
    pub(super) fn indexes_above(&self, table: &Table, index: u32) -> Vec<u32> {
        let mut above = Vec::new();
        let (mut table, mut index) = (Some(table), index);
        while let Some((at, found)) = table.and_then(|at| Some((at, at.part_above(index)?))) {
            above.push(found);
            index = found;
            let parent = at.partition_of.as_ref().map(|of| of.parent);
            table = parent
                .and_then(|oid| self.cx.catalog.table_by_oid(oid))
                .map(|table| &**table);
        }
        above
    }

    /// The same table with the indexes that the statement may look into.
    pub(super) fn with_trees_seen(&self, table: Arc<Table>) -> Arc<Table> {
        match &self.trees_seen {
            None => table,
            Some(seen) => {
                let mut shown = (*table).clone();
                shown
                    .indexes
                    .retain(|index| index.primary || seen.contains(&index.tree));
                Arc::new(shown)
            }
        }
    }

    /// Binds an expression that a table is to be divided by, as it is written.
    ///
    /// # Errors
    /// What is wrong with it; 42P17 if its value may change.
    pub fn check_partition_key(
        &mut self,
        table: &Arc<Table>,
        node: &pg_query::protobuf::Node,
    ) -> Result<Checked<KeySource>> {
        let checked = self
            .check_index_key(table, node)
            .map_err(|error| match error.message() {
                "functions in index expression must be marked IMMUTABLE" => Error::new(
                    SqlState::of("42P17"),
                    "functions in partition key expression must be marked IMMUTABLE",
                ),
                _ => error,
            })?;
        if checked.columns.is_empty() {
            let message = "cannot use constant expression as partition key";
            return Err(Error::new(SqlState::of("42P17"), message));
        }
        Ok(checked)
    }
}
