//! ALTER COLUMN … ADD GENERATED AS IDENTITY, SET …, and DROP IDENTITY.

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterTableCmd, Constraint, Node};

use super::super::super::{Session, Sink};
use super::super::sequence::wrong_type;
use super::column_place;
use catalog::{store, Catalog, Column, Identity, Object, Table};
use syntax::parser::NodeEnum;
use types::TypeId;

impl Session {
    /// ADD GENERATED … AS IDENTITY.
    pub(super) fn alter_add_identity(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        table: &Arc<Table>,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let place = column_place(table, &command.name)?;
        let Some(NodeEnum::Constraint(constraint)) =
            command.def.as_ref().and_then(|node| node.node.as_ref())
        else {
            return Err(Error::internal("an identity without a definition"));
        };
        let column = &table.columns[place];
        if !matches!(column.type_id, TypeId::INT2 | TypeId::INT4 | TypeId::INT8) {
            return Err(wrong_type(true));
        }
        let refused = |what: &str| Err(state(table, column, what));
        if !column.not_null {
            return refused("must be declared NOT NULL before identity can be added");
        }
        if column.identity != Identity::None {
            return refused("is already an identity column");
        }
        if column.default.is_some() {
            return refused("already has a default value");
        }
        let options: &[Node] = &constraint.options;
        let sequence =
            self.column_sequence(text, catalog, table, place, Some(options), |_| false)?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        store::insert_table(open.txn.as_mut(), catalog, &sequence)?;
        self.changed_catalog();
        let mut new = (**table).clone();
        let made = &mut new.columns[place];
        made.identity = identity_of(constraint);
        made.default_uses = vec![sequence.oid];
        self.put_table(&new)
    }

    /// SET GENERATED …, and options of the sequence.
    pub(super) fn alter_set_identity(
        &mut self,
        text: &str,
        table: &Arc<Table>,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let place = column_place(table, &command.name)?;
        let column = &table.columns[place];
        if column.identity == Identity::None {
            return Err(state(table, column, "is not an identity column"));
        }
        let Some(NodeEnum::List(list)) = command.def.as_ref().and_then(|node| node.node.as_ref())
        else {
            return Err(Error::internal("no options of an identity column"));
        };
        let is_kind = |node: &&Node| matches!(&node.node, Some(NodeEnum::DefElem(option)) if option.defname == "generated");
        let (kinds, options): (Vec<&Node>, Vec<&Node>) = list.items.iter().partition(is_kind);
        if kinds.len() > 1 {
            let message = "conflicting or redundant options";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        if !options.is_empty() {
            let options: Vec<Node> = options.into_iter().cloned().collect();
            self.change_identity_sequence(text, table, place, &options)?;
        }
        let kind = kinds.first().and_then(|node| match &node.node {
            Some(NodeEnum::DefElem(option)) => option.arg.as_ref()?.node.as_ref(),
            _ => None,
        });
        let Some(NodeEnum::Integer(kind)) = kind else {
            return Ok(());
        };
        let mut new = (**table).clone();
        new.columns[place].identity = match u8::try_from(kind.ival) {
            Ok(b'a') => Identity::Always,
            _ => Identity::ByDefault,
        };
        self.put_table(&new)
    }

    /// Changes the options of an identity column's sequence.
    pub(super) fn change_identity_sequence(
        &mut self,
        text: &str,
        table: &Table,
        place: usize,
        options: &[Node],
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let Some(sequence) = sequence_of(&catalog, table, place) else {
            return Ok(());
        };
        self.lock_mode(&sequence, TableLock::ShareRowExclusive)?;
        let catalog = self.current_catalog()?;
        let sequence = sequence_of(&catalog, table, place).unwrap_or(sequence);
        self.change_sequence(text, &sequence, options, true)?;
        self.changed_catalog();
        Ok(())
    }

    /// DROP IDENTITY.
    pub(super) fn alter_drop_identity(
        &mut self,
        table: &Arc<Table>,
        command: &AlterTableCmd,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let place = column_place(table, &command.name)?;
        let column = &table.columns[place];
        if column.identity == Identity::None {
            let error = state(table, column, "is not an identity column");
            if !command.missing_ok {
                return Err(error);
            }
            return self.skip(error.message(), sink);
        }
        let catalog = self.current_catalog()?;
        let mut new = (**table).clone();
        let changed = &mut new.columns[place];
        changed.identity = Identity::None;
        changed.default_uses.clear();
        self.put_table(&new)?;
        let Some(sequence) = sequence_of(&catalog, table, place) else {
            return Ok(());
        };
        // It belongs to the column no longer, so that it can be dropped by itself.
        let mut freed = (*sequence).clone();
        if let Some(sequence) = &mut freed.sequence {
            sequence.owner = None;
        }
        self.put_table(&freed)?;
        let roots = vec![Object::Relation(sequence.oid)];
        self.drop_objects(|_| Ok(roots.clone()), false, sink)
    }
}

fn identity_of(constraint: &Constraint) -> Identity {
    match constraint.generated_when.as_str() {
        "a" => Identity::Always,
        _ => Identity::ByDefault,
    }
}

fn sequence_of(catalog: &Catalog, table: &Table, place: usize) -> Option<Arc<Table>> {
    let mut tables = catalog.tables.iter();
    let found = tables.find(|owned| {
        let owner = owned.sequence.as_ref().and_then(|sequence| sequence.owner);
        owner.is_some_and(|owner| {
            owner.identity && owner.table == table.oid && owner.column == place
        })
    });
    found.cloned()
}

fn state(table: &Table, column: &Column, what: &str) -> Error {
    Error::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!(
            "column \"{}\" of relation \"{}\" {what}",
            column.name, table.name
        ),
    )
}
