//! What foreign keys ask of whoever writes a table: settled when a statement is planned.
//!
//! ```text
//! update p set k = 8      tables: p, c      link: c.k refers to p.k, by p's unique index over k
//! ```
//! Rules hold the tables that a statement can reach, the foreign keys between them as [`Link`]s, and
//! the programs of constraints and defaults.

use std::rc::Rc;
use std::sync::Arc;

use super::entries::EntryRule;
use super::partition::Partitions;
use super::program::Program;
use super::trigger::Triggers;
use catalog::{ForeignKey, Index, Table};
use types::Datum;

/// All that writing one table can set off.
#[derive(Debug, Default)]
pub struct Rules {
    /// The tables that can be reached; the one that the statement writes is the first.
    pub tables: Vec<RuleTable>,
    /// The foreign keys between them.
    pub links: Vec<Link>,
}

/// A table that can be reached.
#[derive(Debug)]
pub struct RuleTable {
    /// The table.
    pub table: Arc<Table>,
    /// Its generated columns, where its rows may be changed.
    pub generated: Vec<(usize, Program)>,
    /// Its CHECK constraints, likewise.
    pub checks: Vec<(String, Program)>,
    /// What it asks of its rows for being a partition, likewise.
    pub partition_check: Option<Rc<super::partition::PartitionCheck>>,
    /// How entries of its computed indexes are made, likewise.
    pub entries: Rc<[EntryRule]>,
    /// Its triggers, likewise.
    pub triggers: Option<Rc<Triggers>>,
    /// The defaults that SET DEFAULT needs, by column.
    pub defaults: Vec<(usize, Program)>,
    /// The links by which its rows refer to others, in the order of their making.
    pub refers: Vec<usize>,
    /// The links by which others refer to its rows, likewise.
    pub referred: Vec<usize>,
}

/// A foreign key.
#[derive(Debug)]
pub struct Link {
    /// As the catalog has it.
    pub key: ForeignKey,
    /// The table that refers, by its place in the rules.
    pub child: usize,
    /// The table that is referred to.
    pub parent: usize,
    /// The place of the unique index over the columns referred to.
    pub index: usize,
    /// The columns, in the constraint's order.
    pub columns: Vec<LinkColumn>,
    /// The table whose rows leave: the one that is referred to, or a partition of it.
    pub left: Arc<Table>,
    /// Where the rows of a partitioned table that is referred to are.
    pub partitions: Option<ReferencedPartitions>,
    /// What messages about rows that leave name.
    pub named: Named,
    /// The place of the link by which a row leaves a partition for another one: that of the whole.
    pub whole: Option<usize>,
}

/// The partitions of a table that is referred to.
#[derive(Debug)]
pub struct ReferencedPartitions {
    /// They.
    pub partitions: Rc<Partitions>,
    /// The place, in each leaf, of its part of the unique index.
    pub indexes: Vec<usize>,
}

/// The foreign key that one of a partition is a part of, or itself.
#[derive(Debug)]
pub struct Named {
    /// The table that has it.
    pub table: Arc<Table>,
    /// The columns there.
    pub columns: Vec<usize>,
    /// What it is called where rows leave.
    pub name: String,
    /// That table's triggers of statements that change its rows, if the foreign key is a part.
    pub triggers: Option<Rc<Triggers>>,
}

/// A pair of columns of a foreign key.
#[derive(Debug)]
pub struct LinkColumn {
    /// The place in the table that refers.
    pub child: usize,
    /// The place in the table that is referred to.
    pub parent: usize,
    /// The place in the table whose rows leave.
    pub left: usize,
    /// How the values compare.
    pub compare: Compare,
}

/// How the values of two columns are compared.
#[derive(Debug)]
pub enum Compare {
    /// They are of one type.
    Same,
    /// They are integers of different widths.
    Integers,
    /// This makes one of the parent's type out of one of the child's, which is the whole row.
    Cast(Program),
}

impl Link {
    /// The values of the child's columns in a row of it.
    pub fn child_values(&self, row: &[Datum]) -> Vec<Datum> {
        let values = self.columns.iter().map(|column| &row[column.child]);
        values.cloned().collect()
    }

    /// The values that are referred to in a row that leaves.
    pub fn left_values(&self, row: &[Datum]) -> Vec<Datum> {
        let values = self.columns.iter().map(|column| &row[column.left]);
        values.cloned().collect()
    }

    /// The unique index over the columns referred to, and its table.
    pub fn parent_index<'r>(&self, rules: &'r Rules) -> (&'r Table, &'r Index) {
        let table = &rules.tables[self.parent].table;
        (table, &table.indexes[self.index])
    }
}
