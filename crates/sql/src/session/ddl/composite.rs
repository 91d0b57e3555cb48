//! CREATE TYPE … AS and ALTER TYPE of its attributes.
//!
//! # What it leaves out
//! ADD, DROP and ALTER ATTRIBUTE of a type that a stored column has: its values say nothing of the
//! attributes that were there when they were written.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterTableCmd, AlterTableStmt, AlterTableType, ColumnDef, CompositeTypeStmt, DropBehavior,
    RenameStmt,
};

use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::of_type::{check_untyped, tables_of};
use super::table::cut_name;
use catalog::access::must_own;
use catalog::composite::{Attribute, Composite};
use catalog::local::is_local;
use catalog::{Catalog, Object, RelationKind, Table, TypeBody, UserType};
use planner::bind;
use syntax::parser::NodeEnum;
use types::{Category, OwnKind, TypeId};

/// An attribute has at most this number.
const ATTRIBUTES_MAX: usize = 1_600;

fn composite_of(made: &mut UserType) -> Result<&mut Composite> {
    let id = made.id;
    match &mut made.body {
        TypeBody::Composite(composite) => Ok(composite),
        _ => Err(no_composite(id)),
    }
}

fn no_composite(id: TypeId) -> Error {
    let message = format!("{id} is not a composite type");
    Error::new(SqlState::WRONG_OBJECT_TYPE, message)
}

fn no_attribute(name: &str, of: &str) -> Error {
    Error::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{name}\" of relation \"{of}\" does not exist"),
    )
}

fn attribute_exists(name: &str, of: &str) -> Error {
    Error::new(
        SqlState::DUPLICATE_COLUMN,
        format!("column \"{name}\" of relation \"{of}\" already exists"),
    )
}

/// The stored column that has values of a type, or of one that holds such.
fn stored_in(catalog: &Catalog, id: TypeId) -> Option<(&Table, &str)> {
    let tables = catalog.tables.iter().filter(|table| table.kind.has_rows());
    tables.into_iter().find_map(|table| {
        let mut columns = table.columns.iter().filter(|column| !column.dropped);
        let column = columns.find(|column| holds(catalog, column.type_id, id))?;
        Some((&**table, column.name.as_str()))
    })
}

/// 0A000 where values of a type stay that is to lose an attribute with what that is of.
pub(super) fn refuse_stored(catalog: &Catalog, id: TypeId, dropped: &[Object]) -> Result<()> {
    for table in catalog.tables.iter().filter(|table| table.kind.has_rows()) {
        for (place, column) in table.columns.iter().enumerate() {
            let goes = dropped.contains(&Object::Column(table.oid, place))
                || dropped.contains(&Object::Relation(table.oid));
            if !column.dropped && !goes && holds(catalog, column.type_id, id) {
                return Err(Error::unsupported(
                    "dropping the type of an attribute of a type of which values are stored",
                ));
            }
        }
    }
    Ok(())
}

/// Whether values of a type are, or have in them, values of the other.
fn holds(catalog: &Catalog, ty: TypeId, id: TypeId) -> bool {
    let (mut seen, mut next) = (Vec::new(), vec![ty]);
    while let Some(ty) = next.pop() {
        let (ty, _) = catalog.base_type(ty.array_element().unwrap_or(ty));
        let ty = ty.array_element().unwrap_or(ty);
        if ty == id {
            return true;
        }
        if ty.is_composite() && !seen.contains(&ty) {
            seen.push(ty);
            let fields = catalog.fields(ty).unwrap_or_default();
            next.extend(fields.iter().map(|field| field.ty));
        }
        next.extend(ty.range_element().or(ty.multirange_element()));
    }
    false
}

/// 42P16 for a column of a type that has the rows of its own table in it.
pub(super) fn check_not_itself(catalog: &Catalog, table: &Table, ty: TypeId) -> Result<()> {
    match table.row_type() {
        Some(id) if holds(catalog, ty, id) => Err(within_itself(id)),
        _ => Ok(()),
    }
}

fn within_itself(id: TypeId) -> Error {
    let message = format!("composite type {id} cannot be made a member of itself");
    Error::new(SqlState::of("42P16"), message)
}

/// 0A000 for a change of a table's columns where another stores its rows.
pub(super) fn check_rows_unused(catalog: &Catalog, table: &Table) -> Result<()> {
    let stored = table.row_type().and_then(|id| stored_in(catalog, id));
    match stored {
        None => Ok(()),
        Some((user, column)) => Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "cannot alter table \"{}\" because column \"{}.{column}\" uses its row type",
                table.name, user.name
            ),
        )),
    }
}

impl Session {
    /// CREATE TYPE … AS (…).
    pub(in crate::session) fn create_composite(
        &mut self,
        create: &CompositeTypeStmt,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let range = create.typevar.as_ref();
        let range = range.ok_or_else(|| Error::internal("a type without a name"))?;
        let schema = self.creation_schema(&catalog, &range.schemaname)?;
        if is_local(schema) {
            return Err(Error::unsupported("a temporary type"));
        }
        let name = cut_name(&range.relname);
        self.check_type_name(&catalog, schema, &name)?;
        let mut attributes: Vec<Attribute> = Vec::new();
        for node in &create.coldeflist {
            let Some(NodeEnum::ColumnDef(column)) = &node.node else {
                continue;
            };
            let attribute = self.attribute(&catalog, column)?;
            if attributes.iter().any(|known| known.name == attribute.name) {
                return Err(Error::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{}\" specified more than once", attribute.name),
                ));
            }
            attributes.push(attribute);
        }
        let id = TypeId::own(OwnKind::Composite, self.new_oid()?);
        let id = id.ok_or_else(|| Error::unsupported("a type after so many objects"))?;
        let made = UserType {
            id,
            schema,
            name,
            owner: self.owner_of_new(&catalog)?,
            body: TypeBody::Composite(Composite {
                relation: self.new_oid()?,
                attributes,
            }),
        };
        self.insert_type(&catalog, &made)?;
        Ok(tag("CREATE TYPE"))
    }

    fn attribute(&mut self, catalog: &Arc<Catalog>, column: &ColumnDef) -> Result<Attribute> {
        let name = cut_name(&column.colname);
        let type_name = column.type_name.as_ref();
        let type_name = type_name.ok_or_else(|| Error::internal("an attribute of no type"))?;
        let search_path = self.search_path(catalog);
        let cx = self.bind_context("", catalog, &search_path);
        let (ty, typmod) = bind::type_names::resolve(&cx, type_name)?;
        if ty.category() == Category::Pseudo || ty == TypeId::UNKNOWN {
            return Err(Error::new(
                SqlState::of("42P16"),
                format!("column \"{name}\" has pseudo-type {ty}"),
            ));
        }
        let collation = match &column.coll_clause {
            Some(clause) => {
                let (base, _) = catalog.base_type(ty);
                self.given_collation("", catalog, clause, base)?
            }
            None => 0,
        };
        self.may_use_type(catalog, ty)?;
        Ok(Attribute {
            name,
            ty,
            typmod,
            collation,
        })
    }

    /// The composite type that ALTER TYPE … ATTRIBUTE names, locked and as it is now.
    fn altered_composite(&mut self, names: &[String]) -> Result<(Arc<Catalog>, UserType)> {
        let catalog = self.current_catalog()?;
        let found = self.type_of_names(&catalog, names)?;
        let shown = names.join(".");
        match found {
            Some(id) if id.own_kind() == Some(OwnKind::Row) => {
                let name = names.last().map_or("", String::as_str);
                Err(Error::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("\"{name}\" is not a composite type"),
                ))
            }
            Some(id) if id.own_kind() == Some(OwnKind::Composite) => {
                if self.must_own_type(&catalog, id).is_err() {
                    let name = names.last().map_or("", String::as_str);
                    return Err(must_own("table", name));
                }
                self.altered_type(names)
            }
            _ => Err(Error::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{shown}\" does not exist"),
            )),
        }
    }

    /// ALTER TYPE … ADD, DROP and ALTER ATTRIBUTE.
    pub(in crate::session) fn alter_composite(
        &mut self,
        alter: &AlterTableStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let names = range_names(alter.relation.as_ref())?;
        let (catalog, old) = self.altered_composite(&names)?;
        let mut new = old.clone();
        let commands = alter.cmds.iter().filter_map(|node| match &node.node {
            Some(NodeEnum::AlterTableCmd(command)) => Some(&**command),
            _ => None,
        });
        for command in commands.clone() {
            let cascade = command.behavior == DropBehavior::DropCascade as i32;
            check_untyped(&catalog, old.id, cascade)?;
            self.alter_attribute(&catalog, command, &mut new, sink)?;
        }
        if new != old {
            self.put_type(&catalog, &old, &new)?;
            for command in commands {
                self.alter_tables_of(old.id, command, sink)?;
            }
        }
        Ok(tag("ALTER TYPE"))
    }

    fn alter_attribute(
        &mut self,
        catalog: &Arc<Catalog>,
        command: &AlterTableCmd,
        new: &mut UserType,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (id, of) = (new.id, new.name.clone());
        let definition = match command.def.as_ref().and_then(|node| node.node.as_ref()) {
            Some(NodeEnum::ColumnDef(column)) => Some(&**column),
            _ => None,
        };
        let kind = AlterTableType::try_from(command.subtype);
        let place = {
            let attributes = &composite_of(new)?.attributes;
            let mut places = attributes.iter();
            places.position(|known| known.name == command.name && !known.name.is_empty())
        };
        match (kind, definition) {
            (Ok(AlterTableType::AtAddColumn), Some(column)) => {
                let attribute = self.attribute(catalog, column)?;
                if holds(catalog, attribute.ty, id) {
                    return Err(within_itself(id));
                }
                self.check_unstored(catalog, id)?;
                let attributes = &mut composite_of(new)?.attributes;
                if attributes.iter().any(|known| known.name == attribute.name) {
                    return Err(attribute_exists(&attribute.name, &of));
                }
                if attributes.len() >= ATTRIBUTES_MAX {
                    let message = format!("tables can have at most {ATTRIBUTES_MAX} columns");
                    return Err(Error::new(SqlState::of("54011"), message));
                }
                attributes.push(attribute);
                Ok(())
            }
            (Ok(AlterTableType::AtDropColumn), _) => match place {
                Some(place) => {
                    self.check_unstored(catalog, id)?;
                    composite_of(new)?.attributes[place].name.clear();
                    Ok(())
                }
                None if command.missing_ok => {
                    let missing = no_attribute(&command.name, &of);
                    let message = format!("{}, skipping", missing.message());
                    let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
                    self.notice(NoticeSeverity::Notice, body, sink)
                }
                None => Err(no_attribute(&command.name, &of)),
            },
            (Ok(AlterTableType::AtAlterColumnType), Some(column)) => {
                let place = place.ok_or_else(|| no_attribute(&command.name, &of))?;
                let column = ColumnDef {
                    colname: command.name.clone(),
                    ..column.clone()
                };
                let attribute = self.attribute(catalog, &column)?;
                self.check_unstored(catalog, id)?;
                composite_of(new)?.attributes[place] = attribute;
                Ok(())
            }
            _ => Err(Error::unsupported("this action of ALTER TYPE")),
        }
    }

    /// 0A000 for a type of which values are stored, or that something else was made for.
    fn check_unstored(&mut self, catalog: &Arc<Catalog>, id: TypeId) -> Result<()> {
        if let Some((table, column)) = stored_in(catalog, id) {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "cannot alter type \"{}\" because column \"{}.{column}\" uses it",
                    catalog.own_type_name(id).map_or("", |found| found.1),
                    table.name
                ),
            ));
        }
        let is_it = |object: Object| match object {
            Object::Type(other) => other == id || other.array_element() == Some(id),
            _ => false,
        };
        let is_typed = |oid: u32| {
            let table = catalog.table_by_oid(oid);
            table.is_some_and(|table| table.of_type == id)
        };
        let of_type = |object: Object| match object {
            Object::Relation(oid) if is_typed(oid) => true,
            Object::Column(oid, _) | Object::Relation(oid) => {
                catalog.composite_of_relation(oid).is_some()
            }
            _ => false,
        };
        let users = catalog.dependencies().into_iter();
        let users = users.filter(|edge| is_it(edge.referenced));
        let mut users = users.filter(|edge| !of_type(edge.dependent));
        let by_text = users.any(|edge| {
            matches!(
                edge.dependent,
                Object::Relation(_)
                    | Object::Column(..)
                    | Object::Default(..)
                    | Object::Constraint(_)
                    | Object::Policy(_)
            )
        });
        match by_text {
            true => Err(Error::unsupported(
                "changing the attributes of a type that a relation names",
            )),
            false => Ok(()),
        }
    }

    /// ALTER TYPE … RENAME ATTRIBUTE.
    pub(super) fn rename_attribute(&mut self, rename: &RenameStmt) -> Result<CommandTag> {
        let names = range_names(rename.relation.as_ref())?;
        let (catalog, old) = self.altered_composite(&names)?;
        let cascade = rename.behavior == DropBehavior::DropCascade as i32;
        check_untyped(&catalog, old.id, cascade)?;
        let mut new = old.clone();
        let name = cut_name(&rename.newname);
        let attributes = &mut composite_of(&mut new)?.attributes;
        let place = attributes
            .iter()
            .position(|known| known.name == rename.subname && !known.name.is_empty());
        let Some(place) = place else {
            return Err(Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{}\" does not exist", rename.subname),
            ));
        };
        if attributes.iter().any(|known| known.name == name) {
            return Err(attribute_exists(&name, &old.name));
        }
        attributes[place].name.clone_from(&name);
        self.put_type(&catalog, &old, &new)?;
        for table in tables_of(&*self.current_catalog()?, old.id) {
            self.lock_typed(&table)?;
            let (_, table) = self.own_table(table.oid)?;
            let names = (rename.subname.as_str(), name.as_str());
            self.rename_with_type(&table, names)?;
        }
        Ok(tag("ALTER TYPE"))
    }

    /// Holds the type of a relation's rows: the relation stays until the transaction ends.
    pub(super) fn hold_rows(&mut self, catalog: &Catalog, id: TypeId) -> Result<()> {
        match catalog.table_of_rows(id).cloned() {
            Some(table) if table.kind != RelationKind::System => {
                self.lock_mode(&table, base::engine::TableLock::AccessShare)
            }
            _ => Ok(()),
        }
    }
}

fn range_names(range: Option<&pg_query::protobuf::RangeVar>) -> Result<Vec<String>> {
    let range = range.ok_or_else(|| Error::internal("ALTER TYPE of no type"))?;
    let names = [&range.schemaname, &range.relname];
    let given = names.into_iter().filter(|name| !name.is_empty());
    Ok(given.cloned().collect())
}
