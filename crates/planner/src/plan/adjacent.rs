//! Which plans give rows that are equal in some columns one behind the other, so that grouping by these
//! needs no table of groups.
//!
//! ```text
//! select l_orderkey, sum(l_quantity) from lineitem group by l_orderkey
//! ```
//! A table lies in the order of its primary key, here `(l_orderkey, l_linenumber)`, and an index in that
//! of its columns: rows with equal values in the first ones are neighbours.
//!
//! # What it leaves out
//! Joins, which lose the order where their rows do not fit in memory, sorts, and partitioned tables.

use super::{Plan, Scan};

impl Plan {
    /// The columns of its input by which an aggregation tells groups apart, if the rows of each are
    /// neighbours there.
    pub fn sorted_groups(&self) -> Option<Vec<usize>> {
        let Plan::Aggregate {
            input,
            groups,
            sets,
            ..
        } = self
        else {
            return None;
        };
        if groups.is_empty() || sets.len() != 1 || sets[0].columns.len() != groups.len() {
            return None;
        }
        let columns = groups.iter().map(|group| group.0.as_column());
        let columns: Option<Vec<usize>> = columns.collect();
        columns.filter(|columns| input.has_adjacent(columns))
    }

    /// Whether rows with equal values in these columns stand one behind the other.
    fn has_adjacent(&self, columns: &[usize]) -> bool {
        match self {
            Plan::Scan(scan) => {
                let columns = columns.iter().map(|place| scan.table_column(*place));
                let columns: Option<Vec<_>> = columns.collect();
                columns.is_some_and(|columns| scan.has_adjacent(&columns))
            }
            Plan::Filter(input, _) | Plan::Once(input, _) | Plan::Trim(input, _) => {
                input.has_adjacent(columns)
            }
            Plan::Project(input, programs) => {
                let columns = columns.iter();
                let of_input = columns.map(|column| programs.get(*column)?.as_column());
                let of_input: Option<Vec<_>> = of_input.collect();
                of_input.is_some_and(|columns| input.has_adjacent(&columns))
            }
            _ => false,
        }
    }
}

impl Scan {
    fn has_adjacent(&self, columns: &[usize]) -> bool {
        let Some(index) = self.by_index() else {
            return false;
        };
        let is_computed = self.inverted.is_some() || index.computed.is_some();
        if is_computed || self.partitions.is_some() || !self.alternatives.is_empty() {
            return false;
        }
        let keys = index.columns.iter().map(|column| column.column);
        let leading = keys.enumerate();
        let leading = leading
            .take_while(|(place, key)| self.access.is_fixed(*place) || columns.contains(key));
        let leading: Vec<usize> = leading.map(|(_, key)| key).collect();
        // What has the whole key is alone.
        let is_whole_key = index.primary && leading.len() == index.columns.len();
        is_whole_key || columns.iter().all(|column| leading.contains(column))
    }
}
