//! GRANT and REVOKE of privileges, ALTER DEFAULT PRIVILEGES; ALTER … OWNER of what is no table.
//!
//! | part | what |
//! |---|---|
//! | this one | who gives what to whom, and the lists that come of it |
//! | [`items`] | the objects that a statement names |
//! | [`defaults`] | ALTER DEFAULT PRIVILEGES |
//!
//! Who gives: a superuser and whoever has the owner's privileges give in the owner's name, others
//! in their own or that of a role of theirs, and only what they hold WITH GRANT OPTION.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterOwnerStmt, DropBehavior, GrantStmt, ObjectType, RoleSpec, RoleSpecType,
};

use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::routine::is_routine;
use catalog::access::{
    column_in_address, default_acl, denied, grant as give, must_own, revoke as take, system_column,
    Acl, AclItem, Guarded, Privileges, SYSTEM_COLUMNS,
};
use catalog::cluster::{self, Address};
use catalog::{store, Catalog, RelationKind};
use items::Item;
use syntax::parser::NodeEnum;

mod defaults;
mod items;

/// What one statement gives or takes.
struct Order<'s> {
    statement: &'s GrantStmt,
    /// Roles; 0 is PUBLIC.
    grantees: Vec<u32>,
}

/// How privileges of a list change.
struct Change<'o> {
    is_grant: bool,
    /// Whether the right to give them on is given too, or alone is taken.
    options: bool,
    /// Whether what was given on is taken too.
    cascade: bool,
    privileges: Privileges,
    grantor: u32,
    grantees: &'o [u32],
}

impl Order<'_> {
    fn change(&self, grantor: u32, privileges: Privileges) -> Change<'_> {
        Change {
            is_grant: self.statement.is_grant,
            options: self.statement.grant_option,
            cascade: self.statement.behavior == DropBehavior::DropCascade as i32,
            privileges,
            grantor,
            grantees: &self.grantees,
        }
    }
}

/// 0LP01.
fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::of("0LP01"), message)
}

impl Change<'_> {
    /// Changes the list of an object of that owner.
    fn apply(&self, acl: &mut Acl, owner: u32) -> Result<()> {
        for grantee in self.grantees {
            let item = AclItem {
                grantee: *grantee,
                grantor: self.grantor,
                privileges: self.privileges,
                options: match self.options {
                    true => self.privileges,
                    false => Privileges::NONE,
                },
            };
            match self.is_grant {
                true => {
                    if !item.options.is_none() {
                        check_no_circle(acl, &item, owner)?;
                    }
                    give(acl, item);
                }
                false => take_all(acl, item, self.options, self.cascade, owner)?,
            }
        }
        Ok(())
    }
}

/// 0LP01 where the right to give on would come back to a role from which the grantor has it.
fn check_no_circle(acl: &Acl, given: &AclItem, owner: u32) -> Result<()> {
    if given.grantor == owner {
        return Ok(());
    }
    let mut without = acl.clone();
    let held = without.iter();
    let held: Vec<_> = held
        .filter(|item| item.grantee == given.grantee)
        .copied()
        .collect();
    for item in held {
        take_all(&mut without, item, false, true, owner)?;
    }
    let mine = without.iter().filter(|item| item.grantee == given.grantor);
    let mine = mine.fold(Privileges::NONE, |held, item| held.with(item.options));
    match mine.has(given.options) {
        true => Ok(()),
        false => Err(invalid(
            "grant options cannot be granted back to your own grantor",
        )),
    }
}

impl Session {
    pub(in crate::session) fn grant(
        &mut self,
        grant: &GrantStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        if let Some(spec) = &grant.grantor {
            let grantor = self.role_of(&catalog, spec)?;
            if grantor.oid != self.shared.settings.current_role() {
                let message = "grantor must be current user";
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
        }
        let items = self.granted_items(&catalog, grant)?;
        let grantees = self.grantees(&catalog, grant)?;
        check_words(grant)?;
        check_options(grant, &grantees)?;
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
        let is_listed = |table: &std::sync::Arc<catalog::Table>| {
            table.oid == item.address.object && table.kind != RelationKind::System
        };
        if catalog.tables.iter().any(is_listed) {
            let txn = open.txn.as_mut();
            store::hold_table(txn, catalog.database.oid, item.address.object)?;
        }
        Ok(())
    }

    /// The oids of who is given something; 0 is PUBLIC.
    ///
    /// # Errors
    /// 42704.
    fn grantees(&mut self, catalog: &Catalog, grant: &GrantStmt) -> Result<Vec<u32>> {
        let mut grantees = Vec::new();
        for node in &grant.grantees {
            if let Some(NodeEnum::RoleSpec(spec)) = &node.node {
                grantees.push(self.grantee(catalog, spec)?);
            }
        }
        Ok(grantees)
    }

    fn grantee(&mut self, catalog: &Catalog, spec: &RoleSpec) -> Result<u32> {
        if RoleSpecType::try_from(spec.roletype) == Ok(RoleSpecType::RolespecPublic) {
            return Ok(0);
        }
        Ok(self.role_of(catalog, spec)?.oid)
    }

    /// Changes the lists of one object.
    fn grant_on(
        &mut self,
        catalog: &Catalog,
        item: &Item,
        order: &Order<'_>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (mut whole, columns) = asked(order.statement, item)?;
        if item.kind == Guarded::Sequence && !item.kind.all().has(whole) {
            let message = format!(
                "sequence \"{}\" only supports USAGE, SELECT, and UPDATE privileges",
                item.name
            );
            let body = Error::new(SqlState::of("0LP01"), message);
            self.notice(NoticeSeverity::Warning, body, sink)?;
            whole = whole.and(item.kind.all());
        }
        if !whole.is_none() {
            self.change_acl(catalog, item, whole, order, sink)?;
        }
        let Some(table) = catalog
            .table_by_oid(item.address.object)
            .filter(|_| matches!(item.kind, Guarded::Table | Guarded::Sequence))
        else {
            return Ok(());
        };
        let table = table.clone();
        let mut of_columns = vec![Privileges::NONE; table.columns.len()];
        let mut of_system = [Privileges::NONE; SYSTEM_COLUMNS.len()];
        for (column, privileges) in &columns {
            let mut privileges = *privileges;
            if item.kind == Guarded::Sequence && !Privileges::SELECT.has(privileges) {
                let message = format!(
                    "sequence \"{}\" only supports SELECT column privileges",
                    item.name
                );
                let body = Error::new(SqlState::of("0LP01"), message);
                self.notice(NoticeSeverity::Warning, body, sink)?;
                privileges = privileges.and(Privileges::SELECT);
            }
            if system_column(&table, column).is_some() {
                let of = SYSTEM_COLUMNS.iter().zip(&mut of_system);
                of.filter(|(known, _)| *known == column)
                    .for_each(|(_, asked)| *asked = asked.with(privileges));
                continue;
            }
            let place = table.column(column).ok_or_else(|| {
                Error::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!(
                        "column \"{column}\" of relation \"{}\" does not exist",
                        item.name
                    ),
                )
            })?;
            of_columns[place] = of_columns[place].with(privileges);
        }
        // What is taken back on a table is taken back on its columns too.
        let taken = match order.statement.is_grant {
            true => Privileges::NONE,
            false => whole.and(Guarded::Column.all()),
        };
        for (name, asked) in SYSTEM_COLUMNS.iter().zip(of_system) {
            let asked = asked.with(taken);
            let number = system_column(&table, name).filter(|_| !asked.is_none());
            if let Some(number) = number {
                let of_column = item.column(column_in_address(number), name);
                self.change_acl(catalog, &of_column, asked, order, sink)?;
            }
        }
        for (place, asked) in of_columns.into_iter().enumerate() {
            let (column, asked) = (&table.columns[place], asked.with(taken));
            if !column.dropped && !asked.is_none() {
                let number = u32::try_from(place + 1).unwrap_or(u32::MAX);
                let of_column = item.column(number, &column.name);
                self.change_acl(catalog, &of_column, asked, order, sink)?;
            }
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
            Guarded::LargeObject => self.hold_large_object(catalog, item.address.object)?.acl(),
            kind => catalog.acl_of(kind, item.address.object),
        };
        // Who may give something on a table may give it on its columns.
        let mut of_all = acl.clone();
        if item.kind == Guarded::Column {
            of_all.extend(catalog.acl_of(Guarded::Table, item.address.object));
        }
        let (grantor, may) = catalog.best_grantor(own.oid, item.owner, &of_all, asked);
        if may.is_none() {
            self.refuse_or_warn(catalog, grantor, item, &acl, order.statement, sink)?;
            return Ok(());
        }
        let names_all = match item.kind {
            Guarded::Column => asked == item.kind.all(),
            _ => order.statement.privileges.is_empty(),
        };
        if may != asked && !names_all {
            self.warn_of_rest(item, "not all privileges", order.statement, sink)?;
        }
        order.change(grantor, may).apply(&mut acl, item.owner)?;
        self.put_acl_of(catalog, item, &acl)
    }

    /// Writes a list, or takes it away where it says nothing.
    fn put_acl_of(&mut self, catalog: &Catalog, item: &Item, acl: &Acl) -> Result<()> {
        let open = self.open.as_mut();
        let open = open.ok_or_else(|| Error::internal("nothing is open"))?;
        let txn = open.txn.as_mut();
        match item.kind {
            Guarded::Parameter if *acl == default_acl(item.kind, item.owner) => {
                cluster::put_acl(txn, catalog.database.oid, item.address, None)
            }
            Guarded::Parameter => {
                cluster::put_parameter_acl(txn, item.address.object, &item.name, acl)
            }
            Guarded::LargeObject => {
                let mut object = self.hold_large_object(catalog, item.address.object)?;
                object.acl = Some(acl.clone());
                self.put_large_object(catalog, &object)
            }
            kind => {
                let is_empty_column = kind == Guarded::Column && acl.is_empty();
                let acl = (!is_empty_column).then_some(acl);
                cluster::put_acl(txn, catalog.database.oid, item.address, acl)
            }
        }
    }

    /// A warning that some of what was asked for was not done.
    fn warn_of_rest(
        &mut self,
        item: &Item,
        what: &str,
        statement: &GrantStmt,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (verb, code) = match statement.is_grant {
            true => ("were granted", "01007"),
            false => ("could be revoked", "01006"),
        };
        let on = match &item.relation {
            None => format!("\"{}\"", item.name),
            Some(relation) => format!("column \"{}\" of relation \"{relation}\"", item.name),
        };
        let body = Error::new(SqlState::of(code), format!("{what} {verb} for {on}"));
        self.notice(NoticeSeverity::Warning, body, sink)
    }

    /// 42501, or, for one who has some privilege, only a warning.
    fn refuse_or_warn(
        &mut self,
        catalog: &Catalog,
        grantor: u32,
        item: &Item,
        acl: &Acl,
        statement: &GrantStmt,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let all = item.kind.all();
        let object = item.address.object;
        let held = match item.kind {
            // What is held on the table is held on its columns.
            Guarded::Column => {
                let of_column = catalog.privileges(grantor, acl, all);
                of_column.with(catalog.held(grantor, Guarded::Table, object, all))
            }
            // No catalog has its list.
            Guarded::LargeObject => catalog.privileges(grantor, acl, all),
            kind => catalog.held(grantor, kind, object, all),
        };
        if held.is_none() {
            return Err(match &item.relation {
                Some(relation) => {
                    let column = format!("\"{}\" of relation \"{relation}\"", item.name);
                    denied("column", &column)
                }
                None => denied(item.noun, &item.name),
            });
        }
        self.warn_of_rest(item, "no privileges", statement, sink)
    }

    /// ALTER … OWNER TO of what is no table.
    pub(in crate::session) fn alter_owner_of(
        &mut self,
        alter: &AlterOwnerStmt,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let spec = alter.newowner.as_ref();
        let spec = spec.ok_or_else(|| Error::internal("an owner without a name"))?;
        let owner = self.role_of(&catalog, spec)?;
        let named = alter.object.as_ref().and_then(|node| node.node.as_ref());
        if let (Ok(object), Some(NodeEnum::ObjectWithArgs(named))) =
            (ObjectType::try_from(alter.object_type), named)
        {
            if is_routine(object) {
                return self.give_routine(object, named, owner.oid);
            }
        }
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
            Ok(ObjectType::ObjectType | ObjectType::ObjectDomain) => {
                self.give_type(alter, owner.oid)
            }
            Ok(ObjectType::ObjectCollation) => self.give_collation(alter, owner.oid),
            Ok(ObjectType::ObjectStatisticExt) => self.give_statistics(alter, owner.oid),
            Ok(ObjectType::ObjectLargeobject) => {
                self.give_large_object(&catalog, alter.object.as_deref(), &owner)
            }
            Ok(ObjectType::ObjectOperator) => self.give_operator(alter, owner.oid),
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

/// 0LP01 where everybody would get the right to give on.
fn check_options(grant: &GrantStmt, grantees: &[u32]) -> Result<()> {
    match grant.is_grant && grant.grant_option && grantees.contains(&0) {
        true => Err(invalid("grant options can only be granted to roles")),
        false => Ok(()),
    }
}

/// What messages call the objects that a statement names, and all privileges that such a statement
/// may name.
fn words(grant: &GrantStmt) -> Result<(&'static str, Privileges)> {
    Ok(match ObjectType::try_from(grant.objtype) {
        // TABLE is said of sequences too.
        Ok(ObjectType::ObjectTable) => (
            "relation",
            Guarded::Table.all().with(Guarded::Sequence.all()),
        ),
        Ok(ObjectType::ObjectSequence) => ("sequence", Guarded::Sequence.all()),
        Ok(ObjectType::ObjectDatabase) => ("database", Guarded::Database.all()),
        Ok(ObjectType::ObjectDomain) => ("domain", Guarded::Type.all()),
        Ok(ObjectType::ObjectFunction) => ("function", Guarded::Function.all()),
        Ok(ObjectType::ObjectProcedure) => ("procedure", Guarded::Function.all()),
        Ok(ObjectType::ObjectRoutine) => ("routine", Guarded::Function.all()),
        Ok(ObjectType::ObjectLanguage) => ("language", Guarded::Language.all()),
        Ok(ObjectType::ObjectLargeobject) => ("large object", Guarded::LargeObject.all()),
        Ok(ObjectType::ObjectSchema) => ("schema", Guarded::Schema.all()),
        Ok(ObjectType::ObjectTablespace) => ("tablespace", Guarded::Tablespace.all()),
        Ok(ObjectType::ObjectType) => ("type", Guarded::Type.all()),
        Ok(ObjectType::ObjectFdw) => ("foreign-data wrapper", Guarded::ForeignDataWrapper.all()),
        Ok(ObjectType::ObjectForeignServer) => ("foreign server", Guarded::ForeignServer.all()),
        Ok(ObjectType::ObjectParameterAcl) => ("parameter", Guarded::Parameter.all()),
        _ => return Err(Error::unsupported("GRANT on this kind of object")),
    })
}

/// The privileges of a name; all that a column can have for ALL.
fn named_privileges(name: &str) -> Result<Privileges> {
    match name {
        "" => Ok(Guarded::Column.all()),
        name => Privileges::named(name).ok_or_else(|| {
            let message = format!("unrecognized privilege type \"{name}\"");
            Error::new(SqlState::SYNTAX_ERROR, message)
        }),
    }
}

/// 0LP01 for a privilege that no object of the kind has, before any object is looked for.
fn check_words(grant: &GrantStmt) -> Result<()> {
    let (noun, all) = words(grant)?;
    for node in &grant.privileges {
        let Some(NodeEnum::AccessPriv(access)) = &node.node else {
            continue;
        };
        let found = named_privileges(&access.priv_name)?;
        if !access.cols.is_empty() {
            if noun != "relation" {
                return Err(invalid("column privileges are only valid for relations"));
            }
        } else if !all.has(found) {
            return Err(invalid(format!(
                "invalid privilege type {} for {noun}",
                access.priv_name.to_ascii_uppercase()
            )));
        }
    }
    Ok(())
}

/// What is asked for: of the object as a whole, and of columns.
fn asked(grant: &GrantStmt, item: &Item) -> Result<(Privileges, Vec<(String, Privileges)>)> {
    if grant.privileges.is_empty() {
        return Ok((item.kind.all(), Vec::new()));
    }
    let mut whole = Privileges::NONE;
    let mut columns: Vec<(String, Privileges)> = Vec::new();
    for node in &grant.privileges {
        let Some(NodeEnum::AccessPriv(access)) = &node.node else {
            continue;
        };
        let name = access.priv_name.to_ascii_uppercase();
        let found = named_privileges(&access.priv_name)?;
        if access.cols.is_empty() {
            if item.kind == Guarded::Table && !item.kind.all().has(found) {
                return Err(invalid(format!("invalid privilege type {name} for table")));
            }
            whole = whole.with(found);
            continue;
        }
        if !Guarded::Column.all().has(found) {
            return Err(invalid(format!("invalid privilege type {name} for column")));
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

/// Takes privileges, and what the role has given on by rights that it loses.
///
/// # Errors
/// 2BP01 where somebody has something by such a right, unless that is to be taken too.
fn take_all(
    acl: &mut Acl,
    change: AclItem,
    options_only: bool,
    cascade: bool,
    owner: u32,
) -> Result<()> {
    let options = |acl: &Acl| {
        let of_grantee = acl.iter().filter(|item| item.grantee == change.grantee);
        of_grantee.fold(Privileges::NONE, |held, item| held.with(item.options))
    };
    let before = options(acl);
    take(acl, change, options_only);
    let lost = before.without(options(acl));
    // An owner can give on whatever happens.
    if lost.is_none() || change.grantee == owner {
        return Ok(());
    }
    let given_on =
        |item: &&AclItem| item.grantor == change.grantee && !item.privileges.and(lost).is_none();
    while let Some(dependent) = acl.iter().find(given_on).copied() {
        if !cascade {
            return Err(
                Error::new(SqlState::of("2BP01"), "dependent privileges exist")
                    .with_hint("Use CASCADE to revoke them too."),
            );
        }
        let taken = AclItem {
            privileges: dependent.privileges.and(lost),
            ..dependent
        };
        take_all(acl, taken, false, true, owner)?;
    }
    Ok(())
}
