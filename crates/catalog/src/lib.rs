//! What there is: databases, roles, schemas, tables, indexes, and how they are kept.
//!
//! A [`Catalog`] is everything of one database that binding a statement needs, read whole from the
//! catalog trees ([`store`]) and shared until the catalog changes. A table is one *descriptor* row:
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
//! | [`cluster`]'s trees | addresses of objects | memberships, settings, comments, privileges |
//! | [`crate::layout::NAMES`] | class, database, schema, name | oid: what keeps names unique |
//!
//! # What it leaves out
//! Loading only what a statement names: a catalog of many thousand tables is read whole at each
//! change.

pub mod access;
pub mod audit;
pub mod cluster;
pub mod collation;
pub mod computed;
pub mod configuration;
pub mod default_acl;
pub mod depend;
pub mod descriptor;
pub mod foreign;
pub mod layout;
pub mod local;
pub mod policy;
pub mod sequence;
pub mod store;
pub mod system;
pub mod view;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use base::engine::CatalogVersion;
use base::hash::HashMap;
use base::{Debt, TreeId};

use types::TypeId;

use access::{Acl, Membership};
use cluster::{Address, Cluster, RoleSettings};
use default_acl::DefaultAcl;

pub use computed::{Computed, ComputedKey, KeyOrder, KeySource};
pub use depend::{Dependency, DependencyKind, Object};
pub use foreign::{Action, ForeignKey};
pub use policy::{Policy, PolicyCommand, RowSecurity};
pub use sequence::{Owner, Sequence};
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
}

impl RelationKind {
    /// What PostgreSQL's messages call it.
    pub fn noun(self) -> &'static str {
        match self {
            RelationKind::Table | RelationKind::System => "table",
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
    /// Its policies, which may be there without being in force.
    pub policies: Vec<Policy>,
    /// Its storage parameters; those of a table change nothing.
    pub options: Vec<(String, String)>,
    /// The query of a view or a materialized view.
    pub view: Option<View>,
    /// The numbers of a sequence.
    pub sequence: Option<Sequence>,
}

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_id: TypeId,
    /// The type's modifier, or -1.
    pub typmod: i32,
    /// The oid of its collation, or 0 for that of its type. All collations here order by bytes.
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
    /// Whether NULLs are equal to it; then it is a computed one.
    pub nulls_equal: bool,
    /// The oid of the constraint it enforces, or 0.
    pub constraint: u32,
    /// Its entries; for the primary key the tree of the table.
    pub tree: TreeId,
    /// Its columns, most significant first; none if it is a computed one.
    pub columns: Vec<IndexedColumn>,
    /// The places of columns that it only includes.
    pub include: Vec<usize>,
    /// What it has if it is on expressions or has a condition.
    pub computed: Option<Box<Computed>>,
}

/// A column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedColumn {
    /// Its place among the table's columns, from 0.
    pub column: usize,
    /// Whether its order is inverted.
    pub descending: bool,
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
        let unique = self.indexes.iter().filter(|index| index.unique);
        unique.flat_map(|index| index.columns.iter().map(|column| column.column))
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

/// Everything of one database that binding a statement needs.
#[derive(Debug)]
pub struct Catalog {
    /// The version it was read at; it holds while the engine's is the same.
    pub version: CatalogVersion,
    /// What it rests on.
    pub debt: Debt,
    /// The database.
    pub database: Database,
    /// All databases, by oid.
    pub databases: Vec<Database>,
    /// All roles, by oid.
    pub roles: Vec<Role>,
    /// The schemas of the database, by oid.
    pub schemas: Vec<Schema>,
    /// The tables of the database, by oid; those of `pg_catalog` included.
    pub tables: Vec<Arc<Table>>,
    /// The memberships of roles.
    pub members: Vec<Membership>,
    /// The settings of roles and databases.
    pub settings: Vec<RoleSettings>,
    /// The comments on objects.
    pub comments: BTreeMap<Address, String>,
    /// The privileges of objects of which something was said.
    pub acls: BTreeMap<Address, Acl>,
    /// What ALTER DEFAULT PRIVILEGES has said; the lists are among `acls`.
    pub defaults: Vec<DefaultAcl>,
    /// The parameters of which something was said, by the oids of their lists among `acls`.
    pub parameters: BTreeMap<u32, String>,
    /// Rows of `pg_catalog`, once someone has asked for them.
    /// Rows of system relations that follow from it.
    pub system: system::Cache,
    by_name: HashMap<(u32, String), RelationRef>,
    by_oid: HashMap<u32, RelationRef>,
    /// By the oid of a table, the places of the tables that refer to it and of their foreign keys.
    referrers: HashMap<u32, Vec<(usize, usize)>>,
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
        mut cluster: Cluster,
    ) -> Catalog {
        let tables: Vec<_> = system::tables()
            .iter()
            .cloned()
            .chain(user_tables.into_iter().map(Arc::new))
            .collect();
        let (mut all_roles, mut members) = access::predefined();
        all_roles.append(&mut cluster.roles);
        all_roles.sort_by_key(|role| role.oid);
        members.extend(cluster.members);
        let mut by_name = HashMap::default();
        let mut by_oid = HashMap::default();
        let mut referrers: HashMap<u32, Vec<(usize, usize)>> = HashMap::default();
        for (place, table) in tables.iter().enumerate() {
            by_name.insert(
                (table.schema, table.name.clone()),
                RelationRef::Table(place),
            );
            by_oid.insert(table.oid, RelationRef::Table(place));
            for (index_place, index) in table.indexes.iter().enumerate() {
                by_name.insert(
                    (table.schema, index.name.clone()),
                    RelationRef::Index(place, index_place),
                );
                by_oid.insert(index.oid, RelationRef::Index(place, index_place));
            }
            for (key_place, key) in table.foreign_keys.iter().enumerate() {
                let referrers = referrers.entry(key.table).or_default();
                referrers.push((place, key_place));
            }
        }
        Catalog {
            version,
            debt,
            database,
            databases: cluster.databases,
            roles: all_roles,
            schemas,
            tables,
            members,
            settings: cluster.settings,
            comments: cluster.comments,
            acls: cluster.acls,
            defaults: cluster.defaults,
            parameters: cluster.parameters,
            system: system::Cache::default(),
            by_name,
            by_oid,
            referrers,
        }
    }

    /// The foreign keys that refer to a table, each with the table that it belongs to.
    pub fn referrers(&self, oid: u32) -> impl Iterator<Item = (&Arc<Table>, &ForeignKey)> {
        let places = self.referrers.get(&oid).into_iter().flatten();
        places.map(|(table, key)| {
            let table = &self.tables[*table];
            (table, &table.foreign_keys[*key])
        })
    }

    /// What a name in a schema means.
    pub fn relation(&self, schema: u32, name: &str) -> Option<RelationRef> {
        self.by_name.get(&(schema, name.to_owned())).copied()
    }

    /// The table of that oid.
    pub fn table_by_oid(&self, oid: u32) -> Option<&Arc<Table>> {
        match self.by_oid.get(&oid)? {
            RelationRef::Table(place) => self.tables.get(*place),
            RelationRef::Index(..) => None,
        }
    }

    /// The index of that oid, with its table.
    pub fn index_by_oid(&self, oid: u32) -> Option<(&Arc<Table>, &Index)> {
        match self.by_oid.get(&oid)? {
            RelationRef::Index(place, index) => {
                let table = self.tables.get(*place)?;
                Some((table, table.indexes.get(*index)?))
            }
            RelationRef::Table(_) => None,
        }
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
        let (table, index) = self.index_by_oid(oid)?;
        Some((table.schema, &index.name))
    }
}
