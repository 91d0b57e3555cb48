//! CREATE, ALTER and DROP of types of one's own; GRANT, COMMENT and what owners do to all their
//! objects stand with those statements.
//!
//! Whoever changes a type locks its row, and then looks at it anew: another may have changed it while
//! this one waited.

use std::sync::Arc;

use base::engine::RowLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterEnumStmt, AlterObjectSchemaStmt, AlterOwnerStmt, CreateEnumStmt, DropBehavior, DropStmt,
    Node, ObjectType, RenameStmt, TypeName,
};

use super::super::temporary::moved_temporary;
use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::domain::no_domain;
use super::texts;
use catalog::access::{must_own, Guarded};
use catalog::cluster::Address;
use catalog::local::is_local;
use catalog::user_type::{add_label, exists, EnumLabel};
use catalog::{type_store, Catalog, Object, RelationRef, TypeBody, UserType};
use planner::bind::type_names;
use syntax::parser::NodeEnum;
use types::text::NAME_BYTES_MAX;
use types::{own, OwnKind, TypeId};

/// 42704.
fn no_type(names: &[String]) -> Error {
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!("type \"{}\" does not exist", names.join(".")),
    )
}

fn label_exists(label: &str, what: &str) -> Error {
    Error::new(
        SqlState::DUPLICATE_OBJECT,
        format!("enum label \"{label}\" already exists{what}"),
    )
}

fn check_label(label: &str) -> Result<()> {
    if label.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let message = format!("invalid enum label \"{label}\"");
    Err(Error::new(SqlState::of("42602"), message)
        .with_detail(format!("Labels must be {NAME_BYTES_MAX} bytes or less.")))
}

fn no_label(label: &str) -> Error {
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("\"{label}\" is not an existing enum label"),
    )
}

fn label_place(labels: &[EnumLabel], name: &str) -> Result<usize> {
    let place = labels.iter().position(|label| label.name == name);
    place.ok_or_else(|| no_label(name))
}

/// What ALTER says that it did.
fn altered(is_domain: bool) -> CommandTag {
    tag(match is_domain {
        true => "ALTER DOMAIN",
        false => "ALTER TYPE",
    })
}

/// The names of an object in a statement about types.
pub(super) fn names_of(object: Option<&Node>) -> Vec<String> {
    match object.and_then(|object| object.node.as_ref()) {
        Some(NodeEnum::List(list)) => texts(&list.items),
        Some(NodeEnum::TypeName(name)) => texts(&name.names),
        _ => Vec::new(),
    }
}

impl Session {
    /// The type that names mean, with the arrays that they may be.
    pub(super) fn type_of_names(
        &mut self,
        catalog: &Arc<Catalog>,
        names: &[String],
    ) -> Result<Option<TypeId>> {
        let search_path = self.search_path(catalog);
        let cx = self.bind_context("", catalog, &search_path);
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        type_names::find(&cx, &names)
    }

    /// A type of one's own that is to be changed: locked, and as it is now.
    pub(super) fn altered_type(&mut self, names: &[String]) -> Result<(Arc<Catalog>, UserType)> {
        let catalog = self.current_catalog()?;
        let found = self.type_of_names(&catalog, names)?;
        let id = found.ok_or_else(|| no_type(names))?;
        if let Some(element) = id.array_element() {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot alter array type {id}"),
            )
            .with_hint(format!(
                "You can alter type {element}, which will alter the array type as well."
            )));
        }
        if !id.is_own() {
            return Err(must_own("type", &id.to_string()));
        }
        if let Some(table) = catalog.table_of_rows(id) {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{} is a table's row type", table.name),
            )
            .with_hint("Use ALTER TABLE instead."));
        }
        self.must_own_type(&catalog, id)?;
        self.lock_type(&catalog, id, RowLock::Update)?;
        let database = catalog.database.oid;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let newest = type_store::newest(open.txn.as_mut(), database, id)?;
        Ok((catalog, newest.ok_or_else(|| no_type(names))?))
    }

    /// 42501 for a type of another role.
    pub(super) fn must_own_type(&self, catalog: &Catalog, id: TypeId) -> Result<()> {
        let owner = catalog.own_type_name(id);
        let owner = owner.map(|_| catalog.owner_of(Guarded::Type, id.0));
        let role = self.shared.settings.current_role();
        match owner.is_some_and(|owner| catalog.has_privileges_of(role, owner)) {
            true => Ok(()),
            false => Err(must_own("type", &id.to_string())),
        }
    }

    /// Locks the row of a type, or of what the array is over, until the transaction ends.
    pub(super) fn lock_type(
        &mut self,
        catalog: &Catalog,
        id: TypeId,
        strength: RowLock,
    ) -> Result<()> {
        let id = id.array_element().unwrap_or(id);
        if id.own_kind() == Some(OwnKind::Row) {
            return self.hold_rows(catalog, id);
        }
        let Some(open) = self.open.as_mut().filter(|_| id.is_own()) else {
            return Ok(());
        };
        // Whoever has made or changed it in this transaction has it anyway.
        type_store::hold(open.txn.as_mut(), catalog.database.oid, id, strength)
    }

    pub(super) fn put_type(
        &mut self,
        catalog: &Catalog,
        old: &UserType,
        new: &UserType,
    ) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        type_store::update(open.txn.as_mut(), catalog.database.oid, old, new)
    }

    /// 42710 where a type, or the rows of a table, have that name.
    pub(super) fn check_type_name(&self, catalog: &Catalog, schema: u32, name: &str) -> Result<()> {
        let of_rows = match catalog.relation(schema, name) {
            Some(RelationRef::Table(_)) => true,
            Some(RelationRef::Index(..)) | None => false,
        };
        match of_rows || catalog.type_named(schema, name).is_some() {
            true => Err(exists(name)),
            false => Ok(()),
        }
    }

    /// Where a type is made, and under which name.
    pub(super) fn new_type_name(&self, catalog: &Catalog, names: &[Node]) -> Result<(u32, String)> {
        let names = texts(names);
        let schema = match names.as_slice() {
            [.., schema, _] => schema.as_str(),
            _ => "",
        };
        let name = super::table::cut_name(names.last().map_or("", String::as_str));
        let schema = self.creation_schema(catalog, schema)?;
        if is_local(schema) {
            return Err(Error::unsupported("a temporary type"));
        }
        self.check_type_name(catalog, schema, &name)?;
        Ok((schema, name))
    }

    // ---- Enums ----

    /// CREATE TYPE … AS ENUM.
    pub(in crate::session) fn create_enum(
        &mut self,
        create: &CreateEnumStmt,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let (schema, name) = self.new_type_name(&catalog, &create.type_name)?;
        let values = texts(&create.vals);
        let mut labels: Vec<EnumLabel> = Vec::with_capacity(values.len());
        let places = own::places(values.len());
        let id = TypeId::own(OwnKind::Enum, self.new_oid()?);
        let id = id.ok_or_else(|| Error::unsupported("a type after so many objects"))?;
        for ((value, place), order) in values.into_iter().zip(places).zip(1u32..) {
            check_label(&value)?;
            if labels.iter().any(|label| label.name == value) {
                return Err(Error::new(
                    SqlState::UNIQUE_VIOLATION,
                    "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"",
                )
                .with_detail(format!(
                    "Key (enumtypid, enumlabel)=({}, {value}) already exists.",
                    id.0
                )));
            }
            labels.push(EnumLabel {
                oid: self.new_oid()?,
                place,
                order: order as f32,
                name: value,
            });
        }
        let made = UserType {
            id,
            schema,
            name,
            owner: self.owner_of_new(&catalog)?,
            body: TypeBody::Enum(labels),
        };
        self.insert_type(&catalog, &made)?;
        Ok(tag("CREATE TYPE"))
    }

    pub(super) fn owner_of_new(&mut self, catalog: &Catalog) -> Result<u32> {
        Ok(self.current_role(catalog)?.oid)
    }

    pub(super) fn insert_type(&mut self, catalog: &Catalog, made: &UserType) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        type_store::insert(open.txn.as_mut(), catalog, made)
    }

    /// ALTER TYPE … ADD VALUE and RENAME VALUE.
    pub(in crate::session) fn alter_enum(
        &mut self,
        alter: &AlterEnumStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let names = texts(&alter.type_name);
        let catalog = self.current_catalog()?;
        if let Some(other) = self
            .type_of_names(&catalog, &names)?
            .filter(|id| !id.is_enum())
        {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{other} is not an enum"),
            ));
        }
        let (catalog, old) = self.altered_type(&names)?;
        let mut new = old.clone();
        let TypeBody::Enum(labels) = &mut new.body else {
            return Err(Error::internal("no enum"));
        };
        check_label(&alter.new_val)?;
        let is_there = labels.iter().any(|label| label.name == alter.new_val);
        if !alter.old_val.is_empty() {
            let at = label_place(labels, &alter.old_val)?;
            if is_there {
                return Err(label_exists(&alter.new_val, ""));
            }
            labels[at].name.clone_from(&alter.new_val);
            self.put_type(&catalog, &old, &new)?;
            return Ok(tag("ALTER TYPE"));
        }
        if is_there && alter.skip_if_new_val_exists {
            let body = label_exists(&alter.new_val, ", skipping");
            self.notice(NoticeSeverity::Notice, body, sink)?;
            return Ok(tag("ALTER TYPE"));
        }
        if is_there {
            return Err(label_exists(&alter.new_val, ""));
        }
        let at = match alter.new_val_neighbor.as_str() {
            "" => labels.len(),
            other => label_place(labels, other)? + usize::from(alter.new_val_is_after),
        };
        add_label(labels, at, self.new_oid()?, alter.new_val.clone())?;
        let added = (new.id, labels[at].place);
        self.put_type(&catalog, &old, &new)?;
        if let Some(open) = &mut self.open {
            open.new_labels.push(added);
        }
        Ok(tag("ALTER TYPE"))
    }

    // ---- What every type takes ----

    /// ALTER TYPE … RENAME TO.
    pub(super) fn rename_type(&mut self, rename: &RenameStmt) -> Result<CommandTag> {
        let names = names_of(rename.object.as_deref());
        if rename.rename_type == ObjectType::ObjectDomconstraint as i32 {
            return self.rename_domain_check(&names, rename);
        }
        let is_domain = rename.rename_type == ObjectType::ObjectDomain as i32;
        self.check_is_domain(&names, is_domain)?;
        let (catalog, old) = self.altered_type(&names)?;
        let name = super::table::cut_name(&rename.newname);
        self.check_type_name(&catalog, old.schema, &name)?;
        let new = UserType {
            name,
            ..old.clone()
        };
        self.put_type(&catalog, &old, &new)?;
        Ok(altered(is_domain))
    }

    /// 42809 where a domain is to be changed and the type is none.
    fn check_is_domain(&mut self, names: &[String], wanted: bool) -> Result<()> {
        let catalog = self.current_catalog()?;
        match self.type_of_names(&catalog, names)? {
            Some(id) if wanted && id.own_kind() != Some(OwnKind::Domain) => Err(no_domain(id)),
            _ => Ok(()),
        }
    }

    /// ALTER TYPE … SET SCHEMA.
    pub(super) fn move_type(&mut self, alter: &AlterObjectSchemaStmt) -> Result<CommandTag> {
        let names = names_of(alter.object.as_deref());
        let catalog = self.current_catalog()?;
        self.type_of_names(&catalog, &names)?
            .ok_or_else(|| no_type(&names))?;
        let is_domain = alter.object_type == ObjectType::ObjectDomain as i32;
        self.check_is_domain(&names, is_domain)?;
        let schema = self.creation_schema(&catalog, &alter.newschema)?;
        let (catalog, old) = self.altered_type(&names)?;
        if is_local(schema) {
            return Err(moved_temporary());
        }
        if schema == old.schema {
            return Ok(altered(is_domain));
        }
        if catalog.type_named(schema, &old.name).is_some() {
            return Err(Error::new(
                SqlState::DUPLICATE_OBJECT,
                format!(
                    "type \"{}\" already exists in schema \"{}\"",
                    old.name, alter.newschema
                ),
            ));
        }
        let new = UserType {
            schema,
            ..old.clone()
        };
        self.put_type(&catalog, &old, &new)?;
        Ok(altered(is_domain))
    }

    /// ALTER TYPE … OWNER TO.
    pub(super) fn give_type(&mut self, alter: &AlterOwnerStmt, owner: u32) -> Result<CommandTag> {
        let names = names_of(alter.object.as_deref());
        let is_domain = alter.object_type == ObjectType::ObjectDomain as i32;
        self.check_is_domain(&names, is_domain)?;
        let (catalog, old) = self.altered_type(&names)?;
        if old.owner != owner {
            self.may_give_to(&catalog, owner, old.schema)?;
            self.put_type_owner(&catalog, &old, owner)?;
        }
        Ok(altered(is_domain))
    }

    /// Gives a type to a role.
    pub(super) fn put_type_owner(
        &mut self,
        catalog: &Catalog,
        old: &UserType,
        owner: u32,
    ) -> Result<()> {
        self.give_lists(catalog, Address::TYPE, old.id.0, old.owner, owner)?;
        let new = UserType {
            owner,
            ..old.clone()
        };
        self.put_type(catalog, old, &new)
    }

    /// DROP TYPE.
    pub(super) fn drop_types(
        &mut self,
        drop: &DropStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let is_domain = drop.remove_type == ObjectType::ObjectDomain as i32;
        let mut known = Vec::new();
        for object in &drop.objects {
            let Some(NodeEnum::TypeName(name)) = &object.node else {
                continue;
            };
            match self.type_for_drop(name, is_domain)? {
                Ok(_) => known.push(name),
                Err(missing) if drop.missing_ok => {
                    let message = format!("{}, skipping", missing.message());
                    let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
                    self.notice(NoticeSeverity::Notice, body, sink)?;
                }
                Err(missing) => return Err(missing),
            }
        }
        let resolve = |session: &mut Session| {
            let mut roots = Vec::new();
            for name in &known {
                let object = session.type_for_drop(name, is_domain)??;
                if !roots.contains(&object) {
                    roots.push(object);
                }
            }
            Ok(roots)
        };
        let cascade = drop.behavior == DropBehavior::DropCascade as i32;
        self.drop_objects(resolve, cascade, sink)?;
        Ok(tag(if is_domain {
            "DROP DOMAIN"
        } else {
            "DROP TYPE"
        }))
    }

    /// What a name of DROP TYPE means; the inner error says that there is no such type.
    fn type_for_drop(
        &mut self,
        name: &TypeName,
        is_domain: bool,
    ) -> Result<std::result::Result<Object, Error>> {
        let catalog = self.current_catalog()?;
        let names = texts(&name.names);
        if let [.., schema, _] = names.as_slice() {
            if catalog.schema(schema).is_none() {
                return Ok(Err(Error::new(
                    SqlState::INVALID_SCHEMA_NAME,
                    format!("schema \"{schema}\" does not exist"),
                )));
            }
        }
        let found = self.type_of_names(&catalog, &names)?;
        let found = match name.array_bounds.is_empty() {
            true => found,
            false => found.and_then(TypeId::array_of),
        };
        let Some(id) = found else {
            return Ok(Err(no_type(&names)));
        };
        let required = |message: String| Error::new(SqlState::of("2BP01"), message);
        if is_domain && id.own_kind() != Some(OwnKind::Domain) {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a domain", names.join(".")),
            ));
        }
        if !id.is_own() {
            self.must_be_superuser(&catalog, "type", &id.to_string())?;
            return Err(required(format!(
                "cannot drop type {id} because it is required by the database system"
            )));
        }
        if let Some(table) = catalog.table_of_rows(id) {
            let (kind, name) = (table.kind.noun(), &table.name);
            let hint = format!("You can drop {kind} {name} instead.");
            let message = format!("cannot drop type {id} because {kind} {name} requires it");
            return Err(required(message).with_hint(hint));
        }
        match id.array_element() {
            Some(element) => Err(required(format!(
                "cannot drop type {id} because type {element} requires it"
            ))
            .with_hint(format!("You can drop type {element} instead."))),
            None => Ok(Ok(Object::Type(id))),
        }
    }
}
