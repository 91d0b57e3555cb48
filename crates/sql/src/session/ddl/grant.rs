//! GRANT and REVOKE of privileges on tables, columns, sequences, schemas and databases; ALTER …
//! OWNER of what is no table.
//!
//! Who gives: a superuser and whoever has the owner's privileges give in the owner's name, others
//! in their own, and only what they hold WITH GRANT OPTION.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterOwnerStmt, DropBehavior, GrantStmt, GrantTargetType, ObjectType, RangeVar, RoleSpec,
    RoleSpecType,
};

use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::database;
use crate::catalog::access::{
    denied, grant as give, must_own, revoke as take, Acl, AclItem, Guarded, Privileges,
};
use crate::catalog::cluster::{self, Address};
use crate::catalog::store;
use crate::catalog::{Catalog, RelationKind, Role};
use crate::parser::NodeEnum;

/// Something that privileges are given on.
struct Item {
    kind: Guarded,
    address: Address,
    owner: u32,
    noun: &'static str,
    name: String,
}

/// What one statement gives or takes.
struct Order<'s> {
    statement: &'s GrantStmt,
    /// Roles; 0 is PUBLIC.
    grantees: Vec<u32>,
}

impl Session {
    pub(super) fn grant(&mut self, grant: &GrantStmt, sink: &mut dyn Sink) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let items = self.granted_items(&catalog, grant)?;
        let mut grantees = Vec::new();
        for node in &grant.grantees {
            if let Some(NodeEnum::RoleSpec(spec)) = &node.node {
                grantees.push(self.grantee(&catalog, spec)?);
            }
        }
        if grant.is_grant && grant.grant_option && grantees.contains(&0) {
            return Err(Error::new(
                SqlState::of("0LP01"),
                "grant options can only be granted to roles",
            ));
        }
        let order = Order {
            statement: grant,
            grantees,
        };
        for item in items {
            self.hold_granted(&catalog, &item)?;
            self.grant_on(&catalog, &item, &order, sink)?;
        }
        Ok(tag(if grant.is_grant { "GRANT" } else { "REVOKE" }))
    }

    /// Who changes a relation waits for who gives privileges on it, and the other way round: in
    /// PostgreSQL both change its row of `pg_class`.
    fn hold_granted(&mut self, catalog: &Catalog, item: &Item) -> Result<()> {
        if item.address.class != Address::CLASS {
            return Ok(());
        }
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let is_listed = |table: &std::sync::Arc<crate::catalog::Table>| {
            table.oid == item.address.object && table.kind != RelationKind::System
        };
        if catalog.tables.iter().any(is_listed) {
            let txn = open.txn.as_mut();
            store::hold_table(txn, catalog.database.oid, item.address.object)?;
        }
        Ok(())
    }

    /// The oid of who is given something; 0 is PUBLIC.
    fn grantee(&mut self, catalog: &Catalog, spec: &RoleSpec) -> Result<u32> {
        if RoleSpecType::try_from(spec.roletype) == Ok(RoleSpecType::RolespecPublic) {
            return Ok(0);
        }
        Ok(self.role_of(catalog, spec)?.oid)
    }

    fn granted_items(&mut self, catalog: &Catalog, grant: &GrantStmt) -> Result<Vec<Item>> {
        let object = ObjectType::try_from(grant.objtype);
        if GrantTargetType::try_from(grant.targtype) == Ok(GrantTargetType::AclTargetAllInSchema) {
            return granted_in_schemas(catalog, grant, object.ok());
        }
        let mut items = Vec::new();
        for node in &grant.objects {
            items.push(match (&node.node, object) {
                (
                    Some(NodeEnum::RangeVar(range)),
                    Ok(ObjectType::ObjectTable | ObjectType::ObjectSequence),
                ) => {
                    let wants = object == Ok(ObjectType::ObjectSequence);
                    self.granted_relation(range, wants)?
                }
                (Some(NodeEnum::String(name)), Ok(ObjectType::ObjectSchema)) => {
                    let schema = catalog.schema(&name.sval).ok_or_else(|| {
                        Error::new(
                            SqlState::INVALID_SCHEMA_NAME,
                            format!("schema \"{}\" does not exist", name.sval),
                        )
                    })?;
                    Item {
                        kind: Guarded::Schema,
                        address: Address::of(Address::NAMESPACE, schema.oid),
                        owner: schema.owner,
                        noun: "schema",
                        name: schema.name.clone(),
                    }
                }
                (Some(NodeEnum::String(name)), Ok(ObjectType::ObjectDatabase)) => {
                    let found = database::named(catalog, &name.sval)?;
                    Item {
                        kind: Guarded::Database,
                        address: Address::of(Address::DATABASE, found.oid),
                        owner: found.owner,
                        noun: "database",
                        name: found.name.clone(),
                    }
                }
                _ => return Err(Error::unsupported("GRANT on this kind of object")),
            });
        }
        Ok(items)
    }

    fn granted_relation(&mut self, range: &RangeVar, sequence: bool) -> Result<Item> {
        let table = self.find_table_in("", range)?;
        let is_sequence = table.kind == RelationKind::Sequence;
        if sequence && !is_sequence {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a sequence", table.name),
            ));
        }
        Ok(relation_item(&table))
    }

    /// Changes the lists of one object.
    fn grant_on(
        &mut self,
        catalog: &Catalog,
        item: &Item,
        order: &Order<'_>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (whole, columns) = asked(order.statement, item)?;
        if !whole.is_none() {
            self.change_acl(catalog, item, whole, order, sink)?;
        }
        if !order.statement.is_grant && item.kind == Guarded::Table {
            self.take_from_columns(catalog, item, whole, order, sink)?;
        }
        for (column, privileges) in columns {
            let table = catalog.table_by_oid(item.address.object);
            let place = table.and_then(|table| table.column(&column));
            let place = place.ok_or_else(|| {
                Error::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!(
                        "column \"{column}\" of relation \"{}\" does not exist",
                        item.name
                    ),
                )
            })?;
            let of_column = Item {
                kind: Guarded::Column,
                address: Address {
                    column: u32::try_from(place + 1).unwrap_or(u32::MAX),
                    ..item.address
                },
                owner: item.owner,
                noun: "column",
                name: column,
            };
            self.change_acl(catalog, &of_column, privileges, order, sink)?;
        }
        Ok(())
    }

    /// What is taken back on a table is taken back on its columns too.
    fn take_from_columns(
        &mut self,
        catalog: &Catalog,
        item: &Item,
        taken: Privileges,
        order: &Order<'_>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let own = self.current_role(catalog)?;
        let taken = taken.and(Guarded::Column.all());
        if taken.is_none() || !catalog.has_privileges_of(own.oid, item.owner) {
            return Ok(());
        }
        let lists = catalog.acls.keys().copied();
        let of_table = |at: &Address| {
            (at.class, at.object) == (item.address.class, item.address.object) && at.column != 0
        };
        for address in lists.filter(of_table) {
            let of_column = Item {
                kind: Guarded::Column,
                address,
                owner: item.owner,
                noun: "column",
                name: item.name.clone(),
            };
            self.change_acl(catalog, &of_column, taken, order, sink)?;
        }
        Ok(())
    }

    fn change_acl(
        &mut self,
        catalog: &Catalog,
        item: &Item,
        asked: Privileges,
        order: &Order<'_>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let own = self.current_role(catalog)?;
        let mut acl = match item.kind {
            Guarded::Column => catalog.acls.get(&item.address).cloned().unwrap_or_default(),
            Guarded::Sequence => match catalog.acls.get(&item.address) {
                Some(acl) => acl.clone(),
                None => crate::catalog::access::default_acl(Guarded::Sequence, item.owner),
            },
            kind => catalog.acl_of(kind, item.address.object),
        };
        let mut grantor = own.oid;
        let mut given = asked;
        if catalog.has_privileges_of(own.oid, item.owner) {
            grantor = item.owner;
        } else {
            given = catalog.grantable(own.oid, item.owner, &acl).and(asked);
            if given.is_none() {
                self.refuse_or_warn(catalog, &own, item, &acl, order.statement, sink)?;
                return Ok(());
            }
            if given != asked && order.statement.privileges.is_empty() {
                let message = match order.statement.is_grant {
                    true => "not all privileges were granted for",
                    false => "not all privileges could be revoked for",
                };
                let message = format!("{message} \"{}\"", item.name);
                let body = Error::new(SqlState::of("01007"), message);
                self.notice(NoticeSeverity::Warning, body, sink)?;
            }
        }
        for grantee in &order.grantees {
            let change = AclItem {
                grantee: *grantee,
                grantor,
                privileges: given,
                options: match order.statement.grant_option {
                    true => given,
                    false => Privileges::NONE,
                },
            };
            match order.statement.is_grant {
                true => give(&mut acl, change),
                false => {
                    let cascade = order.statement.behavior == DropBehavior::DropCascade as i32;
                    take_all(&mut acl, change, order.statement.grant_option, cascade)?;
                }
            }
        }
        let database = catalog.database.oid;
        if let Some(open) = &mut self.open {
            let empty_column = item.kind == Guarded::Column && acl.is_empty();
            let acl = (!empty_column).then_some(&acl);
            cluster::put_acl(open.txn.as_mut(), database, item.address, acl)?;
        }
        Ok(())
    }

    /// 42501, or, for one who has some privilege, only a warning.
    fn refuse_or_warn(
        &mut self,
        catalog: &Catalog,
        own: &Role,
        item: &Item,
        acl: &Acl,
        statement: &GrantStmt,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let all = Privileges(u32::MAX);
        let object = item.address.object;
        let held = match item.kind {
            // What is held on the table is held on its columns.
            Guarded::Column => {
                let of_column = catalog.privileges(own.oid, acl, all);
                of_column.with(catalog.held(own.oid, Guarded::Table, object, all))
            }
            kind => catalog.held(own.oid, kind, object, all),
        };
        if held.is_none() {
            let table = catalog.table_by_oid(object);
            return Err(match (item.kind, table) {
                (Guarded::Column, Some(table)) => {
                    let column = format!("\"{}\" of relation \"{}\"", item.name, table.name);
                    denied("column", &column)
                }
                _ => denied(item.noun, &item.name),
            });
        }
        let message = match statement.is_grant {
            true => format!("no privileges were granted for \"{}\"", item.name),
            false => format!("no privileges could be revoked for \"{}\"", item.name),
        };
        let body = Error::new(SqlState::of("01007"), message);
        self.notice(NoticeSeverity::Warning, body, sink)
    }

    /// ALTER … OWNER TO of what is no table.
    pub(super) fn alter_owner_of(&mut self, alter: &AlterOwnerStmt) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let spec = alter.newowner.as_ref();
        let spec = spec.ok_or_else(|| Error::internal("an owner without a name"))?;
        let owner = self.role_of(&catalog, spec)?;
        let name = match alter
            .object
            .as_ref()
            .and_then(|object| object.node.as_ref())
        {
            Some(NodeEnum::String(name)) => name.sval.clone(),
            _ => String::new(),
        };
        match ObjectType::try_from(alter.object_type) {
            Ok(ObjectType::ObjectDatabase) => self.give_database(&name, &owner),
            Ok(ObjectType::ObjectSchema) => {
                let own = self.current_role(&catalog)?;
                let old = catalog.schema(&name).cloned().ok_or_else(|| {
                    Error::new(
                        SqlState::INVALID_SCHEMA_NAME,
                        format!("schema \"{name}\" does not exist"),
                    )
                })?;
                if old.owner == owner.oid {
                    return Ok(tag("ALTER SCHEMA"));
                }
                if !catalog.has_privileges_of(own.oid, old.owner) {
                    return Err(must_own("schema", &name));
                }
                if !catalog.is_member(own.oid, owner.oid) {
                    return Err(Error::new(
                        SqlState::INSUFFICIENT_PRIVILEGE,
                        format!("must be member of role \"{}\"", owner.name),
                    ));
                }
                self.may_create_schemas(&catalog)?;
                self.put_schema_owner(&catalog, &old, owner.oid)?;
                Ok(tag("ALTER SCHEMA"))
            }
            _ => Err(Error::unsupported("ALTER … OWNER of this kind of object")),
        }
    }
}

fn relation_item(table: &crate::catalog::Table) -> Item {
    let sequence = table.kind == RelationKind::Sequence;
    Item {
        kind: match sequence {
            true => Guarded::Sequence,
            false => Guarded::Table,
        },
        address: Address::of(Address::CLASS, table.oid),
        owner: table.owner,
        noun: table.kind.noun(),
        name: table.name.clone(),
    }
}

/// ALL TABLES IN SCHEMA and its kin.
fn granted_in_schemas(
    catalog: &Catalog,
    grant: &GrantStmt,
    object: Option<ObjectType>,
) -> Result<Vec<Item>> {
    let sequences = match object {
        Some(ObjectType::ObjectTable) => false,
        Some(ObjectType::ObjectSequence) => true,
        _ => return Err(Error::unsupported("GRANT on this kind of object")),
    };
    let mut items = Vec::new();
    for node in &grant.objects {
        let Some(NodeEnum::String(name)) = &node.node else {
            continue;
        };
        let schema = catalog.schema(&name.sval).ok_or_else(|| {
            Error::new(
                SqlState::INVALID_SCHEMA_NAME,
                format!("schema \"{}\" does not exist", name.sval),
            )
        })?;
        let own = catalog.tables.iter().filter(|table| {
            let is_sequence = table.kind == RelationKind::Sequence;
            table.schema == schema.oid && is_sequence == sequences
        });
        items.extend(own.map(|table| relation_item(table)));
    }
    Ok(items)
}

/// What is asked for: of the object as a whole, and of columns.
fn asked(grant: &GrantStmt, item: &Item) -> Result<(Privileges, Vec<(String, Privileges)>)> {
    if grant.privileges.is_empty() {
        return Ok((item.kind.all(), Vec::new()));
    }
    let invalid = |name: &str| {
        let noun = match item.kind {
            Guarded::Table => "table",
            _ => item.noun,
        };
        Error::new(
            SqlState::of("0LP01"),
            format!("invalid privilege type {name} for {noun}"),
        )
    };
    let mut whole = Privileges::NONE;
    let mut columns: Vec<(String, Privileges)> = Vec::new();
    for node in &grant.privileges {
        let Some(NodeEnum::AccessPriv(access)) = &node.node else {
            continue;
        };
        let name = access.priv_name.to_ascii_uppercase();
        let found = match name.as_str() {
            "" => Some(Guarded::Column.all()),
            name => Privileges::named(name),
        };
        let unknown = || {
            Error::new(
                SqlState::SYNTAX_ERROR,
                format!("unrecognized privilege type \"{}\"", access.priv_name),
            )
        };
        let found = found.ok_or_else(unknown)?;
        if access.cols.is_empty() {
            if !item.kind.all().has(found) {
                return Err(invalid(&name));
            }
            whole = whole.with(found);
            continue;
        }
        if item.kind != Guarded::Table || !Guarded::Column.all().has(found) {
            return Err(Error::new(
                SqlState::of("0LP01"),
                format!("invalid privilege type {name} for column"),
            ));
        }
        for column in super::texts(&access.cols) {
            match columns.iter_mut().find(|known| known.0 == column) {
                Some(known) => known.1 = known.1.with(found),
                None => columns.push((column, found)),
            }
        }
    }
    Ok((whole, columns))
}

/// Takes privileges, and what the role has given on if it may give no more.
fn take_all(acl: &mut Acl, change: AclItem, options_only: bool, cascade: bool) -> Result<()> {
    take(acl, change, options_only);
    let still = acl
        .iter()
        .filter(|item| item.grantee == change.grantee)
        .fold(Privileges::NONE, |held, item| held.with(item.options));
    let given_on = |item: &&AclItem| {
        item.grantor == change.grantee
            && item.grantor != change.grantor
            && !item
                .privileges
                .and(change.privileges)
                .without(still)
                .is_none()
    };
    while let Some(dependent) = acl.iter().find(given_on).copied() {
        if !cascade {
            return Err(
                Error::new(SqlState::of("2BP01"), "dependent privileges exist")
                    .with_hint("Use CASCADE to revoke them too."),
            );
        }
        let taken = AclItem {
            privileges: dependent.privileges.and(change.privileges),
            ..dependent
        };
        take_all(acl, taken, false, true)?;
    }
    Ok(())
}
