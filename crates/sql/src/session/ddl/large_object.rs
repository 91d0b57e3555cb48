//! What DDL does with large objects: GRANT, COMMENT, ALTER … OWNER, and what becomes of those of a role.
//!
//! ```text
//! grant select on large object 24576 to reader
//! the row of the object ([`catalog::large_object`]), which nobody else writes meanwhile
//! ```
//! They are made, written and removed by functions (`execution/src/exec/large_objects.rs`).

use base::engine::{RowLock, Transaction};
use base::{Error, Result, SqlState};
use pg_query::protobuf::Node;

use super::super::utility::tag;
use super::super::{CommandTag, Session};
use super::owned::given_on;
use catalog::access::{must_own, Acl, AclItem};
use catalog::cluster::Address;
use catalog::large_object::{self, missing, Sight};
use catalog::{Catalog, LargeObject, Role};
use syntax::parser::NodeEnum;
use types::{Datum, TypeId, NO_TYPMOD};

impl Session {
    fn large_object_txn(&mut self) -> Result<&mut dyn Transaction> {
        match &mut self.open {
            Some(open) => Ok(open.txn.as_mut()),
            None => Err(Error::internal("nothing is open")),
        }
    }

    /// The large object that a number in a statement means.
    ///
    /// # Errors
    /// 22003 for what is no oid; 42704.
    pub(super) fn named_large_object(
        &mut self,
        catalog: &Catalog,
        node: Option<&Node>,
    ) -> Result<LargeObject> {
        let oid = match node.and_then(|node| node.node.as_ref()) {
            // As PostgreSQL, which takes its bits.
            Some(NodeEnum::Integer(number)) => number.ival as u32,
            Some(NodeEnum::Float(number)) => {
                match types::input(&self.eval, TypeId::OID, NO_TYPMOD, &number.fval)? {
                    Datum::Oid(oid) => oid,
                    _ => return Err(Error::internal("an oid of another type")),
                }
            }
            _ => return Err(Error::internal("a large object without a number")),
        };
        let (database, sight) = (catalog.database.oid, Sight::Newest);
        let found = large_object::find(self.large_object_txn()?, database, oid, sight)?;
        found.ok_or_else(|| missing(oid))
    }

    /// Locks a large object that is to be changed; what it is now.
    pub(super) fn hold_large_object(&mut self, catalog: &Catalog, oid: u32) -> Result<LargeObject> {
        let (database, strength) = (catalog.database.oid, RowLock::NoKeyUpdate);
        let held = large_object::hold(self.large_object_txn()?, database, oid, strength)?;
        held.ok_or_else(|| missing(oid))
    }

    /// Replaces what is known of a large object that is held.
    pub(super) fn put_large_object(
        &mut self,
        catalog: &Catalog,
        object: &LargeObject,
    ) -> Result<()> {
        self.shared.large_objects.wrote = true;
        large_object::update(self.large_object_txn()?, catalog.database.oid, object)
    }

    /// # Errors
    /// 42501 for another role's.
    fn must_own_large_object(&mut self, catalog: &Catalog, object: &LargeObject) -> Result<()> {
        let own = self.shared.settings.current_role();
        match catalog.has_privileges_of(own, object.owner) {
            true => Ok(()),
            false => Err(must_own("large object", &object.oid.to_string())),
        }
    }

    /// COMMENT ON LARGE OBJECT.
    pub(super) fn commented_large_object(
        &mut self,
        catalog: &Catalog,
        node: Option<&Node>,
    ) -> Result<Address> {
        let object = self.named_large_object(catalog, node)?;
        if !self.shared.settings.parsed().open_large_objects {
            self.must_own_large_object(catalog, &object)?;
        }
        self.hold_large_object(catalog, object.oid)?;
        Ok(Address::of(Address::LARGE_OBJECT, object.oid))
    }

    /// ALTER LARGE OBJECT … OWNER TO.
    pub(super) fn give_large_object(
        &mut self,
        catalog: &Catalog,
        node: Option<&Node>,
        owner: &Role,
    ) -> Result<CommandTag> {
        let object = self.named_large_object(catalog, node)?;
        if object.owner != owner.oid {
            self.must_own_large_object(catalog, &object)?;
            let own = self.shared.settings.current_role();
            if !catalog.is_member(own, owner.oid) {
                return Err(Error::new(
                    SqlState::INSUFFICIENT_PRIVILEGE,
                    format!("must be member of role \"{}\"", owner.name),
                ));
            }
            self.put_large_object_owner(catalog, object.oid, owner.oid)?;
        }
        Ok(tag("ALTER LARGE OBJECT"))
    }

    fn put_large_object_owner(&mut self, catalog: &Catalog, oid: u32, new: u32) -> Result<()> {
        let mut object = self.hold_large_object(catalog, oid)?;
        let old = std::mem::replace(&mut object.owner, new);
        object.acl = object.acl.map(|acl| given_on(&acl, old, new));
        self.put_large_object(catalog, &object)
    }

    fn large_objects_where(
        &mut self,
        database: u32,
        is_wanted: impl Fn(&LargeObject) -> bool,
    ) -> Result<Vec<LargeObject>> {
        large_object::all(self.large_object_txn()?, database, Sight::Newest, is_wanted)
    }

    /// REASSIGN OWNED.
    pub(super) fn give_large_objects(
        &mut self,
        catalog: &Catalog,
        is_theirs: &impl Fn(u32) -> bool,
        new: u32,
    ) -> Result<()> {
        let database = catalog.database.oid;
        for object in self.large_objects_where(database, |object| is_theirs(object.owner))? {
            self.put_large_object_owner(catalog, object.oid, new)?;
        }
        Ok(())
    }

    /// DROP OWNED: removes those of some roles, and makes the lists of others those of `without`.
    pub(super) fn drop_large_objects(
        &mut self,
        catalog: &Catalog,
        is_theirs: &impl Fn(u32) -> bool,
        without: impl Fn(&Acl) -> Acl,
    ) -> Result<()> {
        let database = catalog.database.oid;
        let is_named = |object: &LargeObject| {
            let acl = object.acl.as_ref();
            is_theirs(object.owner) || acl.is_some_and(|acl| without(acl) != *acl)
        };
        for object in self.large_objects_where(database, is_named)? {
            if is_theirs(object.owner) {
                self.drop_large_object(database, object.oid)?;
                continue;
            }
            let mut object = self.hold_large_object(catalog, object.oid)?;
            object.acl = object.acl.map(|acl| without(&acl));
            self.put_large_object(catalog, &object)?;
        }
        Ok(())
    }

    fn drop_large_object(&mut self, database: u32, oid: u32) -> Result<()> {
        let held = large_object::hold(self.large_object_txn()?, database, oid, RowLock::Update)?;
        if held.is_none() {
            return Ok(());
        }
        self.shared.large_objects.wrote = true;
        for view in self.shared.large_objects.close_object(oid) {
            self.large_object_txn()?.drop_view(view);
        }
        large_object::remove(self.large_object_txn()?, database, oid)?;
        Ok(())
    }

    /// The large objects of a database that need a role, with the oids: as messages list those of this one.
    pub(super) fn large_objects_needing(
        &mut self,
        database: u32,
        role: u32,
    ) -> Result<Vec<(u32, String)>> {
        let named = |item: &AclItem| item.grantee == role || item.grantor == role;
        let objects = self.large_objects_where(database, |object| {
            let acl = object.acl.as_ref();
            object.owner == role || acl.is_some_and(|acl| acl.iter().any(named))
        })?;
        let needed = objects.into_iter().map(|object| {
            // What an owner holds goes with what it owns.
            let how = match object.owner == role {
                true => "owner of",
                false => "privileges for",
            };
            (object.oid, format!("{how} large object {}", object.oid))
        });
        Ok(needed.collect())
    }
}
