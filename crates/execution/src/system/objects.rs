//! What was created: schemas, tables, columns, indexes, constraints, comments.
//!
//! The relations of `pg_catalog` are tables like others here; [`BUILT_IN`] lists them once for the
//! process, [`ROWS`] what one catalog has besides.

use super::builtin;
use super::partitions;
use super::rows::{array, char, flag, int, oid, small, text, vector, Rows};
use super::triggers;
use super::user_types;
use super::{OfBinary, OfCatalog};
use base::key::ColumnOrder;
use catalog::access::Guarded;
use catalog::cluster::Address;
use catalog::collation;
use catalog::rule::{query_rule_oid, RETURN};
use catalog::system::{self, acl_items, HEAP};
use catalog::{
    Catalog, CheckOption, Column, DependencyKind, ForeignKey, ForeignPart, Identity, Index, Object,
    RelationKind, Schema, Table, INFORMATION_SCHEMA, PG_CATALOG, PUBLIC, QUORATE,
};
use types::{Datum, TypeId};

pub(super) const ROWS: &[OfCatalog] = &[
    ("pg_attrdef", |catalog, rows| {
        for table in user_tables(catalog) {
            defaults(table, rows);
        }
    }),
    ("pg_attribute", |catalog, rows| {
        for table in user_tables(catalog) {
            attributes(Some(catalog), table, rows);
        }
        user_types::attributes(catalog, rows);
    }),
    ("pg_class", |catalog, rows| {
        for table in user_tables(catalog) {
            classes(Some(catalog), table, rows);
        }
        user_types::classes(catalog, rows);
    }),
    ("pg_constraint", |catalog, rows| {
        for table in user_tables(catalog) {
            constraints(Some(catalog), table, rows);
        }
        user_types::constraints(catalog, rows);
    }),
    ("pg_default_acl", default_privileges),
    ("pg_depend", dependencies),
    ("pg_depend", user_types::dependencies_of_casts),
    ("pg_description", descriptions),
    ("pg_index", |catalog, rows| {
        for table in user_tables(catalog) {
            indexes(Some(catalog), table, rows);
        }
    }),
    ("pg_enum", user_types::labels),
    ("pg_inherits", partitions::inherits),
    ("pg_namespace", namespaces),
    ("pg_partitioned_table", partitions::tables),
    ("pg_cast", user_types::casts),
    ("pg_collation", collations),
    ("pg_operator", operators),
    ("pg_policy", |catalog, rows| {
        for table in user_tables(catalog) {
            policies(table, rows);
        }
    }),
    ("pg_range", user_types::ranges),
    ("pg_rewrite", rules),
    ("pg_sequence", sequences),
    ("pg_trigger", triggers::rows),
    ("pg_type", user_types::types),
];

/// The same of the relations that are there from the start.
pub(super) const BUILT_IN: &[OfBinary] = &[
    ("pg_attribute", |rows| {
        for table in system::tables() {
            attributes(None, table, rows);
        }
    }),
    ("pg_class", |rows| {
        for table in system::tables() {
            classes(None, table, rows);
        }
    }),
    ("pg_constraint", |rows| {
        for table in system::tables() {
            constraints(None, table, rows);
        }
    }),
    ("pg_index", |rows| {
        for table in system::tables() {
            indexes(None, table, rows);
        }
    }),
    ("pg_type", |rows| {
        for table in system::tables() {
            user_types::of_rows(None, table, rows);
        }
    }),
];

pub(super) fn user_tables(catalog: &Catalog) -> impl Iterator<Item = &Table> {
    let tables = catalog.tables.iter().map(|table| &**table);
    tables.filter(|table| table.kind != RelationKind::System)
}

/// What was said of an object's privileges; NULL if nothing.
pub(super) fn acl(catalog: &Catalog, class: u32, object: u32, column: u32) -> Datum {
    let address = Address {
        class,
        object,
        column,
    };
    match catalog.acls.get(&address) {
        Some(acl) => acl_items(catalog, acl),
        None => Datum::Null,
    }
}

fn default_privileges(catalog: &Catalog, rows: &mut Rows) {
    for default in &catalog.defaults {
        rows.push([
            ("oid", oid(default.oid)),
            ("defaclrole", oid(default.role)),
            ("defaclnamespace", oid(default.schema)),
            ("defaclobjtype", char(default.letter())),
            (
                "defaclacl",
                acl(catalog, Address::DEFAULT_ACL, default.oid, 0),
            ),
        ]);
    }
}

fn namespaces(catalog: &Catalog, rows: &mut Rows) {
    for schema in &catalog.schemas {
        rows.push([
            ("oid", oid(schema.oid)),
            ("nspname", text(&schema.name)),
            ("nspowner", oid(schema.owner)),
            ("nspacl", schema_acl(catalog, schema)),
        ]);
    }
}

/// The schemas that are there from the start let everyone in, and have that written down.
fn schema_acl(catalog: &Catalog, schema: &Schema) -> Datum {
    let given = acl(catalog, Address::NAMESPACE, schema.oid, 0);
    match schema.oid {
        PG_CATALOG | PUBLIC | INFORMATION_SCHEMA | QUORATE if given.is_null() => {
            acl_items(catalog, &catalog.acl_of(Guarded::Schema, schema.oid))
        }
        _ => given,
    }
}

/// `relpersistence` of a table and its indexes.
fn persistence(table: &Table) -> u8 {
    match catalog::local::is_local(table.oid) {
        true => b't',
        false if table.unlogged => b'u',
        false => b'p',
    }
}

/// `relkind` of a table.
pub(super) fn kind(table: &Table) -> u8 {
    match table.kind {
        RelationKind::Table => b'r',
        RelationKind::System => system::kind(table),
        RelationKind::View => b'v',
        RelationKind::MaterializedView => b'm',
        RelationKind::Sequence => b'S',
        RelationKind::Partitioned => b'p',
    }
}

/// `reloptions` of a relation.
fn options(table: &Table) -> Vec<Datum> {
    let check = table.view.as_ref().map(|view| view.check_option);
    let check = match check {
        Some(CheckOption::Local) => Some(text("check_option=local")),
        Some(CheckOption::Cascaded) => Some(text("check_option=cascaded")),
        _ => None,
    };
    // Those of the table of long values are that table's own, and there is none to show.
    let own = table.options.iter();
    let own = own.filter(|(name, _)| !name.starts_with("toast."));
    let own = own.map(|(name, value)| text(format!("{name}={value}")));
    own.chain(check).collect()
}

/// Options as an array of `name=value`; NULL if there are none.
fn shown_options(options: &[(String, String)]) -> Datum {
    let own = options.iter();
    let own: Vec<_> = own
        .map(|(name, value)| text(format!("{name}={value}")))
        .collect();
    match own.is_empty() {
        true => Datum::Null,
        false => array(TypeId::TEXT, own),
    }
}

fn classes(catalog: Option<&Catalog>, table: &Table, rows: &mut Rows) {
    let kind = kind(table);
    let relacl = match catalog {
        Some(catalog) => acl(catalog, Address::CLASS, table.oid, 0),
        None => builtin::privileges(table.oid),
    };
    let method = match kind {
        b'r' | b'm' => HEAP,
        _ => 0,
    };
    let options = options(table);
    let row_type = table.row_type().filter(|_| table.has_row_type());
    let row_type = row_type.unwrap_or(TypeId::NONE);
    let referred = catalog.is_some_and(|catalog| catalog.referrers(table.oid).next().is_some());
    rows.push([
        ("oid", oid(table.oid)),
        ("relname", text(&table.name)),
        ("relnamespace", oid(table.schema)),
        ("reltype", oid(row_type.0)),
        ("reloftype", oid(table.of_type.0)),
        ("relowner", oid(table.owner)),
        ("relam", oid(method)),
        (
            "relfilenode",
            oid(if matches!(kind, b'v' | b'p') {
                0
            } else {
                table.oid
            }),
        ),
        ("reltuples", Datum::Float4(-1.0)),
        ("relhasindex", flag(!table.indexes.is_empty())),
        ("relisshared", flag(builtin::is_shared(table.oid))),
        ("relpersistence", char(persistence(table))),
        ("relkind", char(kind)),
        ("relnatts", small(table.columns.len())),
        ("relchecks", small(table.checks.len())),
        ("relhasrules", flag(kind == b'v' || !table.rules.is_empty())),
        (
            "relhassubclass",
            flag(
                table.has_children()
                    || table
                        .partition_key
                        .iter()
                        .any(|key| !key.partitions.is_empty()),
            ),
        ),
        (
            "relhastriggers",
            flag(referred || !table.foreign_keys.is_empty() || !table.triggers.is_empty()),
        ),
        (
            "relispopulated",
            flag(kind != b'm' || table.view.as_ref().is_some_and(|view| view.populated)),
        ),
        (
            "relreplident",
            char(match kind {
                b'r' | b'm' | b'p' => table.replica_identity.letter(),
                _ => b'n',
            }),
        ),
        ("relrowsecurity", flag(table.row_security)),
        ("relforcerowsecurity", flag(table.force_row_security)),
        ("relispartition", flag(table.partition_of.is_some())),
        ("relacl", relacl),
        (
            "relpartbound",
            match &table.partition_of {
                Some(_) => text(planner::bind::stored::bound_node(table)),
                None => Datum::Null,
            },
        ),
        (
            "reloptions",
            match options.is_empty() {
                true => Datum::Null,
                false => array(TypeId::TEXT, options),
            },
        ),
    ]);
    for index in &table.indexes {
        rows.push([
            ("oid", oid(index.oid)),
            ("relname", text(&index.name)),
            ("relnamespace", oid(table.schema)),
            ("relowner", oid(table.owner)),
            ("relam", oid(index.form.method)),
            ("relfilenode", oid(if kind == b'p' { 0 } else { index.oid })),
            ("relisshared", flag(builtin::is_shared(table.oid))),
            ("relpersistence", char(persistence(table))),
            ("relkind", char(if kind == b'p' { b'I' } else { b'i' })),
            (
                "relispartition",
                flag(table.part_above(index.oid).is_some()),
            ),
            (
                "relhassubclass",
                flag(
                    table
                        .partition_key
                        .iter()
                        .any(|key| !key.partitions.is_empty()),
                ),
            ),
            ("relnatts", small(index.key_count() + index.include.len())),
            ("relispopulated", flag(true)),
            ("relreplident", char(b'n')),
            ("reloptions", shown_options(&index.form.options)),
        ]);
    }
}

fn attributes(catalog: Option<&Catalog>, table: &Table, rows: &mut Rows) {
    for (place, column) in table.columns.iter().enumerate() {
        let number = place + 1;
        let given = match (catalog, u32::try_from(number)) {
            (Some(catalog), Ok(number)) => acl(catalog, Address::CLASS, table.oid, number),
            _ => Datum::Null,
        };
        let collation = match collation::of_type(column.type_id) {
            0 => 0,
            _ if column.collation != 0 => column.collation,
            // Texts that a view of the system's computes have the collation of the database.
            collation
                if system::kind(table) == b'v'
                    && column.type_id.array_element().unwrap_or(column.type_id) == TypeId::TEXT
                    && column.name != "passwd" =>
            {
                collation
            }
            _ if catalog.is_none() && table.schema == PG_CATALOG => collation::C,
            collation => collation,
        };
        let target = catalog.and_then(|catalog| catalog.statistics_target(table.oid, place));
        let origin = match catalog {
            Some(catalog) => catalog.column_origin(table, place),
            None => (0, true),
        };
        let extra = (given, collation, target, origin);
        attribute(table.oid, column, number, extra, rows);
    }
    for index in &table.indexes {
        for (place, column) in index.shown_columns(table).into_iter().enumerate() {
            let collation = collation_of_key(table, index, place, column.type_id);
            let extra = (Datum::Null, collation, None, (0, true));
            attribute(index.oid, &column, place + 1, extra, rows);
        }
    }
}

pub(super) fn attribute(
    relation: u32,
    column: &Column,
    number: usize,
    (acl, collation, target, origin): (Datum, u32, Option<i32>, (usize, bool)),
    rows: &mut Rows,
) {
    let ty = column.type_id;
    let (declared, typmod) = column.declared();
    let dropped = column.dropped;
    let name = match dropped {
        true => format!("........pg.dropped.{number}........"),
        false => column.name.clone(),
    };
    rows.push([
        ("attrelid", oid(relation)),
        ("attname", text(name)),
        ("atttypid", oid(if dropped { 0 } else { declared.0 })),
        ("attstattarget", int(target.unwrap_or(-1))),
        ("attlen", Datum::Int2(ty.len())),
        ("attnum", small(number)),
        (
            "attndims",
            int(i32::from(declared.array_element().is_some())),
        ),
        ("attcacheoff", int(-1)),
        ("atttypmod", int(typmod)),
        ("attbyval", flag(builtin::by_value(ty))),
        ("attalign", char(builtin::alignment(ty))),
        ("attstorage", char(column.storage().letter())),
        (
            "attcompression",
            char(column.compression.map_or(0, |method| method.letter())),
        ),
        ("attnotnull", flag(column.not_null)),
        ("atthasdef", flag(column.default.is_some())),
        ("atthasmissing", flag(column.missing.is_some())),
        (
            "attidentity",
            char(match column.identity {
                Identity::None => 0,
                Identity::Always => b'a',
                Identity::ByDefault => b'd',
            }),
        ),
        (
            "attgenerated",
            char(if column.generated { b's' } else { 0 }),
        ),
        ("attisdropped", flag(dropped)),
        ("attislocal", flag(origin.1)),
        ("attinhcount", int(origin.0 as i32)),
        ("attcollation", oid(collation)),
        ("attacl", acl),
        ("attoptions", shown_options(&column.options)),
    ]);
}

/// The oid of the default of a column, which has none of its own.
pub fn default_oid(table: &Table, place: usize) -> u32 {
    // Far above what counting gives, and as stable as the column.
    const DEFAULTS: u32 = 1 << 31;
    DEFAULTS | table.oid.wrapping_mul(2_048).wrapping_add(place as u32) & !DEFAULTS
}

fn defaults(table: &Table, rows: &mut Rows) {
    for (place, column) in table.columns.iter().enumerate() {
        if column.default.is_none() || column.dropped {
            continue;
        }
        rows.push([
            ("oid", oid(default_oid(table, place))),
            ("adrelid", oid(table.oid)),
            ("adnum", small(place + 1)),
            (
                "adbin",
                text(planner::bind::stored::column_default(table, place)),
            ),
        ]);
    }
}

/// `pg_collation`: the collations that users have made.
fn collations(catalog: &Catalog, rows: &mut Rows) {
    for known in catalog.collations.iter() {
        builtin::put_collation(known, rows);
    }
}

/// `pg_operator`: the operators that users have made.
fn operators(catalog: &Catalog, rows: &mut Rows) {
    for own in catalog.operators.iter() {
        rows.push([
            ("oid", oid(own.oid)),
            ("oprname", text(&own.name)),
            ("oprnamespace", oid(own.schema)),
            ("oprowner", oid(own.owner)),
            (
                "oprkind",
                char(match own.left {
                    TypeId::NONE => b'l',
                    _ => b'b',
                }),
            ),
            ("oprcanmerge", flag(own.merges)),
            ("oprcanhash", flag(own.hashes)),
            ("oprleft", oid(own.left.0)),
            ("oprright", oid(own.right.0)),
            ("oprresult", oid(own.result.0)),
            ("oprcom", oid(own.commutator)),
            ("oprnegate", oid(own.negator)),
            ("oprcode", oid(own.function)),
            ("oprrest", oid(own.restriction)),
            ("oprjoin", oid(own.join)),
        ]);
    }
}

/// The collation of a key of an index, which is of that type.
fn collation_of_key(table: &Table, index: &Index, place: usize, ty: TypeId) -> u32 {
    if let given @ 1.. = index.form.collation(place) {
        return given;
    }
    let included = place.checked_sub(index.key_count());
    let column = match included {
        Some(place) => index.include.get(place).copied(),
        None => index.key_column(place),
    };
    let column = column.and_then(|column| table.columns.get(column));
    match column.map_or(0, |column| column.collation) {
        0 => collation::of_type(ty),
        own => own,
    }
}

fn indexes(catalog: Option<&Catalog>, table: &Table, rows: &mut Rows) {
    for index in &table.indexes {
        let is_valid = catalog.is_none_or(|catalog| catalog.is_whole(table, index.oid));
        let count = index.key_count();
        let orders = || (0..count).filter_map(|place| index.key_order(table, place));
        let keys = (0..count).map(|place| index.key_column(place).map_or(0, |column| column + 1));
        let included = index.include.iter().map(|column| column + 1);
        let keys = keys.chain(included).map(small);
        let options = orders().map(|order| {
            let ColumnOrder {
                descending,
                nulls_first,
            } = order.order;
            Datum::Int2(i16::from(descending) | i16::from(nulls_first) << 1)
        });
        let collations = orders().enumerate();
        let collations = collations
            .map(|(place, order)| oid(collation_of_key(table, index, place, order.type_id)));
        let classes = orders().enumerate();
        let classes = classes.map(|(place, order)| oid(index.form.class_for(place, order.type_id)));
        let computed = index.computed.as_deref();
        let expressions = computed.and_then(planner::bind::stored::index_keys_node);
        let condition = computed.and_then(|computed| computed.condition.as_deref());
        let condition = condition.map(planner::bind::stored::index_node);
        rows.push([
            ("indexrelid", oid(index.oid)),
            ("indrelid", oid(table.oid)),
            ("indnatts", small(count + index.include.len())),
            ("indnkeyatts", small(count)),
            ("indisunique", flag(index.is_unique())),
            ("indnullsnotdistinct", flag(index.nulls_equal)),
            ("indisprimary", flag(index.is_primary())),
            ("indisexclusion", flag(index.exclusion.is_some())),
            ("indimmediate", flag(!index.is_deferrable())),
            ("indisclustered", flag(index.clustered)),
            ("indisreplident", flag(index.replica_identity)),
            ("indisvalid", flag(is_valid)),
            ("indisready", flag(true)),
            ("indislive", flag(true)),
            ("indkey", vector(TypeId::INT2, keys.collect())),
            ("indcollation", vector(TypeId::OID, collations.collect())),
            ("indclass", vector(TypeId::OID, classes.collect())),
            ("indoption", vector(TypeId::INT2, options.collect())),
            ("indexprs", expressions.map_or(Datum::Null, text)),
            ("indpred", condition.map_or(Datum::Null, text)),
        ]);
    }
}

fn numbers(places: impl Iterator<Item = usize>) -> Datum {
    array(TypeId::INT2, places.map(|place| small(place + 1)).collect())
}

/// What a constraint of a partition is a part of: whether it is any, and the oid of that.
fn above(catalog: Option<&Catalog>, table: &Table, part: u32) -> (bool, u32) {
    let Some((catalog, above)) = catalog.zip(table.part_above(part)) else {
        return (false, 0);
    };
    let index = catalog.index_by_oid(above);
    (true, index.map_or(above, |(_, index)| index.constraint))
}

fn constraints(catalog: Option<&Catalog>, table: &Table, rows: &mut Rows) {
    for index in table.indexes.iter().filter(|index| index.constraint != 0) {
        key_constraint(above(catalog, table, index.oid), table, index, rows);
    }
    for check in &table.checks {
        let origin = match catalog {
            Some(catalog) => catalog.check_origin(table, check),
            None => (0, true),
        };
        rows.push([
            ("oid", oid(check.oid)),
            ("conname", text(&check.name)),
            ("connamespace", oid(table.schema)),
            ("contype", char(b'c')),
            ("convalidated", flag(check.validated)),
            ("conrelid", oid(table.oid)),
            ("confupdtype", char(b' ')),
            ("confdeltype", char(b' ')),
            ("confmatchtype", char(b' ')),
            ("conislocal", flag(origin.1)),
            ("coninhcount", int(origin.0 as i32)),
            ("connoinherit", flag(check.no_inherit)),
            ("conkey", numbers(check.columns.iter().copied())),
            ("conbin", text(planner::bind::stored::check(check))),
        ]);
    }
    for key in &table.foreign_keys {
        foreign_constraint(above(catalog, table, key.oid), table, key, rows);
    }
    for part in &table.foreign_parts {
        foreign_part(catalog, table, part, rows);
    }
    triggers::constraints(table, rows);
}

fn key_constraint((is_part, above): (bool, u32), table: &Table, index: &Index, rows: &mut Rows) {
    let exclusion = index.exclusion.as_deref();
    // An expression has the number 0, where there can be one.
    let columns = (0..index.key_count()).map(|place| match index.key_column(place) {
        Some(column) => small(column + 1),
        None => small(0),
    });
    let operators = exclusion.map_or(Datum::Null, |exclusion| {
        let operators = exclusion.operators.iter().map(|known| oid(*known));
        array(TypeId::OID, operators.collect())
    });
    rows.push([
        ("oid", oid(index.constraint)),
        ("conname", text(&index.name)),
        ("connamespace", oid(table.schema)),
        (
            "contype",
            char(match (index.is_primary(), exclusion) {
                (true, _) => b'p',
                (false, None) => b'u',
                (false, Some(_)) => b'x',
            }),
        ),
        ("condeferrable", flag(index.is_deferrable())),
        ("condeferred", flag(index.is_initially_deferred())),
        ("convalidated", flag(true)),
        ("conrelid", oid(table.oid)),
        ("conindid", oid(index.oid)),
        ("confupdtype", char(b' ')),
        ("confdeltype", char(b' ')),
        ("confmatchtype", char(b' ')),
        ("conislocal", flag(!is_part)),
        ("coninhcount", int(i32::from(is_part))),
        ("conparentid", oid(above)),
        ("connoinherit", flag(!is_part)),
        ("conkey", array(TypeId::INT2, columns.collect())),
        ("conexclop", operators),
    ]);
}

/// A foreign key to a partitioned table as it is for one partition of that.
fn foreign_part(catalog: Option<&Catalog>, table: &Table, part: &ForeignPart, rows: &mut Rows) {
    let own = catalog.and_then(|catalog| catalog.foreign_part(table, part));
    let to = catalog.and_then(|catalog| catalog.table_by_oid(part.partition));
    let (Some(own), Some(to)) = (own, to) else {
        return;
    };
    let above = to.partition_of.as_ref().map(|of| of.parent);
    let mut parts = table.foreign_parts.iter();
    let above = parts.find(|known| known.key == part.key && Some(known.partition) == above);
    let above = above.map_or(part.key, |known| known.oid);
    foreign_constraint((true, above), table, &own, rows);
}

fn foreign_constraint(
    (is_part, above): (bool, u32),
    table: &Table,
    key: &ForeignKey,
    rows: &mut Rows,
) {
    let letter = |action: catalog::Action| char(action.letter() as u8);
    rows.push([
        ("oid", oid(key.oid)),
        ("conname", text(&key.name)),
        ("connamespace", oid(table.schema)),
        ("contype", char(b'f')),
        ("condeferrable", flag(key.deferrable)),
        ("condeferred", flag(key.initially_deferred)),
        ("convalidated", flag(key.validated)),
        ("conrelid", oid(table.oid)),
        ("conindid", oid(key.index)),
        ("confrelid", oid(key.table)),
        ("confupdtype", letter(key.on_update)),
        ("confdeltype", letter(key.on_delete)),
        (
            "confmatchtype",
            char(if key.match_full { b'f' } else { b's' }),
        ),
        ("conislocal", flag(!is_part)),
        ("coninhcount", int(i32::from(is_part))),
        ("conparentid", oid(above)),
        (
            "connoinherit",
            flag(!is_part && table.partition_key.is_none()),
        ),
        ("conkey", numbers(key.columns.iter().copied())),
        ("confkey", numbers(key.referenced.iter().copied())),
    ]);
}

fn descriptions(catalog: &Catalog, rows: &mut Rows) {
    let public = Address::of(Address::NAMESPACE, PUBLIC);
    if !catalog.comments.contains_key(&public) {
        rows.push([
            ("objoid", oid(PUBLIC)),
            ("classoid", oid(Address::NAMESPACE)),
            ("description", text("standard public schema")),
        ]);
    }
    for (address, comment) in &catalog.comments {
        // A comment that was taken off the public schema is kept as an empty one.
        if address.is_shared() || comment.is_empty() {
            continue;
        }
        rows.push([
            ("objoid", oid(address.object)),
            ("classoid", oid(address.class)),
            (
                "objsubid",
                int(i32::try_from(address.column).unwrap_or(i32::MAX)),
            ),
            ("description", text(comment)),
        ]);
    }
}

fn rules(catalog: &Catalog, rows: &mut Rows) {
    for table in user_tables(catalog).filter(|table| table.view.is_some()) {
        rows.push([
            ("oid", oid(query_rule_oid(table.oid))),
            ("rulename", text(RETURN)),
            ("ev_class", oid(table.oid)),
            ("ev_type", char(b'1')),
            ("ev_enabled", char(b'O')),
            ("is_instead", flag(true)),
            ("ev_qual", text("<>")),
        ]);
    }
    for table in user_tables(catalog) {
        for rule in &table.rules {
            let actions = rule.body.statements.iter();
            let actions: Vec<_> = actions.map(|action| action.text.as_str()).collect();
            rows.push([
                ("oid", oid(rule.oid)),
                ("rulename", text(&rule.name)),
                ("ev_class", oid(table.oid)),
                ("ev_type", char(rule.event_code())),
                ("ev_enabled", char(rule.enabled.letter())),
                ("is_instead", flag(rule.instead)),
                ("ev_qual", text(rule.condition.as_deref().unwrap_or("<>"))),
                ("ev_action", text(actions.join("; "))),
            ]);
        }
    }
}

fn policies(table: &Table, rows: &mut Rows) {
    let node = |condition: &Option<String>| match condition {
        Some(condition) => text(planner::bind::stored::policy_node(condition)),
        None => Datum::Null,
    };
    for policy in &table.policies {
        let roles = policy.roles.iter().map(|role| oid(*role)).collect();
        rows.push([
            ("oid", oid(policy.oid)),
            ("polname", text(&policy.name)),
            ("polrelid", oid(table.oid)),
            ("polcmd", char(policy.command.code())),
            ("polpermissive", flag(policy.permissive)),
            ("polroles", array(TypeId::OID, roles)),
            ("polqual", node(&policy.using)),
            ("polwithcheck", node(&policy.check)),
        ]);
    }
}

fn sequences(catalog: &Catalog, rows: &mut Rows) {
    for table in user_tables(catalog) {
        let Some(sequence) = &table.sequence else {
            continue;
        };
        rows.push([
            ("seqrelid", oid(table.oid)),
            ("seqtypid", oid(sequence.type_id.0)),
            ("seqstart", Datum::Int8(sequence.start)),
            ("seqincrement", Datum::Int8(sequence.increment)),
            ("seqmax", Datum::Int8(sequence.max)),
            ("seqmin", Datum::Int8(sequence.min)),
            ("seqcache", Datum::Int8(sequence.cache)),
            ("seqcycle", flag(sequence.cycle)),
        ]);
    }
}

/// The catalog that lists an object, its oid and the number of its column.
fn address(catalog: &Catalog, object: Object) -> (u32, u32, usize) {
    const DEFAULTS: u32 = 2_604;
    match object {
        Object::Schema(oid) => (Address::NAMESPACE, oid, 0),
        Object::Relation(oid) => (Address::CLASS, oid, 0),
        Object::Column(oid, place) => (Address::CLASS, oid, place + 1),
        Object::Default(oid, place) => match catalog.table_by_oid(oid) {
            Some(table) => (DEFAULTS, default_oid(table, place), 0),
            None => (DEFAULTS, 0, 0),
        },
        Object::Constraint(oid) => (Address::CONSTRAINT, oid, 0),
        Object::Policy(oid) => (Address::POLICY, oid, 0),
        Object::Trigger(oid) => (Address::TRIGGER, oid, 0),
        Object::Rule(oid) => (Address::REWRITE, oid, 0),
        Object::Type(id) => (Address::TYPE, id.0, 0),
        Object::Routine(oid) => (Address::PROC, oid, 0),
        Object::Extension(oid) => (Address::EXTENSION, oid, 0),
        Object::Cast(oid) => (Address::CAST, oid, 0),
        Object::Collation(oid) => (Address::COLLATION, oid, 0),
        Object::Operator(oid) => (Address::OPERATOR, oid, 0),
        Object::Statistics(oid) => (Address::STATISTIC_EXT, oid, 0),
    }
}

fn dependencies(catalog: &Catalog, rows: &mut Rows) {
    let is_view = |oid: u32| {
        let table = catalog.table_by_oid(oid);
        table.is_some_and(|table| table.view.is_some())
    };
    for view in user_tables(catalog).filter(|table| table.view.is_some()) {
        rows.push([
            ("classid", oid(Address::REWRITE)),
            ("objid", oid(query_rule_oid(view.oid))),
            ("refclassid", oid(Address::CLASS)),
            ("refobjid", oid(view.oid)),
            ("deptype", char(b'i')),
        ]);
    }
    let number = |place: usize| int(i32::try_from(place).unwrap_or(i32::MAX));
    for edge in catalog.dependencies() {
        let (class, object, column) = match edge.dependent {
            // What a view looks at is what its rule depends on.
            Object::Relation(view)
                if is_view(view)
                    && !matches!(edge.referenced, Object::Schema(_) | Object::Extension(_)) =>
            {
                (Address::REWRITE, query_rule_oid(view), 0)
            }
            dependent => address(catalog, dependent),
        };
        let (of_class, of, of_column) = address(catalog, edge.referenced);
        rows.push([
            ("classid", oid(class)),
            ("objid", oid(object)),
            ("objsubid", number(column)),
            ("refclassid", oid(of_class)),
            ("refobjid", oid(of)),
            ("refobjsubid", number(of_column)),
            (
                "deptype",
                char(match edge.kind {
                    DependencyKind::Normal => b'n',
                    DependencyKind::Auto => b'a',
                    DependencyKind::Internal => b'i',
                    DependencyKind::Member => b'e',
                }),
            ),
        ]);
    }
}
