//! Typed tables: CREATE TABLE … OF a composite type, and ALTER TABLE … OF and NOT OF.
//!
//! ```text
//! create type pair as (a int, b text)
//! create table t of pair (a primary key)       columns a and b, and what is said of them here
//! alter type pair add attribute c int cascade  t has c too; without CASCADE it is 2BP01
//! ```
//! Its columns are its type's, so they change with that alone, and the table goes with the type.

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterTableCmd, AlterTableType as Type, TypeName};

use super::super::{Session, Sink};
use catalog::composite::Field;
use catalog::{collation, Catalog, Column, Table};
use planner::bind;
use syntax::parser::NodeEnum;
use types::{OwnKind, TypeId};

/// # Errors
/// 42809 for an action that a typed table does not take.
pub(super) fn refuse_typed(table: &Table, command: &AlterTableCmd) -> Result<()> {
    let what = match Type::try_from(command.subtype) {
        _ if table.of_type == TypeId::NONE => return Ok(()),
        Ok(Type::AtAddColumn) => "add column to",
        Ok(Type::AtDropColumn) => "drop column from",
        Ok(Type::AtAlterColumnType) => "alter column type of",
        Ok(Type::AtAddInherit | Type::AtDropInherit) => "change inheritance of",
        _ => return Ok(()),
    };
    Err(refused(what))
}

/// 42809: what cannot be done to a typed table.
pub(super) fn refused(what: &str) -> Error {
    Error::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("cannot {what} typed table"),
    )
}

/// The tables of a composite type.
pub(super) fn tables_of(catalog: &Catalog, id: TypeId) -> Vec<Arc<Table>> {
    let tables = catalog.tables.iter();
    let typed = tables.filter(|table| table.of_type == id);
    typed.cloned().collect()
}

/// # Errors
/// 2BP01 for a type of which there are typed tables, unless they are to change with it.
pub(super) fn check_untyped(catalog: &Catalog, id: TypeId, cascade: bool) -> Result<()> {
    if cascade || tables_of(catalog, id).is_empty() {
        return Ok(());
    }
    let name = catalog.own_type_name(id).map_or("", |found| found.1);
    let message = format!("cannot alter type \"{name}\" because it is the type of a typed table");
    let hint = "Use ALTER ... CASCADE to alter the typed tables too.";
    Err(Error::new(SqlState::of("2BP01"), message).with_hint(hint))
}

/// # Errors
/// 42804 for a table whose columns are not those of a type.
fn check_columns(table: &Table, fields: &[Field]) -> Result<()> {
    let wrong = |message: String| Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
    let collation = |given: u32, ty: TypeId| match given {
        0 => collation::of_type(ty),
        given => given,
    };
    let mut columns = table.columns.iter().filter(|column| !column.dropped);
    for field in fields {
        let name = &field.name;
        let Some(column) = columns.next() else {
            return wrong(format!("table is missing column \"{name}\""));
        };
        if column.name != *name {
            return wrong(format!(
                "table has column \"{}\" where type requires \"{name}\"",
                column.name
            ));
        }
        let own = (column.type_id, column.typmod, column.domain);
        let same = own == (field.ty, field.typmod, field.domain);
        if !same
            || collation(column.collation, column.type_id) != collation(field.collation, field.ty)
        {
            return wrong(format!(
                "table \"{}\" has different type for column \"{name}\"",
                table.name
            ));
        }
    }
    match columns.next() {
        None => Ok(()),
        Some(extra) => wrong(format!("table has extra column \"{}\"", extra.name)),
    }
}

impl Session {
    /// The composite type that OF names.
    ///
    /// # Errors
    /// 42704; 42809 for any other type, and the type of another table's rows.
    fn named_of_type(
        &mut self,
        catalog: &Arc<Catalog>,
        name: &TypeName,
    ) -> Result<(TypeId, Vec<Field>)> {
        let search_path = self.search_path(catalog);
        let cx = self.bind_context("", catalog, &search_path);
        let (id, _) = bind::type_names::resolve(&cx, name)?;
        match catalog.fields(id) {
            Some(fields) if id.own_kind() == Some(OwnKind::Composite) => Ok((id, fields)),
            _ => Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("type {id} is not a composite type"),
            )),
        }
    }

    /// Gives a new table the columns of the type that it is to be OF.
    pub(super) fn add_columns_of_type(
        &mut self,
        catalog: &Arc<Catalog>,
        name: &TypeName,
        table: &mut Table,
    ) -> Result<()> {
        let (id, fields) = self.named_of_type(catalog, name)?;
        self.may_use_type(catalog, id)?;
        let columns = fields.into_iter().map(|field| Column {
            name: field.name,
            type_id: field.ty,
            typmod: field.typmod,
            domain: field.domain,
            collation: field.collation,
            ..Column::default()
        });
        table.columns.extend(columns);
        table.of_type = id;
        Ok(())
    }

    /// ALTER TABLE … OF.
    pub(super) fn alter_of(
        &mut self,
        catalog: &Arc<Catalog>,
        table: &Table,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let name = match command.def.as_ref().and_then(|node| node.node.as_ref()) {
            Some(NodeEnum::TypeName(name)) => name,
            _ => return Err(Error::internal("OF without a type")),
        };
        let (id, fields) = self.named_of_type(catalog, name)?;
        self.may_use_type(catalog, id)?;
        if !table.inherits_from().is_empty() || table.partition_of.is_some() {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                "typed tables cannot inherit",
            ));
        }
        check_columns(table, &fields)?;
        let mut new = table.clone();
        new.of_type = id;
        self.put_table(&new)
    }

    /// ALTER TABLE … NOT OF.
    pub(super) fn alter_not_of(&mut self, table: &Table) -> Result<()> {
        if table.of_type == TypeId::NONE {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a typed table", table.name),
            ));
        }
        let mut new = table.clone();
        new.of_type = TypeId::NONE;
        self.put_table(&new)
    }

    /// Has the tables of a type follow a change of its attributes.
    pub(super) fn alter_tables_of(
        &mut self,
        id: TypeId,
        command: &AlterTableCmd,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        for table in tables_of(&*self.current_catalog()?, id) {
            self.lock_typed(&table)?;
            self.alter_by_type(table.oid, command, sink)?;
        }
        Ok(())
    }

    /// Locks a table that follows its type against everyone.
    pub(super) fn lock_typed(&mut self, table: &Table) -> Result<()> {
        self.must_own_relation(table)?;
        self.lock_mode(table, TableLock::AccessExclusive)?;
        self.refuse_in_use(table, "ALTER TABLE")
    }
}
