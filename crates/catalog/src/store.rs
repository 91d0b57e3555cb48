//! Catalog rows in their trees: reading a whole [`Catalog`], and the writes of DDL.

use base::engine::{
    CatalogVersion, Direction, IndexColumn, IndexDescriptor, Inserted, LockWait, LockedRow,
    Locking, Reading, RowBatch, RowLock, Sequences, Transaction, TreeDescriptor, TreeKind,
};
use base::key::{put_key_column, ColumnOrder, KeyKind, KeyRange};
use base::row::{Row, RowBuilder};
use base::{Error, GroupId, Key, Result, SqlState, TreeId};

use super::access::{Guarded, DATABASE_OWNER};
use super::cluster::{self, insert_role, Address};
use super::rule::query_rule_oid;
use super::{depend, descriptor, routine, Catalog, Database, Index, Role, Routine, Schema, Table};
use crate::layout::{
    COLLATIONS, DATABASES, FIRST_USER_OID, NAMES, OIDS, RELATIONS, ROLES, ROUTINES, SCHEMAS, TREES,
};
use crate::local::is_local;

/// The classes of names that must be unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NameClass {
    /// Of a database; schema and database are 0.
    Database = 1,
    /// Of a role; schema and database are 0.
    Role = 2,
    /// Of a schema; its own schema is 0.
    Schema = 3,
    /// Of a table or an index.
    Relation = 4,
    /// Of a type that is made by itself.
    Type = 5,
    /// Of a routine, with the types of its inputs.
    Routine = 6,
    /// Of an extension; its schema is 0.
    Extension = 7,
    /// Of a collation.
    Collation = 8,
    /// Of an operator: its name with the types of its operands.
    Operator = 9,
    /// Of extended statistics.
    Statistics = 10,
}

/// A new oid, never given before.
pub fn new_oid(sequences: &dyn Sequences) -> Result<u32> {
    let (number, _) = sequences.advance(OIDS, 1)?;
    u32::try_from(number - 1 + u64::from(FIRST_USER_OID)).map_err(|_| {
        Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "object identifiers are used up",
        )
    })
}

/// A new tree in the first group, never given before. It is there once [`create_tree`] has written its
/// descriptor.
pub fn new_tree(sequences: &dyn Sequences) -> Result<TreeId> {
    let (number, _) = sequences.advance(TREES, 1)?;
    Ok(TreeId(number - 1 + TreeId::FIRST_USER.0))
}

/// The same in any group.
pub fn new_tree_in(sequences: &dyn Sequences, group: GroupId) -> Result<TreeId> {
    let tree = new_tree(sequences)?;
    // Trees of a session's own lie in none.
    match tree < crate::local::FIRST_TREE {
        true => Ok(tree.in_group(group)),
        false => Ok(tree),
    }
}

/// No tree.
pub const NO_TREE: TreeId = TreeId(0);

/// Set in the id of a tree of long values: it is that of its table's first tree otherwise, so that
/// it needs no number of its own.
const LONG_TREE: u64 = 1 << 56;

const _: () = assert!(LONG_TREE < crate::local::FIRST_TREE.0);

/// The tree for the long values of a table that has none yet: none if no column can have any, or
/// if the table is a session's own, whose rows are in memory anyway.
pub fn long_tree(table: &Table) -> TreeId {
    let is_long = |column: &super::Column| !column.dropped && column.type_id.len() < 0;
    match table.columns.iter().any(is_long) && table.tree < crate::local::FIRST_TREE {
        true => TreeId(table.tree.0 | LONG_TREE),
        false => NO_TREE,
    }
}

pub(super) fn oid_key(oids: &[u32]) -> Key {
    oids.iter().flat_map(|oid| oid.to_be_bytes()).collect()
}

fn name_key(class: NameClass, database: u32, schema: u32, name: &str) -> Result<Key> {
    let mut key = vec![class as u8];
    key.extend(oid_key(&[database, schema]));
    put_key_column(
        &mut key,
        KeyKind::Bytes,
        ColumnOrder::ASCENDING,
        Some(name.as_bytes()),
    )?;
    Ok(key)
}

/// Claims a name for an object; false when it is taken.
pub fn claim_name(
    txn: &mut dyn Transaction,
    class: NameClass,
    database: u32,
    schema: u32,
    name: &str,
    oid: u32,
) -> Result<bool> {
    let key = name_key(class, database, schema, name)?;
    let row = RowBuilder::new(1).value(&oid.to_be_bytes()).finish();
    Ok(txn.insert(NAMES, &key, &row)? == Inserted::Done)
}

/// Gives a name free again.
pub fn free_name(
    txn: &mut dyn Transaction,
    class: NameClass,
    database: u32,
    schema: u32,
    name: &str,
) -> Result<()> {
    remove(txn, NAMES, &name_key(class, database, schema, name)?)
}

pub(super) fn remove(txn: &mut dyn Transaction, tree: TreeId, key: &[u8]) -> Result<()> {
    let mut row = Vec::new();
    if !txn.get(tree, key, &mut row)? {
        return Err(concurrently());
    }
    txn.lock_row(tree, key, RowLock::Update, LockWait::Block, &mut row)?;
    txn.delete(tree, key)
}

/// 0A000 and the like for a table of all sessions that would need an object of one.
fn check_shared(table: &Table) -> Result<()> {
    if is_local(table.oid) {
        let shared = |key: &super::ForeignKey| !is_local(key.table);
        return match table.foreign_keys.iter().any(shared) {
            true => Err(Error::new(
                SqlState::INVALID_TABLE_DEFINITION,
                "constraints on temporary tables may reference only temporary tables",
            )),
            false => Ok(()),
        };
    }
    if table.foreign_keys.iter().any(|key| is_local(key.table)) {
        return Err(Error::new(
            SqlState::INVALID_TABLE_DEFINITION,
            "constraints on permanent tables may reference only permanent tables",
        ));
    }
    match depend::table_needs_local(table) {
        true => Err(needs_temporary()),
        false => Ok(()),
    }
}

/// # Errors
/// 0A000 for a table of which a key tells texts apart by their bytes that their collation takes for equal.
fn check_keys(txn: &mut dyn Transaction, database: u32, table: &Table) -> Result<()> {
    let telling = table.indexes.iter();
    let telling = telling.filter(|index| index.is_unique() || index.exclusion.is_some());
    let telling: Vec<_> = telling.collect();
    let mut columns: Vec<usize> = telling.iter().flat_map(|index| index.uses()).collect();
    let parts = table.partition_key.iter().flat_map(|key| &key.parts);
    columns.extend(parts.flat_map(|part| part.uses.iter().copied()));
    let given = columns
        .into_iter()
        .filter_map(|place| table.columns.get(place));
    let given = given.map(|column| column.collation);
    let own = telling.iter().flat_map(|index| &index.form.collations);
    for collation in given
        .chain(own.copied())
        .filter(|oid| *oid >= FIRST_USER_OID)
    {
        let mut row = Vec::new();
        let key = oid_key(&[database, collation]);
        if txn.get(COLLATIONS, &key, &mut row)?
            && !super::collation::decode(collation, &row)?.deterministic
        {
            return Err(Error::unsupported(
                "a key of texts under a collation that is not deterministic",
            ));
        }
    }
    Ok(())
}

/// 0A000 for a routine of all sessions that would need an object of one.
fn check_shared_routine(routine: &Routine) -> Result<()> {
    match !is_local(routine.oid) && depend::routine_needs_local(routine) {
        true => Err(needs_temporary()),
        false => Ok(()),
    }
}

/// 0A000 for an object of all sessions that would need one of one session.
pub(super) fn needs_temporary() -> Error {
    Error::unsupported("a permanent object that needs a temporary one")
}

/// Inserts a schema whose name nobody else can see.
pub fn insert_nameless_schema(
    txn: &mut dyn Transaction,
    database: u32,
    schema: &Schema,
) -> Result<()> {
    txn.insert(
        SCHEMAS,
        &oid_key(&[database, schema.oid]),
        &schema_row(schema),
    )?;
    Ok(())
}

fn concurrently() -> Error {
    Error::internal("tuple concurrently updated")
}

/// Inserts the row of a table, its trees and its names, and the privileges that ALTER DEFAULT
/// PRIVILEGES has said for such a table.
///
/// # Errors
/// 42P07 when a name is taken.
pub fn insert_table(txn: &mut dyn Transaction, catalog: &Catalog, table: &Table) -> Result<()> {
    let database = catalog.database.oid;
    check_shared(table)?;
    check_keys(txn, database, table)?;
    let names = std::iter::once((&table.name, table.oid))
        .chain(table.indexes.iter().map(|index| (&index.name, index.oid)));
    for (name, oid) in names {
        let class = NameClass::Relation;
        if !claim_name(txn, class, database, table.schema, name, oid)? {
            return Err(duplicate_relation(name));
        }
    }
    create_trees(txn, table)?;
    let key = oid_key(&[database, table.oid]);
    if let Inserted::Duplicate(_) = txn.insert(RELATIONS, &key, &descriptor::encode(table))? {
        return Err(concurrently());
    }
    match catalog.acl_of_new_relation(table) {
        Some(acl) => {
            let address = Address::of(Address::CLASS, table.oid);
            cluster::put_acl(txn, database, address, Some(&acl))
        }
        None => Ok(()),
    }
}

/// 42P07.
pub fn duplicate_relation(name: &str) -> Error {
    Error::new(
        SqlState::DUPLICATE_TABLE,
        format!("relation \"{name}\" already exists"),
    )
}

/// The newest that is known of a table, with what this transaction has changed.
pub fn newest_table(txn: &mut dyn Reading, database: u32, oid: u32) -> Result<Option<Table>> {
    let row = newest(txn, RELATIONS, &oid_key(&[database, oid]))?;
    row.map(|row| descriptor::decode(&row)).transpose()
}

/// The newest that is known of a row, with what this transaction has changed.
pub(super) fn newest(txn: &mut dyn Reading, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut batch = RowBatch::default();
    txn.scan_newest(tree, &KeyRange::point(key), 1, &mut batch)?;
    Ok((!batch.is_empty()).then(|| batch.get(0).1.to_vec()))
}

/// Locks a row of the catalog until the end of the transaction.
///
/// # Errors
/// As PostgreSQL, where somebody has removed it meanwhile.
pub(super) fn hold(
    txn: &mut dyn Locking,
    tree: TreeId,
    key: &[u8],
    strength: RowLock,
) -> Result<()> {
    match txn.lock_row(tree, key, strength, LockWait::Block, &mut Vec::new())? {
        LockedRow::Unchanged | LockedRow::Changed => Ok(()),
        LockedRow::Gone | LockedRow::Skipped => Err(Error::internal("tuple concurrently deleted")),
    }
}

/// What the transaction's snapshot shows of a table, with what it has changed.
pub fn seen_table(txn: &mut dyn Reading, database: u32, oid: u32) -> Result<Option<Table>> {
    let mut row = Vec::new();
    match txn.get(RELATIONS, &oid_key(&[database, oid]), &mut row)? {
        true => descriptor::decode(&row).map(Some),
        false => Ok(None),
    }
}

/// Locks the row of a table against whoever would replace or remove it.
///
/// # Errors
/// As PostgreSQL, where somebody has removed it meanwhile.
pub fn hold_table(txn: &mut dyn Locking, database: u32, oid: u32) -> Result<()> {
    hold(
        txn,
        RELATIONS,
        &oid_key(&[database, oid]),
        RowLock::NoKeyUpdate,
    )
}

/// Replaces the row of a table. Names and trees are the caller's affair.
pub fn update_table(txn: &mut dyn Transaction, database: u32, table: &Table) -> Result<()> {
    check_shared(table)?;
    check_keys(txn, database, table)?;
    let key = oid_key(&[database, table.oid]);
    let mut row = Vec::new();
    if !txn.get(RELATIONS, &key, &mut row)? {
        return Err(concurrently());
    }
    txn.lock_row(RELATIONS, &key, RowLock::Update, LockWait::Block, &mut row)?;
    match txn.update(RELATIONS, &key, &descriptor::encode(table))? {
        Inserted::Done => Ok(()),
        Inserted::Duplicate(_) => Err(concurrently()),
    }
}

/// Removes a table, its trees and its names.
pub fn drop_table(txn: &mut dyn Transaction, database: u32, table: &Table) -> Result<()> {
    remove(txn, RELATIONS, &oid_key(&[database, table.oid]))?;
    let names = std::iter::once(&table.name).chain(table.indexes.iter().map(|index| &index.name));
    for name in names {
        free_name(txn, NameClass::Relation, database, table.schema, name)?;
    }
    cluster::forget_object(txn, database, Address::CLASS, table.oid)?;
    for policy in &table.policies {
        cluster::forget_object(txn, database, Address::POLICY, policy.oid)?;
    }
    for trigger in &table.triggers {
        cluster::forget_object(txn, database, Address::TRIGGER, trigger.oid)?;
    }
    for rule in &table.rules {
        cluster::forget_object(txn, database, Address::REWRITE, rule.oid)?;
    }
    if table.view.is_some() {
        let query = query_rule_oid(table.oid);
        cluster::forget_object(txn, database, Address::REWRITE, query)?;
    }
    for index in &table.indexes {
        cluster::forget_object(txn, database, Address::CLASS, index.oid)?;
        cluster::forget_object(txn, database, Address::CONSTRAINT, index.constraint)?;
    }
    drop_trees(txn, table)
}

/// The name by which a routine is there only once: with the types that tell overloads apart.
fn routine_name(routine: &Routine) -> String {
    let types: Vec<_> = routine
        .input_types()
        .iter()
        .map(|ty| ty.0.to_string())
        .collect();
    format!("{}({})", routine.name, types.join(","))
}

/// Inserts a routine, with the privileges that ALTER DEFAULT PRIVILEGES has said for such; false when
/// there is one of that name and these inputs.
pub fn insert_routine(
    txn: &mut dyn Transaction,
    catalog: &Catalog,
    routine: &Routine,
) -> Result<bool> {
    let database = catalog.database.oid;
    check_shared_routine(routine)?;
    let (class, name) = (NameClass::Routine, routine_name(routine));
    if !claim_name(txn, class, database, routine.schema, &name, routine.oid)? {
        return Ok(false);
    }
    let key = oid_key(&[database, routine.oid]);
    txn.insert(ROUTINES, &key, &routine::encode(routine))?;
    if let Some(acl) = catalog.acl_of_new(Guarded::Function, routine.owner, routine.schema) {
        let address = Address::of(Address::PROC, routine.oid);
        cluster::put_acl(txn, database, address, Some(&acl))?;
    }
    Ok(true)
}

/// Replaces a routine, whose name, schema and inputs may be others now; false when there is one such.
pub fn update_routine(
    txn: &mut dyn Transaction,
    database: u32,
    old: &Routine,
    new: &Routine,
) -> Result<bool> {
    check_shared_routine(new)?;
    let class = NameClass::Routine;
    let (was, is) = (routine_name(old), routine_name(new));
    if (old.schema, &was) != (new.schema, &is) {
        free_name(txn, class, database, old.schema, &was)?;
        if !claim_name(txn, class, database, new.schema, &is, new.oid)? {
            return Ok(false);
        }
    }
    cluster::put(txn, ROUTINES, &[database, new.oid], &routine::encode(new))?;
    Ok(true)
}

/// Removes a routine and what was said of it.
pub fn drop_routine(txn: &mut dyn Transaction, database: u32, routine: &Routine) -> Result<()> {
    let (class, name) = (NameClass::Routine, routine_name(routine));
    free_name(txn, class, database, routine.schema, &name)?;
    cluster::forget_object(txn, database, Address::PROC, routine.oid)?;
    remove(txn, ROUTINES, &oid_key(&[database, routine.oid]))
}

/// Makes the trees of a table and its indexes.
pub fn create_trees(txn: &mut dyn Transaction, table: &Table) -> Result<()> {
    if !table.kind.has_rows() {
        return Ok(());
    }
    create_tree(txn, table.tree, TreeKind::Table)?;
    if table.long_tree != NO_TREE {
        create_tree(txn, table.long_tree, TreeKind::Table)?;
    }
    for index in table.indexes.iter().filter(|index| !index.primary) {
        let kind = match index.computed {
            None => TreeKind::Index(index_descriptor(table, index)?),
            // Its entries are rows to the engine.
            Some(_) => TreeKind::Table,
        };
        create_tree(txn, index.tree, kind)?;
    }
    Ok(())
}

/// Drops the trees of a table and its indexes.
pub fn drop_trees(txn: &mut dyn Transaction, table: &Table) -> Result<()> {
    if table.kind.has_rows() && table.long_tree != NO_TREE {
        drop_tree(txn, table.long_tree)?;
    }
    drop_row_trees(txn, table)
}

/// Drops the trees of a table and its indexes, but for its long values: others stand for them now.
pub fn drop_row_trees(txn: &mut dyn Transaction, table: &Table) -> Result<()> {
    if !table.kind.has_rows() {
        return Ok(());
    }
    for index in table.indexes.iter().filter(|index| !index.primary) {
        drop_tree(txn, index.tree)?;
    }
    drop_tree(txn, table.tree)
}

/// Makes one tree.
pub fn create_tree(txn: &mut dyn Transaction, id: TreeId, kind: TreeKind) -> Result<()> {
    let row = TreeDescriptor { id, kind }.to_row();
    match txn.insert(TreeId::DESCRIPTORS, &id.descriptor_key(), &row)? {
        Inserted::Done => Ok(()),
        Inserted::Duplicate(_) => Err(Error::internal(format!("tree {id} is there already"))),
    }
}

/// Drops one tree.
pub fn drop_tree(txn: &mut dyn Transaction, id: TreeId) -> Result<()> {
    remove(txn, TreeId::DESCRIPTORS, &id.descriptor_key())
}

/// Checks that the keys of an index have an order.
///
/// # Errors
/// 42704 if one has none.
pub fn check_order(table: &Table, index: &Index) -> Result<()> {
    for place in 0..index.key_count() {
        if index.is_inverted() {
            index.check_items(table, place)?;
            continue;
        }
        if let Some(order) = index.key_order(table, place) {
            types::key_kind(order.type_id).ok_or_else(|| no_order(order.type_id))?;
        }
    }
    Ok(())
}

/// How the engine derives the entries of an index of columns.
///
/// # Errors
/// 42704 for a column of a type without an order.
pub fn index_descriptor(table: &Table, index: &Index) -> Result<IndexDescriptor> {
    if index.computed.is_some() {
        return Err(Error::internal("the engine derives no computed index"));
    }
    let columns = index
        .columns
        .iter()
        .map(|indexed| {
            let type_id = table.columns[indexed.column].type_id;
            Ok(IndexColumn {
                column: indexed.column,
                kind: types::key_kind(type_id).ok_or_else(|| no_order(type_id))?,
                order: indexed.order,
            })
        })
        .collect::<Result<_>>()?;
    let missing = index.columns.iter().filter_map(|indexed| {
        let value = table.columns[indexed.column].missing.clone()?;
        Some((indexed.column, value))
    });
    Ok(IndexDescriptor {
        table: table.tree,
        columns,
        unique: index.unique,
        missing: missing.collect(),
    })
}

/// 42704: the type cannot be a key; 0A000 for `tsquery`, and for ranges over rows and arrays.
pub fn no_order(type_id: types::TypeId) -> Error {
    // They have an order, which no key has yet.
    if type_id == types::TypeId::TSQUERY {
        return Error::unsupported("an index on a tsquery");
    }
    let element = type_id.range_element().or(type_id.multirange_element());
    if let Some(element) = element {
        return Error::unsupported(format!("an index on ranges over type {element}"));
    }
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!("data type {type_id} has no default operator class for access method \"btree\""),
    )
    .with_hint(
        "You must specify an operator class for the index or define a default operator class for \
         the data type.",
    )
}

/// Inserts a database with its schemas; false when the name is taken.
pub fn insert_database(txn: &mut dyn Transaction, database: &Database) -> Result<bool> {
    if !claim_name(txn, NameClass::Database, 0, 0, &database.name, database.oid)? {
        return Ok(false);
    }
    txn.insert(
        DATABASES,
        &oid_key(&[database.oid]),
        &cluster::database_row(database),
    )?;
    let schemas = [
        (super::PG_CATALOG, "pg_catalog", super::SUPERUSER),
        (super::PUBLIC, "public", DATABASE_OWNER),
        (
            super::INFORMATION_SCHEMA,
            "information_schema",
            super::SUPERUSER,
        ),
    ];
    for (oid, name, owner) in schemas {
        let schema = Schema {
            oid,
            name: name.to_owned(),
            owner,
        };
        insert_schema(txn, database.oid, &schema)?;
    }
    Ok(true)
}

/// Inserts a schema; false when the name is taken.
pub fn insert_schema(txn: &mut dyn Transaction, database: u32, schema: &Schema) -> Result<bool> {
    if !claim_name(
        txn,
        NameClass::Schema,
        database,
        0,
        &schema.name,
        schema.oid,
    )? {
        return Ok(false);
    }
    let row = RowBuilder::new(2)
        .value(schema.name.as_bytes())
        .value(&schema.owner.to_be_bytes())
        .finish();
    let inserted = txn.insert(SCHEMAS, &oid_key(&[database, schema.oid]), &row)?;
    Ok(inserted == Inserted::Done)
}

/// Inserts a schema that a statement makes, with the privileges that ALTER DEFAULT PRIVILEGES has
/// said for schemas of its owner; false when the name is taken.
pub fn make_schema(txn: &mut dyn Transaction, catalog: &Catalog, schema: &Schema) -> Result<bool> {
    let database = catalog.database.oid;
    if !insert_schema(txn, database, schema)? {
        return Ok(false);
    }
    if let Some(acl) = catalog.acl_of_new(Guarded::Schema, schema.owner, 0) {
        let address = Address::of(Address::NAMESPACE, schema.oid);
        cluster::put_acl(txn, database, address, Some(&acl))?;
    }
    Ok(true)
}

/// Replaces the row of a schema. Its name is the caller's affair.
pub fn update_schema(txn: &mut dyn Transaction, database: u32, schema: &Schema) -> Result<()> {
    let row = schema_row(schema);
    cluster::put(txn, SCHEMAS, &[database, schema.oid], &row)
}

fn schema_row(schema: &Schema) -> Vec<u8> {
    RowBuilder::new(2)
        .value(schema.name.as_bytes())
        .value(&schema.owner.to_be_bytes())
        .finish()
}

/// Reads the row of a schema.
pub(super) fn schema_of(oid: u32, row: &[u8]) -> Result<Schema> {
    let row = Row::parse(row)?;
    Ok(Schema {
        oid,
        name: text(&row, 0)?,
        owner: number(&row, 1)?,
    })
}

/// Gives a schema another name; false when that is taken. What was said of it stays.
pub fn rename_schema(
    txn: &mut dyn Transaction,
    database: u32,
    old: &Schema,
    new: &Schema,
) -> Result<bool> {
    free_name(txn, NameClass::Schema, database, 0, &old.name)?;
    if !claim_name(txn, NameClass::Schema, database, 0, &new.name, new.oid)? {
        return Ok(false);
    }
    update_schema(txn, database, new).map(|()| true)
}

/// Removes a schema, which must be empty.
pub fn drop_schema(txn: &mut dyn Transaction, database: u32, schema: &Schema) -> Result<()> {
    cluster::forget_object(txn, database, Address::NAMESPACE, schema.oid)?;
    cluster::forget_defaults_in(txn, database, schema.oid)?;
    free_name(txn, NameClass::Schema, database, 0, &schema.name)?;
    remove(txn, SCHEMAS, &oid_key(&[database, schema.oid]))
}

/// Reads the catalog of one database; `None` when there is no such database.
pub fn load(
    txn: &mut dyn Transaction,
    version: CatalogVersion,
    database: &str,
) -> Result<Option<Catalog>> {
    let mut databases = Vec::new();
    scan(txn, DATABASES, &[], 1, |oids, row| {
        databases.push(cluster::database_of(oids[0], &Row::parse(row)?)?);
        Ok(())
    })?;
    let Some(own) = databases
        .iter()
        .find(|known| known.name == database)
        .cloned()
    else {
        return Ok(None);
    };
    let mut roles = Vec::new();
    scan(txn, ROLES, &[], 1, |oids, row| {
        roles.push(cluster::role_of(oids[0], &Row::parse(row)?)?);
        Ok(())
    })?;
    let mut schemas = Vec::new();
    scan(txn, SCHEMAS, &[own.oid], 2, |oids, row| {
        schemas.push(schema_of(oids[1], row)?);
        Ok(())
    })?;
    schemas.push(Schema {
        oid: super::QUORATE,
        name: "quorate".to_owned(),
        owner: super::SUPERUSER,
    });
    let mut tables = Vec::new();
    scan(txn, RELATIONS, &[own.oid], 2, |_, row| {
        tables.push(descriptor::decode(row)?);
        Ok(())
    })?;
    let mut cluster = cluster::load(txn, own.oid)?;
    cluster.databases = databases;
    cluster.roles = roles;
    let debt = txn.debt().clone();
    Ok(Some(Catalog::new(
        version, debt, own, schemas, tables, cluster,
    )))
}

/// The role of that name, if there is one.
pub fn role_named(txn: &mut dyn Reading, name: &str) -> Result<Option<Role>> {
    let mut row = Vec::new();
    if !txn.get(NAMES, &name_key(NameClass::Role, 0, 0, name)?, &mut row)? {
        return Ok(None);
    }
    let oid = number(&Row::parse(&row)?, 0)?;
    match txn.get(ROLES, &oid_key(&[oid]), &mut row)? {
        true => cluster::role_of(oid, &Row::parse(&row)?).map(Some),
        false => Ok(None),
    }
}

/// The names of a role and of all roles whose member it is, directly or not.
pub fn roles_of(txn: &mut dyn Reading, role: &Role) -> Result<Vec<String>> {
    let mut names: Vec<(u32, String)> = Vec::new();
    scan(txn, ROLES, &[], 1, |oids, row| {
        names.push((oids[0], text(&Row::parse(row)?, 0)?));
        Ok(())
    })?;
    let mut members: Vec<(u32, u32)> = Vec::new();
    scan(txn, crate::layout::MEMBERS, &[], 2, |oids, _| {
        members.push((oids[0], oids[1]));
        Ok(())
    })?;
    let (roles, memberships) = super::access::predefined();
    names.extend(roles.into_iter().map(|role| (role.oid, role.name)));
    let predefined = memberships.into_iter();
    members.extend(predefined.map(|known| (known.role, known.member)));
    let mut found = vec![role.oid];
    let mut at = 0;
    while at < found.len() {
        let own = found[at];
        at += 1;
        for (group, member) in &members {
            if *member == own && !found.contains(group) {
                found.push(*group);
            }
        }
    }
    let names = names.into_iter().filter(|(oid, _)| found.contains(oid));
    Ok(names.map(|(_, name)| name).collect())
}

pub(super) fn scan(
    txn: &mut dyn Reading,
    tree: TreeId,
    prefix: &[u32],
    parts: usize,
    mut take: impl FnMut(&[u32], &[u8]) -> Result<()>,
) -> Result<()> {
    let mut batch = RowBatch::default();
    let mut rest = Some(KeyRange::prefix(&oid_key(prefix)));
    if prefix.is_empty() {
        rest = Some(KeyRange::all());
    }
    while let Some(range) = rest {
        rest = txn.scan(tree, &range, Direction::Forward, usize::MAX, &mut batch)?;
        for (key, row) in batch.iter() {
            let oids: Vec<u32> = key
                .chunks_exact(4)
                .map(|oid| u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]]))
                .collect();
            if oids.len() != parts {
                return Err(Error::corrupted("a catalog key of another length"));
            }
            take(&oids, row)?;
        }
    }
    Ok(())
}

pub(super) fn text(row: &Row<'_>, column: usize) -> Result<String> {
    row.column(column)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .map(str::to_owned)
        .ok_or_else(|| Error::corrupted("a catalog row without its name"))
}

pub(super) fn number(row: &Row<'_>, column: usize) -> Result<u32> {
    row.column(column)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u32::from_be_bytes)
        .ok_or_else(|| Error::corrupted("a catalog row without its number"))
}

/// Whether the catalog's first rows are there.
pub fn is_there(txn: &mut dyn Reading) -> Result<bool> {
    let mut batch = RowBatch::default();
    let (all, direction) = (KeyRange::all(), Direction::Forward);
    txn.scan(DATABASES, &all, direction, 1, &mut batch)?;
    Ok(!batch.is_empty())
}

/// First start of a cluster: see [`crate::session::bootstrap`].
pub fn bootstrap(
    txn: &mut dyn Transaction,
    sequences: &dyn Sequences,
    user: &str,
    password: Option<&str>,
) -> Result<()> {
    if is_there(txn)? {
        return Ok(());
    }
    for (oid, name, open) in [
        (super::TEMPLATE1_DATABASE, "template1", true),
        (super::TEMPLATE0_DATABASE, "template0", false),
    ] {
        let database = Database {
            oid,
            name: name.to_owned(),
            template: true,
            open,
            ..Database::default()
        };
        insert_database(txn, &database)?;
    }
    for name in ["postgres", user] {
        let own = name == "postgres";
        let role = Role {
            oid: if own {
                super::SUPERUSER
            } else {
                new_oid(sequences)?
            },
            name: name.to_owned(),
            superuser: true,
            login: true,
            create_role: true,
            create_database: true,
            replication: true,
            bypass_rls: own,
            password: password.filter(|_| name == user).map(str::to_owned),
            ..Role::default()
        };
        insert_role(txn, &role)?;
        let database = Database {
            oid: if own {
                super::POSTGRES_DATABASE
            } else {
                new_oid(sequences)?
            },
            name: name.to_owned(),
            owner: role.oid,
            ..Database::default()
        };
        insert_database(txn, &database)?;
        if user == "postgres" {
            break;
        }
    }
    first_words(txn)?;
    Ok(())
}

/// The comments and privileges that are there from the start.
fn first_words(txn: &mut dyn Transaction) -> Result<()> {
    use super::access::{AclItem, Privileges};
    let comments = [
        (
            super::TEMPLATE1_DATABASE,
            "default template for new databases",
        ),
        (super::TEMPLATE0_DATABASE, "unmodifiable empty database"),
        (
            super::POSTGRES_DATABASE,
            "default administrative connection database",
        ),
    ];
    for (oid, comment) in comments {
        cluster::put_comment(txn, 0, Address::of(Address::DATABASE, oid), Some(comment))?;
    }
    let item = |grantee, privileges| AclItem {
        grantee,
        grantor: super::SUPERUSER,
        privileges,
        options: Privileges::NONE,
    };
    let acl = vec![
        item(0, Privileges::CONNECT),
        item(super::SUPERUSER, Guarded::Database.all()),
    ];
    for oid in [super::TEMPLATE1_DATABASE, super::TEMPLATE0_DATABASE] {
        cluster::put_acl(txn, 0, Address::of(Address::DATABASE, oid), Some(&acl))?;
    }
    Ok(())
}
