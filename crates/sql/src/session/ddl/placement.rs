//! In which group a new tree lies.
//!
//! ```text
//! CREATE TABLE t (…)                              where quorate.default_group says
//! CREATE TABLE t (…) WITH (quorate.group = 2)     in group 2
//! CREATE TABLE p PARTITION OF t …                 where t lies, unless it is said of it
//! CREATE INDEX ON t …, TRUNCATE t                 where t lies
//! ALTER TABLE t SET (quorate.group = 3)           moves to group 3
//! ALTER TABLE t RESET (quorate.group)             moves to where quorate.default_group says
//! ```
//! # Invariants
//! - All trees of a table lie in one group, so what an index has follows from the rows where both are.
//!
//! # What it leaves out
//! A table that moves is locked against everybody until the transaction ends, as by SET TABLESPACE, and
//! its rows travel in that transaction, of which a part may write 16 MB (54000). What a session has for
//! itself, and what has no rows, lies in no group that could be chosen.

use std::sync::Arc;

use base::{Error, GroupId, Result, SqlState, TreeId};
use pg_query::protobuf::{AlterTableCmd, DefElem, Node};

use super::super::utility::option_text;
use super::super::Session;
use catalog::local::is_local;
use catalog::{store, Table};
use syntax::parser::NodeEnum;

/// The setting for those of which nothing is said.
const SETTING: &str = "quorate.default_group";

/// Whether a storage parameter says where a table lies.
pub(super) fn is_placement(option: &DefElem) -> bool {
    option.defnamespace == "quorate" && option.defname == "group"
}

/// Whether SET (…) or RESET (…) says where a table is to lie.
pub(super) fn says_placement(command: &AlterTableCmd) -> bool {
    match command.def.as_ref().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::List(options)) => placements(&options.items).next().is_some(),
        _ => false,
    }
}

/// The options that say where a table lies.
fn placements(options: &[Node]) -> impl Iterator<Item = &DefElem> {
    let options = options.iter().filter_map(|option| match &option.node {
        Some(NodeEnum::DefElem(option)) => Some(&**option),
        _ => None,
    });
    options.filter(|option| is_placement(option))
}

/// What WITH (…) or SET (…) says of the group.
///
/// # Errors
/// 22023 when it is no number, or said twice.
pub(super) fn placement_among(options: &[Node]) -> Result<Option<GroupId>> {
    let mut options = placements(options);
    let Some(option) = options.next() else {
        return Ok(None);
    };
    if options.next().is_some() {
        let message = "parameter \"group\" specified more than once";
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let text = option_text(option);
    let number = text.parse().map_err(|_| {
        let message = format!("invalid value for integer option \"quorate.group\": {text}");
        Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
    });
    number.map(|number| Some(GroupId(number)))
}

impl Session {
    /// A new tree for the rows of a table that is made with these options.
    ///
    /// # Errors
    /// 42704 when there is no such group; 22023.
    pub(super) fn new_rows_tree(&self, options: &[Node], parent: Option<&Table>) -> Result<TreeId> {
        let group = match (placement_among(options)?, parent) {
            (Some(group), _) => group,
            (None, Some(parent)) => parent.tree.group(),
            (None, None) => self.default_group()?,
        };
        self.check_group(group)?;
        store::new_tree_in(&*self.shared.engine.sequences, group)
    }

    fn check_group(&self, group: GroupId) -> Result<()> {
        let groups = || self.shared.engine.cluster.groups();
        let is_there = |group| groups().iter().any(|known| known.group == group);
        if group == base::ids::FIRST_GROUP || is_there(group) {
            return Ok(());
        }
        let message = format!("group {group} does not exist");
        let hint = "SELECT quorate.add_group() makes one.";
        Err(Error::new(SqlState::UNDEFINED_OBJECT, message).with_hint(hint))
    }

    /// Puts `new`, another state of the table `old`, into the catalog, with all rows in a group. The
    /// table is locked against everyone.
    ///
    /// # Errors
    /// 42704 when there is no such group; 0A000 for what lies in none.
    pub(super) fn move_table(
        &mut self,
        old: &Arc<Table>,
        new: &Table,
        group: GroupId,
    ) -> Result<()> {
        if is_local(old.schema) || !old.kind.has_rows() {
            return Err(Error::unsupported("moving what lies in no group"));
        }
        self.check_group(group)?;
        let mut new = self.with_new_trees_in(new, group)?;
        self.rewrite(old, &mut new, &[])
    }

    /// The same table over new, empty trees, which lie where its own do.
    pub(super) fn with_new_trees(&self, table: &Table) -> Result<Table> {
        self.with_new_trees_in(table, table.tree.group())
    }

    fn with_new_trees_in(&self, table: &Table, group: GroupId) -> Result<Table> {
        let sequences = &*self.shared.engine.sequences;
        let mut new = table.clone();
        new.tree = store::new_tree_in(sequences, group)?;
        new.long_tree = store::long_tree(&new);
        for index in &mut new.indexes {
            index.tree = match index.primary {
                true => new.tree,
                false => store::new_tree_in(sequences, group)?,
            };
        }
        Ok(new)
    }

    /// A new tree in the group of another.
    pub(super) fn new_tree_beside(&self, tree: TreeId) -> Result<TreeId> {
        store::new_tree_in(&*self.shared.engine.sequences, tree.group())
    }

    /// Where tables go of which nothing is said.
    pub(super) fn default_group(&self) -> Result<GroupId> {
        let (_, text) = self.shared.settings.show(SETTING)?;
        let number = text.parse().map_err(|_| Error::internal(SETTING));
        number.map(GroupId)
    }
}
