//! The next version of a catalog: a copy in which the rows that have changed are read again.
//!
//! ```text
//! version 7 + { RELATIONS 16391, NAMES u, PRIVILEGES pg_class 16391 }  →  version 8
//! ```
//! What a row was before does not matter, nor how often it has changed: it is as the transaction sees
//! it that reads it now.
//!
//! # Invariants
//! - The result equals what [`store::load`] would read, if the rows named are all that differ between
//!   the old version and what the transaction sees.
//!
//! # What it leaves out
//! Rows of databases, and of trees that this module does not know: [`apply`] says so, and the catalog
//! is read whole.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::engine::{CatalogVersion, Transaction};
use base::row::Row;
use base::{Error, Key, Result, TreeId};

use super::access::predefined;
use super::cluster::{self, address_of, Said};
use super::layout::{
    AUDIT, CASTS, COLLATIONS, COMMENTS, EXTENSIONS, MEMBERS, NAMES, OPERATORS, PRIVILEGES,
    RELATIONS, ROLES, ROUTINES, SCHEMAS, SETTINGS, STATISTICS, USER_TYPES,
};
use super::{descriptor, statistics, store, Catalog, Routines, QUORATE};

/// A version of a catalog of which a transaction sees all rows but these as they are in `old`; `None`
/// if it must be read whole.
///
/// # Errors
/// What reading raises.
pub fn apply<'k>(
    old: &Catalog,
    version: CatalogVersion,
    txn: &mut dyn Transaction,
    changed: impl IntoIterator<Item = &'k (TreeId, Key)>,
) -> Result<Option<Catalog>> {
    let mut new = old.clone();
    new.version = version;
    let mut is_other = false;
    let changed: BTreeSet<&(TreeId, Key)> = changed.into_iter().collect();
    let (mut members, mut settings) = (false, false);
    let (mut user_types, mut routines, mut extensions) = (false, false, false);
    let (mut casts, mut collations, mut operators) = (false, false, false);
    for (tree, key) in changed {
        let oids = oids_of(*tree, key)?;
        match *tree {
            // What keeps names unique, and what was done by whom, is no part of a catalog.
            TreeId::DESCRIPTORS | NAMES | AUDIT => continue,
            MEMBERS => members = true,
            SETTINGS => settings = true,
            ROLES => new.read_role(txn, key, &oids)?,
            RELATIONS | SCHEMAS if oids.first() != Some(&old.database.oid) => continue,
            RELATIONS => new.read_table(txn, key, &oids)?,
            SCHEMAS => new.read_schema(txn, key, &oids)?,
            USER_TYPES if oids.first() != Some(&old.database.oid) => continue,
            USER_TYPES => user_types = true,
            ROUTINES if oids.first() != Some(&old.database.oid) => continue,
            ROUTINES => routines = true,
            EXTENSIONS if oids.first() != Some(&old.database.oid) => continue,
            EXTENSIONS => extensions = true,
            CASTS if oids.first() != Some(&old.database.oid) => continue,
            CASTS => casts = true,
            COLLATIONS if oids.first() != Some(&old.database.oid) => continue,
            COLLATIONS => collations = true,
            OPERATORS if oids.first() != Some(&old.database.oid) => continue,
            OPERATORS => operators = true,
            COMMENTS | PRIVILEGES if ![0, old.database.oid].contains(&oids[0]) => continue,
            STATISTICS if oids[0] != old.database.oid => continue,
            STATISTICS => new.read_statistics(txn, key, &oids)?,
            COMMENTS => new.read_comment(txn, key, &oids)?,
            PRIVILEGES => new.read_privileges(txn, key, &oids)?,
            _ => return Ok(None),
        }
        is_other = true;
    }
    if members {
        let mut all = predefined().1;
        all.extend(cluster::load_members(txn)?);
        new.members = all.into();
    }
    if settings {
        new.settings = cluster::load_settings(txn)?.into();
    }
    if user_types {
        let all = cluster::load_user_types(txn, old.database.oid)?;
        new.user_types = super::UserTypes::new(all);
    }
    if routines {
        new.routines = Routines::new(cluster::load_routines(txn, old.database.oid)?);
    }
    if extensions {
        new.extensions = cluster::load_extensions(txn, old.database.oid)?.into();
    }
    if casts {
        let all = cluster::load_casts(txn, old.database.oid)?;
        new.casts = Arc::new(super::Casts::new(all));
    }
    if collations {
        new.collations = cluster::load_collations(txn, old.database.oid)?.into();
    }
    if operators {
        let all = cluster::load_operators(txn, old.database.oid)?;
        new.operators = Arc::new(super::Operators::new(all));
    }
    if is_other {
        new.system = Arc::default();
    }
    new.debt.merge(txn.debt());
    Ok(Some(new))
}

/// The numbers of a key; none of keys that are not made of numbers.
fn oids_of(tree: TreeId, key: &[u8]) -> Result<Vec<u32>> {
    let parts = match tree {
        ROLES => 1,
        RELATIONS | SCHEMAS | MEMBERS | SETTINGS | USER_TYPES | ROUTINES | EXTENSIONS
        | COLLATIONS | OPERATORS => 2,
        CASTS => 3,
        COMMENTS | PRIVILEGES | STATISTICS => 4,
        _ => return Ok(Vec::new()),
    };
    if key.len() != 4 * parts {
        return Err(Error::corrupted("a catalog key of another length"));
    }
    let oids = key.chunks_exact(4);
    Ok(oids
        .map(|oid| oid.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        .collect())
}

/// The row of a key, if it is there.
fn read(txn: &mut dyn Transaction, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut row = Vec::new();
    Ok(txn.get(tree, key, &mut row)?.then_some(row))
}

impl Catalog {
    fn read_table(&mut self, txn: &mut dyn Transaction, key: &[u8], oids: &[u32]) -> Result<()> {
        let table = read(txn, RELATIONS, key)?;
        let table = table.map(|row| descriptor::decode(&row)).transpose()?;
        self.tables.put(oids[1], table.map(Arc::new));
        Ok(())
    }

    fn read_schema(&mut self, txn: &mut dyn Transaction, key: &[u8], oids: &[u32]) -> Result<()> {
        let row = read(txn, SCHEMAS, key)?;
        let schema = row.map(|row| store::schema_of(oids[1], &row)).transpose()?;
        let schemas = self.schemas.make_mut();
        schemas.retain(|known| known.oid != oids[1]);
        if let Some(schema) = schema {
            // The one that is written nowhere is the last.
            let is_before = |known: &super::Schema| known.oid < schema.oid && known.oid != QUORATE;
            schemas.insert(schemas.partition_point(is_before), schema);
        }
        Ok(())
    }

    fn read_role(&mut self, txn: &mut dyn Transaction, key: &[u8], oids: &[u32]) -> Result<()> {
        let role = match read(txn, ROLES, key)? {
            Some(row) => Some(cluster::role_of(oids[0], &Row::parse(&row)?)?),
            None => None,
        };
        let roles = self.roles.make_mut();
        roles.retain(|known| known.oid != oids[0]);
        if let Some(role) = role {
            roles.insert(roles.partition_point(|known| known.oid < role.oid), role);
        }
        Ok(())
    }

    fn read_comment(&mut self, txn: &mut dyn Transaction, key: &[u8], oids: &[u32]) -> Result<()> {
        let address = address_of(oids);
        match read(txn, COMMENTS, key)? {
            Some(row) => {
                let text = store::text(&Row::parse(&row)?, 0)?;
                self.comments.insert(address, text);
            }
            None => {
                self.comments.remove(&address);
            }
        }
        Ok(())
    }

    fn read_statistics(
        &mut self,
        txn: &mut dyn Transaction,
        key: &[u8],
        oids: &[u32],
    ) -> Result<()> {
        let place = statistics::place_of(oids);
        match read(txn, STATISTICS, key)? {
            Some(row) => {
                self.statistics.insert(place, statistics::decode(&row)?);
            }
            None => {
                self.statistics.remove(&place);
            }
        }
        Ok(())
    }

    fn read_privileges(
        &mut self,
        txn: &mut dyn Transaction,
        key: &[u8],
        oids: &[u32],
    ) -> Result<()> {
        let address = address_of(oids);
        let row = read(txn, PRIVILEGES, key)?;
        let said = row.map(|row| Said::read(address, &row)).transpose()?;
        if address.class == cluster::Address::DEFAULT_ACL {
            let defaults = self.defaults.make_mut();
            defaults.retain(|known| known.oid != address.object);
            if let Some(default) = said.as_ref().and_then(|said| said.default) {
                let place = defaults.partition_point(|known| known.oid < default.oid);
                defaults.insert(place, default);
            }
        }
        if address.class == cluster::Address::PARAMETER_ACL {
            self.parameters.remove(&address.object);
            if let Some(name) = said.as_ref().and_then(|said| said.parameter.clone()) {
                self.parameters.insert(address.object, name);
            }
        }
        match said {
            Some(said) => self.acls.insert(address, said.acl),
            None => {
                self.acls.remove(&address);
            }
        }
        Ok(())
    }
}
