//! What there is: databases, roles, schemas, tables, indexes, and how they are kept.
//!
//! A [`Catalog`] is everything of one database that binding a statement needs. The first of a process
//! is read whole from the catalog trees ([`store`]); each later version is a copy of one before, in
//! which the rows that have changed since are read again ([`changes`]), and which shares all the rest
//! with it ([`persistent`]). All sessions of a node use the same one ([`shared`]). A table is one *descriptor* row:
//! its columns, constraints and indexes in one place, so that DDL on a table is one row and a
//! reader never sees half of it. The tables of `pg_catalog` are views over the [`Catalog`]
//! ([`system`]).
//!
//! | tree | key | row |
//! |---|---|---|
//! | [`crate::layout::DATABASES`] | oid | name, owner |
//! | [`crate::layout::ROLES`] | oid | name, flags |
//! | [`crate::layout::SCHEMAS`] | database, oid | name, owner |
//! | [`crate::layout::RELATIONS`] | database, oid | the descriptor ([`descriptor`]) |
//! | [`crate::layout::USER_TYPES`] | database, oid | types of one's own ([`user_type`]) |
//! | [`cluster`]'s trees | addresses of objects | memberships, settings, comments, privileges |
//! | [`crate::layout::ROUTINES`] | database, oid | the function or procedure ([`routine`]) |
//! | [`crate::layout::EXTENSIONS`] | database, oid | extensions that were created ([`extension`]) |
//! | [`crate::layout::CASTS`] | database, source, target | casts that users have made ([`cast`]) |
//! | [`crate::layout::COLLATIONS`] | database, oid | collations that users have made ([`collation`]) |
//! | [`crate::layout::OPERATORS`] | database, oid | operators that users have made ([`operator`]) |
//! | [`crate::layout::STATISTICS`] | database, table, column, what | what ANALYZE has found ([`statistics`]), of several columns too ([`extended`]) |
//! | [`large_object::tree_of`] | oid, perhaps a page | large objects ([`large_object`]), which no catalog holds |
//! | [`crate::layout::NAMES`] | class, database, schema, name | oid: what keeps names unique |
//!
//! # What it leaves out
//! Loading only what a statement names: all of a database's tables are in memory, once for a node.

pub mod access;
pub mod audit;
pub mod cast;
pub mod cast_store;
pub mod changes;
pub mod checked;
pub mod cluster;
pub mod collation;
pub mod collation_store;
mod column_statistics;
pub mod column_storage;
pub mod composite;
pub mod computed;
pub mod configuration;
pub mod default_acl;
pub mod depend;
pub mod descriptor;
pub mod domain;
pub mod exclusion;
pub mod extended;
pub mod extension;
pub mod extension_store;
pub mod foreign;
pub mod index_form;
pub mod inheritance;
pub mod inverted;
pub mod large_object;
pub mod large_object_pages;
pub mod layout;
mod lists;
pub mod local;
pub mod operator;
pub mod operator_class;
pub mod operator_store;
pub mod partition;
pub mod persistent;
pub mod policy;
pub mod routine;
pub mod rule;
pub mod sequence;
pub mod shared;
pub mod sql_body;
pub mod statistics;
pub mod statistics_store;
pub mod store;
pub mod system;
pub mod tables;
pub mod trigger;
pub mod type_store;
pub mod user_type;
pub mod view;

use base::key::ColumnOrder;
use std::sync::{Arc, OnceLock};

use base::engine::CatalogVersion;
use base::{Debt, TreeId};

use index_form::IndexForm;

use types::TypeId;

use access::{Acl, Membership};
use cluster::{Address, Cluster, RoleSettings};
use default_acl::DefaultAcl;

pub use cast::{CastHow, Casts, OwnCast};
pub use checked::Checked;
pub use collation::Collation;
pub use column_storage::{Compression, Storage};
pub use computed::{Computed, ComputedKey, KeyOrder, KeySource};
pub use depend::{Dependency, DependencyKind, Object};
pub use domain::{Domain, DomainCheck};
pub use exclusion::Exclusion;
pub use extension::Extension;
pub use foreign::{Action, ForeignKey, ForeignPart};
pub use inheritance::Inheritance;
pub use large_object::LargeObject;
pub use operator::{Operators, OwnOperator};
pub use partition::{PartitionKey, PartitionOf};
pub use persistent::{SharedList, SharedMap};
pub use policy::{Policy, PolicyCommand, RowSecurity};
pub use routine::{Routine, RoutineKind, Routines};
pub use rule::Rule;
pub use sequence::{Owner, Sequence};
pub use tables::Tables;
pub use trigger::Trigger;
pub use user_type::{RangeOf, TypeBody, UserType, UserTypes};
pub use view::{CheckOption, Uses, View};

/// The oid of schema `pg_catalog`.
pub const PG_CATALOG: u32 = 11;
/// The oid of schema `public`.
pub const PUBLIC: u32 = 2_200;
/// The oid of schema `information_schema`.
pub const INFORMATION_SCHEMA: u32 = 13_207;
/// The oid of schema `quorate`, which is in every database and written nowhere.
pub const QUORATE: u32 = 9_100;
/// The oid of role `postgres`.
pub const SUPERUSER: u32 = 10;
/// The oid of database `postgres`.
pub const POSTGRES_DATABASE: u32 = 5;
/// The oid of database `template1`.
pub const TEMPLATE1_DATABASE: u32 = 1;
/// The oid of database `template0`, in which no session may begin.
pub const TEMPLATE0_DATABASE: u32 = 4;

/// A database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Database {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The role that owns it.
    pub owner: u32,
    /// Whether anyone who may create databases may copy it.
    pub template: bool,
    /// Whether sessions may begin in it.
    pub open: bool,
    /// How many sessions there may be in it, or -1.
    pub connection_limit: i32,
    /// By which locale texts are ordered.
    pub collate: Locale,
    /// Which characters its letters are, and what their other cases are.
    pub ctype: Locale,
}

/// A locale that databases can have; texts are in the order of code points in either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locale {
    /// `C.UTF-8`, whose letters are those of all scripts.
    #[default]
    Utf8,
    /// `C`, whose letters are those of ASCII.
    C,
}

impl Locale {
    /// The locale of a name; none for one that is not here. `POSIX` is C.
    pub fn named(name: &str) -> Option<Locale> {
        match name.to_ascii_lowercase().as_str() {
            "c" | "posix" => Some(Locale::C),
            "c.utf-8" | "c.utf8" => Some(Locale::Utf8),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Locale::Utf8 => "C.UTF-8",
            Locale::C => "C",
        }
    }
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// May it do everything?
    pub superuser: bool,
    /// May it connect?
    pub login: bool,
    /// Does it have the privileges of the roles whose member it is?
    pub inherit: bool,
    /// May it make roles?
    pub create_role: bool,
    /// May it make databases?
    pub create_database: bool,
    /// May it replicate?
    pub replication: bool,
    /// Does it pass by row level security?
    pub bypass_rls: bool,
    /// How many sessions it may have, or -1.
    pub connection_limit: i32,
    /// What proves that someone knows its password, as `pg_authid` keeps it.
    pub password: Option<String>,
    /// Until when the password holds, in microseconds since 2000-01-01 UTC.
    pub valid_until: Option<i64>,
}

impl Default for Role {
    fn default() -> Role {
        Role {
            oid: 0,
            name: String::new(),
            superuser: false,
            login: false,
            inherit: true,
            create_role: false,
            create_database: false,
            replication: false,
            bypass_rls: false,
            connection_limit: -1,
            password: None,
            valid_until: None,
        }
    }
}

impl Default for Database {
    fn default() -> Database {
        Database {
            oid: 0,
            name: String::new(),
            owner: SUPERUSER,
            template: false,
            open: true,
            connection_limit: -1,
            collate: Locale::default(),
            ctype: Locale::default(),
        }
    }
}

/// A schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The role that owns it.
    pub owner: u32,
}

/// What a relation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RelationKind {
    /// A table of rows.
    #[default]
    Table,
    /// A view over the catalog or the cluster's state, computed when it is read.
    System,
    /// A query with a name.
    View,
    /// A query with a name, and the rows that it had when it was last refreshed.
    MaterializedView,
    /// A sequence of numbers.
    Sequence,
    /// A table whose rows are in its partitions.
    Partitioned,
}

impl RelationKind {
    /// What PostgreSQL's messages call it.
    pub fn noun(self) -> &'static str {
        match self {
            RelationKind::Table | RelationKind::System | RelationKind::Partitioned => "table",
            RelationKind::View => "view",
            RelationKind::MaterializedView => "materialized view",
            RelationKind::Sequence => "sequence",
        }
    }

    /// Whether it has rows in a tree.
    pub fn has_rows(self) -> bool {
        matches!(self, RelationKind::Table | RelationKind::MaterializedView)
    }
}

/// A table, or another relation that is named and locked like one: a view or a sequence has columns
/// too, and a tree that is only locked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Its oid.
    pub oid: u32,
    /// The schema's oid.
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// The role that owns it.
    pub owner: u32,
    /// What it is.
    pub kind: RelationKind,
    /// Where its rows are. TRUNCATE gives it another.
    pub tree: TreeId,
    /// Where those of its values are that are too long for a row; 0 if it has none.
    pub long_tree: TreeId,
    /// Its columns, dropped ones included.
    pub columns: Vec<Column>,
    /// Its indexes; the primary key, if there is one, is the first.
    pub indexes: Vec<Index>,
    /// Its CHECK constraints.
    pub checks: Vec<Check>,
    /// Its FOREIGN KEY constraints.
    pub foreign_keys: Vec<ForeignKey>,
    /// Whether policies say who may see and write which of its rows.
    pub row_security: bool,
    /// Whether they do so for its owner too.
    pub force_row_security: bool,
    /// Whether it was made UNLOGGED. Its rows are kept as any others are.
    pub unlogged: bool,
    /// Its policies, which may be there without being in force.
    pub policies: Vec<Policy>,
    /// Its triggers, by name.
    pub triggers: Vec<Trigger>,
    /// Its rules, by name; the query of a view is none of them.
    pub rules: Vec<Rule>,
    /// Its storage parameters; those of a table change nothing.
    pub options: Vec<(String, String)>,
    /// The query of a view or a materialized view.
    pub view: Option<View>,
    /// The numbers of a sequence.
    pub sequence: Option<Sequence>,
    /// By what its rows are divided, if it is partitioned.
    pub partition_key: Option<Box<PartitionKey>>,
    /// Whose partition it is, if it is one.
    pub partition_of: Option<Box<PartitionOf>>,
    /// What its foreign keys to partitioned tables are for the partitions of those.
    pub foreign_parts: Vec<ForeignPart>,
    /// From whom it inherits and who inherits from it, if there is anything to say of that.
    pub inheritance: Option<Box<Inheritance>>,
    /// The composite type that it is a table OF; none if 0.
    pub of_type: TypeId,
    /// What of a row that changes is told to others.
    pub replica_identity: ReplicaIdentity,
}

/// What of the old row a change tells whoever follows the table's changes, of whom there are none: it is shown and
/// dumped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaIdentity {
    /// The primary key.
    #[default]
    Default,
    /// All of it.
    Full,
    /// Nothing.
    Nothing,
    /// The columns of an index, which says so of itself.
    Index,
}

impl ReplicaIdentity {
    /// All, in the order of their codes in a table's row.
    const ALL: [ReplicaIdentity; 4] = [
        ReplicaIdentity::Default,
        ReplicaIdentity::Full,
        ReplicaIdentity::Nothing,
        ReplicaIdentity::Index,
    ];

    /// As `pg_class.relreplident` has it.
    pub fn letter(self) -> u8 {
        match self {
            ReplicaIdentity::Default => b'd',
            ReplicaIdentity::Full => b'f',
            ReplicaIdentity::Nothing => b'n',
            ReplicaIdentity::Index => b'i',
        }
    }

    /// The one of that letter.
    pub fn of_letter(letter: u8) -> Option<ReplicaIdentity> {
        ReplicaIdentity::ALL
            .into_iter()
            .find(|identity| identity.letter() == letter)
    }
}

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type; of a column of a domain the domain's base type.
    pub type_id: TypeId,
    /// The type's modifier, or -1.
    pub typmod: i32,
    /// The domain, or the array over one, that its values are of; none if 0.
    pub domain: TypeId,
    /// The oid of its collation, or 0 for that of its type.
    pub collation: u32,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// The default, as SQL; of a generated column what it is computed from. Relations in it are
    /// named by their oids ([`view`]).
    pub default: Option<String>,
    /// The relations that the default names, by oid.
    pub default_uses: Vec<u32>,
    /// Whether and how it takes its values from a sequence of its own.
    pub identity: Identity,
    /// Whether it is computed from other columns of its row, and stored.
    pub generated: bool,
    /// The places of those columns.
    pub generated_from: Vec<usize>,
    /// Whether it was dropped.
    pub dropped: bool,
    /// The stored value that rows have which are older than the column: its default when it was
    /// added.
    pub missing: Option<Vec<u8>>,
    /// What ALTER COLUMN … SET (…) has said, in that order.
    pub options: Vec<(String, String)>,
    /// What was said of how its values are kept; that of its type if nothing.
    pub said_storage: Option<Storage>,
    /// By which method they are to be compressed, if that was said.
    pub compression: Option<Compression>,
}

impl Column {
    /// The type that it was given, and its modifier.
    pub fn declared(&self) -> (TypeId, i32) {
        match self.domain {
            TypeId::NONE => (self.type_id, self.typmod),
            domain => (domain, types::NO_TYPMOD),
        }
    }

    /// How its values are kept.
    pub fn storage(&self) -> Storage {
        let said = self.said_storage;
        said.unwrap_or_else(|| Storage::of_type(self.type_id))
    }

    /// How many values ANALYZE is to take the column to have, as [`ColumnStatistics::distinct`] says it.
    pub fn said_distinct(&self) -> Option<f32> {
        let said = self.options.iter().find(|known| known.0 == "n_distinct");
        let said = said.and_then(|known| known.1.parse::<f64>().ok());
        said.map(|said| said as f32).filter(|said| *said != 0.0)
    }
}

/// GENERATED AS IDENTITY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// It is no such column.
    #[default]
    None,
    /// Other values need OVERRIDING SYSTEM VALUE.
    Always,
    /// Other values may be given.
    ByDefault,
}

/// An index of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// Whether it is the primary key, by which the table's own tree is ordered.
    pub primary: bool,
    /// Whether it refuses equal keys.
    pub unique: bool,
    /// Whether NULLs are equal to it; then it is a computed one, or a checked one.
    pub nulls_equal: bool,
    /// The oid of the constraint it enforces, or 0.
    pub constraint: u32,
    /// What is said of the constraint if rows are compared later; then it is not `unique`.
    pub checked: Option<Checked>,
    /// What it has if it is of an exclusion constraint; then it is a computed one, and not `unique`.
    pub exclusion: Option<Box<Exclusion>>,
    /// Its entries; for the primary key the tree of the table.
    pub tree: TreeId,
    /// Whether CLUSTER without USING is by it.
    pub clustered: bool,
    /// Whether it is the one of [`ReplicaIdentity::Index`].
    pub replica_identity: bool,
    /// Its columns, most significant first; none if it is a computed one.
    pub columns: Vec<IndexedColumn>,
    /// The places of columns that it only includes.
    pub include: Vec<usize>,
    /// What it has if it is on expressions or has a condition.
    pub computed: Option<Box<Computed>>,
    /// Its method, operator classes and parameters.
    pub form: IndexForm,
}

/// A column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedColumn {
    /// Its place among the table's columns, from 0.
    pub column: usize,
    /// How it is ordered.
    pub order: ColumnOrder,
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The condition, as SQL.
    pub condition: String,
    /// Whether the rows that were there when it was made are known to meet it.
    pub validated: bool,
    /// NO INHERIT; means nothing without inheritance.
    pub no_inherit: bool,
    /// The places of the columns that it names.
    pub columns: Vec<usize>,
}

impl Table {
    /// The places of the columns that a foreign key could refer to (some of them twice): those of
    /// unique indexes on columns alone. What changes none of them leaves the row's keys as they are.
    pub fn key_columns(&self) -> impl Iterator<Item = usize> + '_ {
        let unique = self.indexes.iter().filter(|index| index.is_unique());
        unique.flat_map(|index| index.columns.iter().map(|column| column.column))
    }

    /// The oid of the index whose columns are told of a row that changes.
    pub fn identity_index(&self) -> Option<u32> {
        let mut indexes = self.indexes.iter();
        let found = match self.replica_identity {
            ReplicaIdentity::Default => self.primary_index(),
            ReplicaIdentity::Index => indexes.find(|index| index.replica_identity),
            ReplicaIdentity::Full | ReplicaIdentity::Nothing => None,
        };
        found.map(|index| index.oid)
    }

    /// The primary key.
    pub fn primary_key(&self) -> Option<&Index> {
        self.indexes.first().filter(|index| index.primary)
    }

    /// The place of a column that is not dropped.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|column| !column.dropped && column.name == name)
    }

    /// The index whose entries are in that tree.
    pub fn index_of_tree(&self, tree: TreeId) -> Option<&Index> {
        self.indexes.iter().find(|index| index.tree == tree)
    }
}

/// Everything of one database that binding a statement needs. Copies share what they have in common.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The version it was read at; it holds while the engine's is the same.
    pub version: CatalogVersion,
    /// What it rests on.
    pub debt: Debt,
    /// The database.
    pub database: Database,
    /// All databases, by oid.
    pub databases: SharedList<Database>,
    /// All roles, by oid.
    pub roles: SharedList<Role>,
    /// The schemas of the database, by oid.
    pub schemas: SharedList<Schema>,
    /// The tables of the database, by oid; those of `pg_catalog` included.
    pub tables: Tables,
    /// The types that users have made, by oid.
    pub user_types: UserTypes,
    /// The functions and procedures of the database.
    pub routines: Routines,
    /// The extensions that were created in the database.
    pub extensions: SharedList<Extension>,
    /// The casts that users have made in it.
    pub casts: Arc<Casts>,
    /// The collations that users have made in it.
    pub collations: SharedList<Collation>,
    /// The operators that users have made in it.
    pub operators: Arc<Operators>,
    /// The memberships of roles.
    pub members: SharedList<Membership>,
    /// The settings of roles and databases.
    pub settings: SharedList<RoleSettings>,
    /// The comments on objects.
    pub comments: SharedMap<Address, String>,
    /// The privileges of objects of which something was said.
    pub acls: SharedMap<Address, Acl>,
    /// What ALTER DEFAULT PRIVILEGES has said; the lists are among `acls`.
    pub defaults: SharedList<DefaultAcl>,
    /// The parameters of which something was said, by the oids of their lists among `acls`.
    pub parameters: SharedMap<u32, String>,
    /// What ANALYZE has found, and how much it is to find.
    pub statistics: SharedMap<statistics::Place, statistics::Known>,
    /// Rows of system relations that follow from it, once someone has asked for them.
    pub system: Arc<system::Cache>,
}

/// What a name in a schema means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationRef {
    /// A table, by its place in [`Catalog::tables`].
    Table(usize),
    /// An index, by the places of its table and of itself among the table's indexes.
    Index(usize, usize),
}

impl Catalog {
    /// A catalog of these objects and the built-in ones.
    pub fn new(
        version: CatalogVersion,
        debt: Debt,
        database: Database,
        schemas: Vec<Schema>,
        user_tables: Vec<Table>,
        cluster: Cluster,
    ) -> Catalog {
        let (mut roles, mut members) = access::predefined();
        roles.extend(cluster.roles);
        roles.sort_by_key(|role| role.oid);
        members.extend(cluster.members);
        Catalog {
            version,
            debt,
            database,
            databases: cluster.databases.into(),
            roles: roles.into(),
            schemas: schemas.into(),
            tables: Tables::of(user_tables),
            user_types: UserTypes::new(cluster.user_types),
            routines: Routines::new(cluster.routines),
            extensions: cluster.extensions.into(),
            casts: Arc::new(Casts::new(cluster.casts)),
            collations: cluster.collations.into(),
            operators: Arc::new(Operators::new(cluster.operators)),
            members: members.into(),
            settings: cluster.settings.into(),
            comments: cluster.comments.into_iter().collect(),
            acls: cluster.acls.into_iter().collect(),
            defaults: cluster.defaults.into(),
            parameters: cluster.parameters.into_iter().collect(),
            statistics: cluster.statistics.into_iter().collect(),
            system: Arc::default(),
        }
    }

    /// Whether nothing was said of roles, their memberships and privileges between this state of the
    /// catalog and another.
    pub fn has_rights_of(&self, other: &Catalog) -> bool {
        self.roles.is_shared_with(&other.roles)
            && self.members.is_shared_with(&other.members)
            && self.acls.is_shared_with(&other.acls)
    }

    /// Whether the types that users have made, of which domains have conditions, are the same in this
    /// state of the catalog and another.
    pub fn has_types_of(&self, other: &Catalog) -> bool {
        self.user_types.is_shared_with(&other.user_types)
    }

    /// The foreign keys that refer to a table, each with the table that it belongs to.
    pub fn referrers(&self, oid: u32) -> impl Iterator<Item = (&Arc<Table>, &ForeignKey)> {
        self.tables.referrers(oid)
    }

    /// What a name in a schema means.
    pub fn relation(&self, schema: u32, name: &str) -> Option<RelationRef> {
        self.tables.named(schema, name)
    }

    /// The table of that oid.
    pub fn table_by_oid(&self, oid: u32) -> Option<&Arc<Table>> {
        self.tables.get(oid as usize)
    }

    /// The index of that oid, with its table.
    pub fn index_by_oid(&self, oid: u32) -> Option<(&Arc<Table>, &Index)> {
        self.tables.index(oid)
    }

    /// The database of that oid.
    pub fn database_by_oid(&self, oid: u32) -> Option<&Database> {
        self.databases.iter().find(|database| database.oid == oid)
    }

    /// The schema of that name.
    pub fn schema(&self, name: &str) -> Option<&Schema> {
        if name == "pg_temp" {
            let mut own = self.schemas.iter().rev();
            return own.find(|schema| crate::local::is_local(schema.oid));
        }
        self.schemas.iter().find(|schema| schema.name == name)
    }

    /// The schema of that oid.
    pub fn schema_by_oid(&self, oid: u32) -> Option<&Schema> {
        self.schemas.iter().find(|schema| schema.oid == oid)
    }

    /// The role of that name.
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.roles.iter().find(|role| role.name == name)
    }

    /// The role of that oid.
    pub fn role_by_oid(&self, oid: u32) -> Option<&Role> {
        self.roles.iter().find(|role| role.oid == oid)
    }
}

impl Catalog {
    /// The catalog of nothing, at a version that no engine has.
    pub fn none() -> Arc<Catalog> {
        static NONE: OnceLock<Arc<Catalog>> = OnceLock::new();
        let none = NONE.get_or_init(|| {
            let version = CatalogVersion {
                generation: u64::MAX,
                lsn: base::Lsn::MAX,
            };
            let database = Database::default();
            let (schemas, tables) = (vec![], vec![]);
            let cluster = Cluster::default();
            let none = Catalog::new(version, Debt::NONE, database, schemas, tables, cluster);
            Arc::new(none)
        });
        none.clone()
    }

    /// The schema and the name of the table or index of that oid.
    pub fn relation_name(&self, oid: u32) -> Option<(u32, &str)> {
        if let Some(table) = self.table_by_oid(oid) {
            return Some((table.schema, &table.name));
        }
        if let Some((table, index)) = self.index_by_oid(oid) {
            return Some((table.schema, &index.name));
        }
        let made = self.composite_of_relation(oid)?;
        Some((made.schema, &made.name))
    }
}
