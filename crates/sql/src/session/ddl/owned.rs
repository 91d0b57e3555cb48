//! What belongs to a role: REASSIGN OWNED, DROP OWNED, and what a change of owner means for lists
//! of privileges.
//!
//! Both statements see the current database and what belongs to the cluster, as in PostgreSQL; a
//! role that owns something in several databases takes one statement in each.

use std::sync::Arc;

use base::engine::RowLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{DropBehavior, DropOwnedStmt, Node, ReassignOwnedStmt};

use super::super::utility::tag;
use super::super::{CommandTag, Session, Sink};
use catalog::access::{self, denied, Acl, AclItem, Guarded, Privileges};
use catalog::cluster::{self, Address};
use catalog::extended::Extended;
use catalog::local::is_local;
use catalog::{
    extension_store, store, Catalog, Collation, Database, Extension, Object, OwnOperator, Policy,
    RelationKind, Role, Routine, Schema, Table, TypeBody, SUPERUSER,
};
use syntax::parser::NodeEnum;

/// A list of privileges after its object has been given to somebody else: what the old owner held
/// and gave is the new one's.
pub(super) fn given_on(acl: &Acl, old: u32, new: u32) -> Acl {
    let swap = |role: u32| if role == old { new } else { role };
    let mut given = Acl::default();
    for item in acl {
        let item = AclItem {
            grantee: swap(item.grantee),
            grantor: swap(item.grantor),
            ..*item
        };
        access::grant(&mut given, item);
    }
    given
}

/// Whether a relation is one that can be given away and dropped by itself.
fn stands_alone(table: &Table) -> bool {
    let sequence = table.sequence.as_ref();
    table.kind != RelationKind::System && sequence.is_none_or(|sequence| sequence.owner.is_none())
}

impl Session {
    /// Gives a relation, with the sequences of its columns, to a role.
    pub(super) fn give_relation(
        &mut self,
        catalog: &Catalog,
        table: &Table,
        new: u32,
    ) -> Result<()> {
        let is_of = |sequence: &Arc<Table>| {
            let owner = sequence
                .sequence
                .as_ref()
                .and_then(|sequence| sequence.owner);
            owner.is_some_and(|owner| owner.table == table.oid)
        };
        let sequences = catalog.tables.iter().filter(|known| is_of(known));
        let sequences: Vec<Table> = sequences.map(|known| (**known).clone()).collect();
        for given in std::iter::once(table.clone()).chain(sequences) {
            self.give_lists(catalog, Address::CLASS, given.oid, given.owner, new)?;
            self.put_table(&Table {
                owner: new,
                ..given
            })?;
        }
        Ok(())
    }

    /// Gives a schema to a role.
    pub(super) fn put_schema_owner(
        &mut self,
        catalog: &Catalog,
        schema: &Schema,
        new: u32,
    ) -> Result<()> {
        self.give_lists(catalog, Address::NAMESPACE, schema.oid, schema.owner, new)?;
        let given = Schema {
            owner: new,
            ..schema.clone()
        };
        match &mut self.open {
            Some(open) => store::update_schema(open.txn.as_mut(), catalog.database.oid, &given),
            None => Err(Error::internal("nothing is open")),
        }
    }

    /// Gives a database to a role.
    pub(super) fn put_database_owner(
        &mut self,
        catalog: &Catalog,
        database: &Database,
        new: u32,
    ) -> Result<()> {
        self.give_lists(
            catalog,
            Address::DATABASE,
            database.oid,
            database.owner,
            new,
        )?;
        let given = Database {
            owner: new,
            ..database.clone()
        };
        match &mut self.open {
            Some(open) => cluster::update_database(open.txn.as_mut(), database, &given).map(drop),
            None => Err(Error::internal("nothing is open")),
        }
    }

    /// The lists of an object and of its columns follow its owner.
    pub(super) fn give_lists(
        &mut self,
        catalog: &Catalog,
        class: u32,
        object: u32,
        old: u32,
        new: u32,
    ) -> Result<()> {
        let lists = catalog.acls.iter();
        let lists = lists.filter(|(at, _)| (at.class, at.object) == (class, object));
        let given: Vec<_> = lists
            .map(|(at, acl)| (*at, given_on(acl, old, new)))
            .collect();
        for (at, acl) in given {
            self.put_list(catalog, at, &acl)?;
        }
        Ok(())
    }

    fn put_list(&mut self, catalog: &Catalog, at: Address, acl: &Acl) -> Result<()> {
        let default = catalog.defaults.iter();
        let default = default.filter(|_| at.class == Address::DEFAULT_ACL);
        if let Some(default) = default.copied().find(|known| known.oid == at.object) {
            return self.put_default_acl(catalog, &default, acl.clone());
        }
        let open = self.open.as_mut();
        let open = open.ok_or_else(|| Error::internal("nothing is open"))?;
        let is_plain = match at.class {
            // A column without a list is one on which nobody was given anything.
            Address::CLASS => at.column != 0 && acl.is_empty(),
            Address::PARAMETER_ACL => *acl == access::default_acl(Guarded::Parameter, SUPERUSER),
            _ => false,
        };
        let acl = Some(acl).filter(|_| !is_plain);
        cluster::put_acl(open.txn.as_mut(), catalog.database.oid, at, acl)
    }

    /// 42501 unless this role may give tables of that schema to another.
    pub(super) fn may_give_to(&mut self, catalog: &Catalog, new: u32, schema: u32) -> Result<()> {
        let own = self.current_role(catalog)?;
        let Some(owner) = catalog.role_by_oid(new) else {
            return Ok(());
        };
        if own.superuser {
            return Ok(());
        }
        if !catalog.is_member(own.oid, new) {
            return Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!("must be member of role \"{}\"", owner.name),
            ));
        }
        let acl = catalog.acl_of(Guarded::Schema, schema);
        let held = catalog.privileges(new, &acl, Privileges::CREATE);
        match held.is_none() {
            false => Ok(()),
            true => {
                let name = catalog
                    .schema_by_oid(schema)
                    .map_or("", |schema| &schema.name);
                Err(denied("schema", name))
            }
        }
    }

    // ---- Statements ----

    /// The roles that a statement names, all of whose privileges this one must have.
    fn owners(&mut self, catalog: &Catalog, roles: &[Node], verb: &str) -> Result<Vec<Role>> {
        let own = self.current_role(catalog)?;
        let mut owners = Vec::new();
        for node in roles {
            let Some(NodeEnum::RoleSpec(spec)) = &node.node else {
                continue;
            };
            owners.push(self.role_of(catalog, spec)?);
        }
        for owner in &owners {
            if !catalog.has_privileges_of(own.oid, owner.oid) {
                return Err(Error::new(
                    SqlState::INSUFFICIENT_PRIVILEGE,
                    format!("permission denied to {verb} objects"),
                ));
            }
        }
        Ok(owners)
    }

    /// REASSIGN OWNED.
    pub(in crate::session) fn reassign_owned(
        &mut self,
        reassign: &ReassignOwnedStmt,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let owners = self.owners(&catalog, &reassign.roles, "reassign")?;
        let new = reassign.newrole.as_ref();
        let new = new.ok_or_else(|| Error::internal("REASSIGN OWNED to nobody"))?;
        let new = self.role_of(&catalog, new)?;
        let own = self.current_role(&catalog)?;
        if !catalog.has_privileges_of(own.oid, new.oid) {
            return Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                "permission denied to reassign objects",
            ));
        }
        refuse_system(&owners, "reassign ownership of objects")?;
        let is_theirs = |oid: u32| owners.iter().any(|owner| owner.oid == oid);
        for table in catalog.tables.iter().filter(|table| stands_alone(table)) {
            if is_theirs(table.owner) {
                self.give_relation(&catalog, table, new.oid)?;
            }
        }
        for made in catalog
            .user_types
            .iter()
            .filter(|made| is_theirs(made.owner))
        {
            self.lock_type(&catalog, made.id, RowLock::Update)?;
            self.put_type_owner(&catalog, made, new.oid)?;
        }
        for routine in catalog
            .routines
            .iter()
            .filter(|known| is_theirs(known.owner))
        {
            self.give_lists(&catalog, Address::PROC, routine.oid, routine.owner, new.oid)?;
            let given = Routine {
                owner: new.oid,
                ..(**routine).clone()
            };
            self.update_routine(&catalog, routine, &given)?;
        }
        for known in catalog
            .extensions
            .iter()
            .filter(|known| is_theirs(known.owner))
        {
            let given = Extension {
                owner: new.oid,
                ..known.clone()
            };
            let open = self.open.as_mut();
            let open = open.ok_or_else(|| Error::internal("nothing is open"))?;
            extension_store::update(open.txn.as_mut(), catalog.database.oid, &given)?;
        }
        for known in catalog
            .collations
            .iter()
            .filter(|known| is_theirs(known.owner))
        {
            self.lock_collation(&catalog, known.oid, RowLock::Update)?;
            let given = Collation {
                owner: new.oid,
                ..known.clone()
            };
            self.put_collation(&catalog, known, &given)?;
        }
        for known in catalog.all_extended() {
            if is_theirs(known.owner) {
                let given = Extended {
                    owner: new.oid,
                    ..(**known).clone()
                };
                self.put_statistics(&catalog, known, &given)?;
            }
        }
        self.give_large_objects(&catalog, &is_theirs, new.oid)?;
        for known in catalog.operators.iter() {
            if !is_theirs(known.owner) {
                continue;
            }
            self.lock_operator(&catalog, known.oid)?;
            let given = OwnOperator {
                owner: new.oid,
                ..(**known).clone()
            };
            self.put_operator(&catalog, known, &given)?;
        }
        for schema in catalog
            .schemas
            .iter()
            .filter(|schema| is_theirs(schema.owner))
        {
            self.may_create_schemas(&catalog)?;
            self.put_schema_owner(&catalog, schema, new.oid)?;
        }
        for database in catalog
            .databases
            .iter()
            .filter(|known| is_theirs(known.owner))
        {
            self.put_database_owner(&catalog, database, new.oid)?;
        }
        Ok(tag("REASSIGN OWNED"))
    }

    /// DROP OWNED.
    pub(in crate::session) fn drop_owned(
        &mut self,
        drop: &DropOwnedStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let owners = self.owners(&catalog, &drop.roles, "drop")?;
        refuse_system(&owners, "drop objects")?;
        let is_theirs = |oid: u32| owners.iter().any(|owner| owner.oid == oid);
        // A database is not dropped, so what its owner holds on it stays.
        let is_own_database = |at: &Address| {
            let database = catalog.database_by_oid(at.object);
            at.class == Address::DATABASE && database.is_some_and(|known| is_theirs(known.owner))
        };
        let own_defaults = catalog
            .defaults
            .iter()
            .filter(|known| is_theirs(known.role));
        let own_defaults: Vec<_> = own_defaults
            .map(|known| Address::of(Address::DEFAULT_ACL, known.oid))
            .collect();
        let lists: Vec<_> = catalog
            .acls
            .iter()
            .filter(|(at, _)| !is_own_database(at) && !own_defaults.contains(at))
            .map(|(at, acl)| (*at, acl, without(acl, &is_theirs)))
            .filter(|(_, before, after)| *before != after)
            .map(|(at, _, after)| (at, after))
            .collect();
        for (at, acl) in lists {
            self.put_list(&catalog, at, &acl)?;
        }
        self.drop_large_objects(&catalog, &is_theirs, |acl| without(acl, &is_theirs))?;
        self.forget_in_policies(&catalog, &is_theirs)?;
        for at in own_defaults {
            let open = self.open.as_mut();
            let open = open.ok_or_else(|| Error::internal("nothing is open"))?;
            cluster::put_acl(open.txn.as_mut(), catalog.database.oid, at, None)?;
        }
        self.forget_own_catalog();
        let cascade = drop.behavior == DropBehavior::DropCascade as i32;
        let roots = |session: &mut Session| {
            let catalog = session.current_catalog()?;
            let tables = catalog.tables.iter().filter(|table| stands_alone(table));
            let alone = |oid: u32| catalog.extension_of_member(oid).is_none();
            let tables = tables.filter(|table| is_theirs(table.owner) && alone(table.oid));
            let mut roots: Vec<_> = tables.map(|table| Object::Relation(table.oid)).collect();
            let schemas = catalog.schemas.iter();
            let schemas = schemas.filter(|schema| !is_local(schema.oid));
            let schemas = schemas.filter(|schema| is_theirs(schema.owner));
            roots.extend(schemas.map(|schema| Object::Schema(schema.oid)));
            let types = catalog.user_types.iter();
            let types = types.filter(|made| is_theirs(made.owner) && made.body != TypeBody::Base);
            roots.extend(types.map(|made| Object::Type(made.id)));
            let routines = catalog
                .routines
                .iter()
                .filter(|known| is_theirs(known.owner));
            let routines = routines.filter(|routine| alone(routine.oid));
            roots.extend(routines.map(|routine| Object::Routine(routine.oid)));
            let extensions = catalog.extensions.iter();
            let extensions = extensions.filter(|known| is_theirs(known.owner));
            roots.extend(extensions.map(|known| Object::Extension(known.oid)));
            let collations = catalog.collations.iter();
            let collations = collations.filter(|known| is_theirs(known.owner));
            roots.extend(collations.map(|known| Object::Collation(known.oid)));
            let statistics = catalog.all_extended();
            let statistics = statistics.filter(|known| is_theirs(known.owner));
            roots.extend(statistics.map(|known| Object::Statistics(known.oid)));
            let operators = catalog.operators.iter();
            let operators = operators.filter(|known| is_theirs(known.owner));
            roots.extend(operators.map(|known| Object::Operator(known.oid)));
            Ok(roots)
        };
        if !roots(self)?.is_empty() {
            self.drop_objects(roots, cascade, sink)?;
        }
        Ok(tag("DROP OWNED"))
    }
}

impl Session {
    /// Policies are no longer for certain roles; one that was for nobody else goes.
    fn forget_in_policies(
        &mut self,
        catalog: &Catalog,
        is_theirs: &impl Fn(u32) -> bool,
    ) -> Result<()> {
        let names_them = |policy: &Policy| policy.roles.iter().any(|role| is_theirs(*role));
        for table in &catalog.tables {
            if !table.policies.iter().any(names_them) {
                continue;
            }
            let mut new = (**table).clone();
            for policy in &mut new.policies {
                policy.roles.retain(|role| !is_theirs(*role));
            }
            let policies = std::mem::take(&mut new.policies).into_iter();
            let (gone, kept) = policies.partition(|policy| policy.roles.is_empty());
            new.policies = kept;
            let gone: Vec<_> = gone.into_iter().map(|policy| policy.oid).collect();
            self.put_table(&new)?;
            for oid in gone {
                let open = self.open.as_mut();
                let open = open.ok_or_else(|| Error::internal("nothing is open"))?;
                let database = catalog.database.oid;
                cluster::forget_object(open.txn.as_mut(), database, Address::POLICY, oid)?;
            }
        }
        Ok(())
    }
}

/// A list without what certain roles hold or have given.
fn without(acl: &Acl, is_theirs: &impl Fn(u32) -> bool) -> Acl {
    let kept = acl.iter();
    let kept = kept.filter(|item| !is_theirs(item.grantee) && !is_theirs(item.grantor));
    kept.copied().collect()
}

/// 2BP01 for the role that owns what the system needs.
fn refuse_system(owners: &[Role], what: &str) -> Result<()> {
    let system = owners.iter().find(|owner| owner.oid == SUPERUSER);
    match system {
        None => Ok(()),
        Some(role) => Err(Error::new(
            SqlState::of("2BP01"),
            format!(
                "cannot {what} owned by role {} because they are required by the database system",
                role.name
            ),
        )),
    }
}
