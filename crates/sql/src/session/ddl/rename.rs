//! ALTER … RENAME TO and SET SCHEMA of whole relations and schemas, and columns of views; columns
//! and constraints of tables are [`super::alter`]'s.
//!
//! Whatever the catalog keeps as text names relations by oid and their columns as they were called
//! when it was made ([`catalog::view`]), so that nothing else has to change.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterObjectSchemaStmt, ObjectType, RangeVar, RenameStmt};

use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::alter::Part;
use super::routine::is_routine;
use super::table::cut_name;
use catalog::access::must_own;
use catalog::store::{self, duplicate_relation, NameClass};
use catalog::{Catalog, RelationKind, RelationRef, Table};
use syntax::parser::NodeEnum;

/// The kinds of relations that ALTER names, with their tags.
fn kind_of(object: Result<ObjectType, ()>) -> Option<(&'static str, &'static str)> {
    Some(match object {
        Ok(ObjectType::ObjectTable) => ("table", "ALTER TABLE"),
        Ok(ObjectType::ObjectView) => ("view", "ALTER VIEW"),
        Ok(ObjectType::ObjectMatview) => ("materialized view", "ALTER MATERIALIZED VIEW"),
        Ok(ObjectType::ObjectSequence) => ("sequence", "ALTER SEQUENCE"),
        Ok(ObjectType::ObjectIndex) => ("index", "ALTER INDEX"),
        _ => return None,
    })
}

/// The part of a table that has another name now, if that is what is renamed.
fn part_of_table(object: Result<ObjectType, ()>, of: Result<ObjectType, ()>) -> Option<Part> {
    match (object, of) {
        (Ok(ObjectType::ObjectTabconstraint), _) => Some(Part::Constraint),
        (Ok(ObjectType::ObjectColumn), Ok(ObjectType::ObjectTable)) => Some(Part::Column),
        _ => None,
    }
}

impl Session {
    pub(in crate::session) fn rename(
        &mut self,
        rename: &RenameStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let object = ObjectType::try_from(rename.rename_type).map_err(|_| ());
        if object == Ok(ObjectType::ObjectSchema) {
            return self.rename_schema(&rename.subname, &rename.newname);
        }
        let named = rename.object.as_ref().and_then(|node| node.node.as_ref());
        if let (Ok(object), Some(NodeEnum::ObjectWithArgs(named))) = (object, named) {
            if is_routine(object) {
                return self.rename_routine(object, named, &rename.newname);
            }
        }
        match object {
            Ok(ObjectType::ObjectRole) => {
                return self.rename_role(&rename.subname, &rename.newname, sink)
            }
            Ok(ObjectType::ObjectDatabase) => {
                return self.rename_database(&rename.subname, &rename.newname)
            }
            Ok(
                ObjectType::ObjectType | ObjectType::ObjectDomain | ObjectType::ObjectDomconstraint,
            ) => return self.rename_type(rename),
            Ok(ObjectType::ObjectAttribute) => return self.rename_attribute(rename),
            Ok(ObjectType::ObjectCollation) => return self.rename_collation(rename),
            Ok(ObjectType::ObjectStatisticExt) => return self.rename_statistics(rename),
            _ => {}
        }
        let of = ObjectType::try_from(rename.relation_type).map_err(|_| ());
        let range = rename.relation.as_ref();
        if object == Ok(ObjectType::ObjectPolicy) {
            return self.rename_policy(range, &rename.subname, &rename.newname);
        }
        if object == Ok(ObjectType::ObjectRule) {
            return self.rename_rule(range, &rename.subname, &rename.newname);
        }
        if object == Ok(ObjectType::ObjectTrigger) {
            return self.rename_trigger(range, &rename.subname, &rename.newname);
        }
        if let Some(kind) = part_of_table(object, of) {
            let range = range.ok_or_else(|| Error::internal("RENAME of nothing"))?;
            if !self.skip_missing(range, rename.missing_ok, sink)? {
                let table = self.lock_table(range)?;
                let names = (&*rename.subname, &*cut_name(&rename.newname));
                self.rename_part(&table, kind, names, !range.inh)?;
            }
            return Ok(tag("ALTER TABLE"));
        }
        let (noun, done) = match (object, of) {
            (
                Ok(ObjectType::ObjectColumn),
                Ok(ObjectType::ObjectView | ObjectType::ObjectMatview),
            ) => kind_of(of),
            _ => kind_of(object),
        }
        .ok_or_else(|| Error::unsupported("ALTER … RENAME of this kind of object"))?;
        let range = range.ok_or_else(|| Error::internal("RENAME of nothing"))?;
        if self.skip_missing(range, rename.missing_ok, sink)? {
            return Ok(tag(done));
        }
        if object == Ok(ObjectType::ObjectColumn) {
            self.rename_view_column(range, noun, &rename.subname, &rename.newname)?;
            return Ok(tag(done));
        }
        self.rename_relation(range, noun, &cut_name(&rename.newname))?;
        Ok(tag(done))
    }

    /// Whether IF EXISTS ends the statement here.
    pub(super) fn skip_missing(
        &mut self,
        range: &RangeVar,
        missing_ok: bool,
        sink: &mut dyn Sink,
    ) -> Result<bool> {
        if !missing_ok || self.find_range(range)?.is_some() {
            return Ok(false);
        }
        let message = format!("relation \"{}\" does not exist, skipping", range.relname);
        let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
        self.notice(NoticeSeverity::Notice, body, sink)?;
        Ok(true)
    }

    /// The relation that ALTER names, locked: its table, and the index if it is one.
    fn altered(&mut self, range: &RangeVar, noun: &str) -> Result<(Arc<Table>, Option<usize>)> {
        loop {
            let catalog = self.current_catalog()?;
            let (place, index) = match self.find_range(range)? {
                Some(RelationRef::Table(place)) => (place, None),
                Some(RelationRef::Index(place, index)) => (place, Some(index)),
                None => {
                    return Err(Error::new(
                        SqlState::UNDEFINED_TABLE,
                        format!(
                            "relation \"{}\" does not exist",
                            planner::bind::qualified(range)
                        ),
                    ))
                }
            };
            let table = catalog.tables[place].clone();
            if table.kind == RelationKind::System {
                return Err(super::system_table(&table.name));
            }
            let own = match index {
                Some(_) => "index",
                None => table.kind.noun(),
            };
            // ALTER TABLE may name any of them.
            if noun != "table" && noun != own {
                let article = if noun == "index" { "an" } else { "a" };
                return Err(Error::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("\"{}\" is not {article} {noun}", range.relname),
                ));
            }
            if let Some(index) = index {
                self.must_own_index(&table, &table.indexes[index])?;
            }
            self.lock_exclusively(&table)?;
            self.forget_own_catalog();
            let again = self.current_catalog()?;
            if again
                .table_by_oid(table.oid)
                .is_some_and(|now| **now == *table)
            {
                return Ok((table, index));
            }
        }
    }

    fn rename_relation(&mut self, range: &RangeVar, noun: &str, name: &str) -> Result<()> {
        let (table, index) = self.altered(range, noun)?;
        let catalog = self.current_catalog()?;
        self.may_create_in(&catalog, table.schema)?;
        if catalog.relation(table.schema, name).is_some() {
            return Err(duplicate_relation(name));
        }
        let mut new = (*table).clone();
        if index.is_none() && matches!(table.kind, RelationKind::Table | RelationKind::Partitioned)
        {
            self.restate(&table, &mut new, None)?;
        }
        let (old, oid) = match index {
            None => (std::mem::replace(&mut new.name, name.to_owned()), new.oid),
            Some(index) => {
                let index = &mut new.indexes[index];
                (
                    std::mem::replace(&mut index.name, name.to_owned()),
                    index.oid,
                )
            }
        };
        if index.is_none() {
            self.restate_policies(&table, &mut new)?;
        }
        let database = catalog.database.oid;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let txn = open.txn.as_mut();
        let class = NameClass::Relation;
        store::free_name(txn, class, database, new.schema, &old)?;
        if !store::claim_name(txn, class, database, new.schema, name, oid)? {
            return Err(duplicate_relation(name));
        }
        store::update_table(txn, database, &new)
    }

    fn rename_view_column(
        &mut self,
        range: &RangeVar,
        noun: &str,
        column: &str,
        name: &str,
    ) -> Result<()> {
        let (view, _) = self.altered(range, noun)?;
        let name = cut_name(name);
        let place = view.column(column).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{column}\" does not exist"),
            )
        })?;
        if view.column(&name).is_some() {
            return Err(Error::new(
                SqlState::DUPLICATE_COLUMN,
                format!(
                    "column \"{name}\" of relation \"{}\" already exists",
                    view.name
                ),
            ));
        }
        let mut new = (*view).clone();
        new.columns[place].name = name;
        let database = self.current_catalog()?.database.oid;
        match &mut self.open {
            Some(open) => store::update_table(open.txn.as_mut(), database, &new),
            None => Err(Error::internal("nothing is open")),
        }
    }

    fn rename_schema(&mut self, name: &str, new: &str) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let new = cut_name(new);
        let schema = catalog.schema(name).ok_or_else(|| no_schema(name))?;
        let taken = || {
            Error::new(
                SqlState::DUPLICATE_SCHEMA,
                format!("schema \"{new}\" already exists"),
            )
        };
        if catalog.schema(&new).is_some() {
            return Err(taken());
        }
        if !catalog.has_privileges_of(self.shared.settings.current_role(), schema.owner) {
            return Err(must_own("schema", name));
        }
        self.may_create_schemas(&catalog)?;
        super::check_schema_name(&new)?;
        let database = catalog.database.oid;
        let renamed = catalog::Schema {
            name: new.clone(),
            ..schema.clone()
        };
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        match store::rename_schema(open.txn.as_mut(), database, schema, &renamed)? {
            true => Ok(tag("ALTER SCHEMA")),
            false => Err(taken()),
        }
    }

    pub(in crate::session) fn set_schema(
        &mut self,
        alter: &AlterObjectSchemaStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let object = ObjectType::try_from(alter.object_type).map_err(|_| ());
        if matches!(
            object,
            Ok(ObjectType::ObjectType | ObjectType::ObjectDomain)
        ) {
            return self.move_type(alter);
        }
        if object == Ok(ObjectType::ObjectExtension) {
            return self.move_extension(alter);
        }
        if object == Ok(ObjectType::ObjectCollation) {
            return self.move_collation(alter);
        }
        if object == Ok(ObjectType::ObjectStatisticExt) {
            return self.move_statistics(alter);
        }
        if object == Ok(ObjectType::ObjectOperator) {
            return self.move_operator(alter);
        }
        let named = alter.object.as_ref().and_then(|node| node.node.as_ref());
        if let (Ok(object), Some(NodeEnum::ObjectWithArgs(named))) = (object, named) {
            if is_routine(object) {
                return self.move_routine(object, named, &alter.newschema);
            }
        }
        let (noun, done) = kind_of(object)
            .ok_or_else(|| Error::unsupported("SET SCHEMA of this kind of object"))?;
        let range = alter.relation.as_ref();
        let range = range.ok_or_else(|| Error::internal("SET SCHEMA of nothing"))?;
        if self.skip_missing(range, alter.missing_ok, sink)? {
            return Ok(tag(done));
        }
        let (table, _) = self.altered(range, noun)?;
        let catalog = self.current_catalog()?;
        let schema = catalog.schema(&alter.newschema);
        let schema = schema.ok_or_else(|| no_schema(&alter.newschema))?.oid;
        if table
            .sequence
            .as_ref()
            .is_some_and(|own| own.owner.is_some())
        {
            return Err(owned_sequence(&catalog, &table));
        }
        self.may_create_in(&catalog, schema)?;
        if table.schema == schema {
            return Ok(tag(done));
        }
        self.move_relation(&catalog, &table, schema)?;
        for owned in &catalog.tables {
            let owner = owned.sequence.as_ref().and_then(|own| own.owner);
            if owner.is_some_and(|owner| owner.table == table.oid) {
                self.lock_exclusively(owned)?;
                self.move_relation(&catalog, owned, schema)?;
            }
        }
        Ok(tag(done))
    }

    pub(super) fn move_relation(
        &mut self,
        catalog: &Catalog,
        table: &Table,
        schema: u32,
    ) -> Result<()> {
        let database = catalog.database.oid;
        let taken = |name: &str| {
            let schema = catalog
                .schema_by_oid(schema)
                .map_or("", |schema| &schema.name);
            Error::new(
                SqlState::DUPLICATE_TABLE,
                format!("relation \"{name}\" already exists in schema \"{schema}\""),
            )
        };
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let txn = open.txn.as_mut();
        let names = std::iter::once((&table.name, table.oid))
            .chain(table.indexes.iter().map(|index| (&index.name, index.oid)));
        for (name, oid) in names {
            let class = NameClass::Relation;
            store::free_name(txn, class, database, table.schema, name)?;
            if !store::claim_name(txn, class, database, schema, name, oid)? {
                return Err(taken(name));
            }
        }
        let moved = Table {
            schema,
            ..table.clone()
        };
        store::update_table(txn, database, &moved)
    }
}

fn no_schema(name: &str) -> Error {
    Error::new(
        SqlState::INVALID_SCHEMA_NAME,
        format!("schema \"{name}\" does not exist"),
    )
}

fn owned_sequence(catalog: &Catalog, sequence: &Table) -> Error {
    let owner = sequence.sequence.as_ref().and_then(|own| own.owner);
    let table = owner.and_then(|owner| catalog.table_by_oid(owner.table));
    Error::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "cannot move an owned sequence into another schema",
    )
    .with_detail(format!(
        "Sequence \"{}\" is linked to table \"{}\".",
        sequence.name,
        table.map_or("", |table| table.name.as_str())
    ))
}
