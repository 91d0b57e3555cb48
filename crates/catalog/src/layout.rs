//! Where the rows of the catalog lie: the trees and sequences that are there from the start, and what
//! their keys begin with.
//!
//! ```text
//! RELATIONS   database 5, oid 16384   the descriptor of a table
//! OIDS        16385 is the next that is given
//! ```
//! It stands below [`crate::local`], which tells by tree and key what belongs to one session, and
//! below [`crate`], which reads and writes the rows.

use base::{SequenceId, TreeId};

/// Databases, of the whole cluster.
pub const DATABASES: TreeId = TreeId(TreeId::FIRST_CATALOG.0);
/// Roles, of the whole cluster.
pub const ROLES: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 1);
/// Schemas.
pub const SCHEMAS: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 2);
/// Tables with all that belongs to them.
pub const RELATIONS: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 3);
/// Names that may be there only once.
pub const NAMES: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 4);
/// Types that users have made.
pub const USER_TYPES: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 5);
/// Memberships: role and member.
pub const MEMBERS: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 20);
/// Settings of roles in databases; 0 is any.
pub const SETTINGS: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 21);
/// Comments: database, and the object's address.
pub const COMMENTS: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 22);
/// Lists of privileges: database, and the object's address.
pub const PRIVILEGES: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 23);
/// Functions and procedures.
pub const ROUTINES: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 24);
/// What ANALYZE has found, and how much it is to find.
pub const STATISTICS: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 26);
/// Extensions that were created.
pub const EXTENSIONS: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 27);
/// Casts that users have made.
pub const CASTS: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 28);
/// Collations that users have made.
pub const COLLATIONS: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 29);
/// Operators that users have made.
pub const OPERATORS: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 31);
/// What was done to objects, roles and privileges, by number.
pub const AUDIT: TreeId = TreeId(TreeId::FIRST_CATALOG.0 + 30);

/// Oids that were given, counted from [`FIRST_USER_OID`].
pub const OIDS: SequenceId = SequenceId(1);
/// Trees that were given, counted from [`TreeId::FIRST_USER`].
pub const TREES: SequenceId = SequenceId(2);
/// Numbers of long values.
pub const LONG_VALUES: SequenceId = SequenceId(3);
/// Numbers of audit rows.
pub const AUDIT_NUMBERS: SequenceId = SequenceId(4);

/// The oid of the first object made by a user.
pub const FIRST_USER_OID: u32 = 16_384;

/// The oid of `pg_largeobject`, in the addresses of large objects.
pub const LARGE_OBJECT: u32 = 2_613;

/// The access method of tables.
pub const HEAP: u32 = 2;
/// The access method of indexes that are trees.
pub const BTREE: u32 = 403;

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Oids.
    Oids,
    /// Trees.
    Trees,
}

/// What [`base::engine::Engine::advance`] would have to return so that an oid or a tree has the given
/// number; none for other counters.
pub fn local_number(sequence: SequenceId, number: impl FnOnce(Counter) -> u64) -> Option<u64> {
    match sequence {
        OIDS => Some(number(Counter::Oids) + 1 - u64::from(FIRST_USER_OID)),
        TREES => Some(number(Counter::Trees) + 1 - TreeId::FIRST_USER.0),
        _ => None,
    }
}

/// The oid by which a row of the catalog belongs to one session or to all.
pub fn local_part(tree: TreeId, key: &[u8]) -> Option<u32> {
    let start = match tree {
        RELATIONS | SCHEMAS | STATISTICS | ROUTINES => 4,
        NAMES => 5,
        // Whoever makes a large object chooses its oid.
        COMMENTS if key.get(4..8) == Some(&LARGE_OBJECT.to_be_bytes()) => return None,
        COMMENTS | PRIVILEGES => 8,
        _ => return None,
    };
    let oid = key.get(start..)?.first_chunk()?;
    Some(u32::from_be_bytes(*oid))
}
