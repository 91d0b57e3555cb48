//! The row that holds a table: everything that DDL says of it, in one column of bytes.

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::key::ColumnOrder;
use base::row::{put_optional, Row, RowBuilder};
use base::{Error, Result, TreeId};

use super::inheritance;
use super::lists::read_list;
use super::partition;
use super::policy;
use super::rule;
use super::sequence::{self, Sequence};
use super::trigger;
use super::view::{self, View};
use super::{
    checked, computed, exclusion, foreign, index_form, Check, Column, Compression, Identity, Index,
    IndexForm, IndexedColumn, RelationKind, ReplicaIdentity, Storage, Table,
};
use types::TypeId;

/// The version of this encoding.
const FORMAT: u64 = 16;

/// The oldest that is read as well; any other is refused.
const FORMAT_OLDEST: u64 = 4;

/// Older ones end before row security.
const FORMAT_OF_POLICIES: u64 = 5;

/// Older ones say nothing of methods, operator classes and parameters of indexes.
const FORMAT_OF_INDEX_FORMS: u64 = 6;

/// Older ones end before triggers.
const FORMAT_OF_TRIGGERS: u64 = 7;

// Of format 8 are those whose columns may say a domain, by a flag that older ones never have.

/// Older ones end before partitions.
const FORMAT_OF_PARTITIONS: u64 = 9;

// Of format 10 are those whose indexes may have constraints that are checked later, and of format 11
// those that may have exclusion constraints or options of columns, and of format 12 those whose keys may have
// collations of their own, by flags that older ones never have.

/// Older ones end before inheritance.
const FORMAT_OF_INHERITANCE: u64 = 13;

/// Older ones end before rules.
const FORMAT_OF_RULES: u64 = 14;

// Of format 15 are those whose columns may say how they are kept, whose indexes may be clustered on, and which
// may be OF a type, and of format 16 those that may say what is told of their rows, by flags that older ones never
// have.

/// The row of a table.
pub fn encode(table: &Table) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, FORMAT);
    put_varint(&mut out, u64::from(table.oid));
    put_varint(&mut out, u64::from(table.schema));
    put_bytes(&mut out, table.name.as_bytes());
    put_varint(&mut out, u64::from(table.owner));
    out.push(kind_code(table.kind));
    put_varint(&mut out, table.tree.0);
    put_varint(&mut out, table.long_tree.0);
    put_varint(&mut out, table.columns.len() as u64);
    for column in &table.columns {
        put_bytes(&mut out, column.name.as_bytes());
        put_varint(&mut out, u64::from(column.type_id.0));
        put_signed(&mut out, i64::from(column.typmod));
        out.push(u8::from(column.not_null));
        put_text(&mut out, column.default.as_deref());
        put_varint(&mut out, column.default_uses.len() as u64);
        for oid in &column.default_uses {
            put_varint(&mut out, u64::from(*oid));
        }
        out.push(column.identity as u8);
        let has_collation = column.collation != 0;
        let has_domain = column.domain != TypeId::NONE;
        let has_options = !column.options.is_empty();
        let storage = column.said_storage.map_or(0, Storage::letter);
        let compression = column.compression.map_or(0, Compression::letter);
        let has_storage = (storage, compression) != (0, 0);
        out.push(
            u8::from(column.generated)
                | u8::from(has_collation) << 1
                | u8::from(has_domain) << 2
                | u8::from(has_options) << 3
                | u8::from(has_storage) << 4,
        );
        if has_collation {
            put_varint(&mut out, u64::from(column.collation));
        }
        if has_domain {
            put_varint(&mut out, u64::from(column.domain.0));
        }
        if has_options {
            put_options(&mut out, &column.options);
        }
        if has_storage {
            out.extend_from_slice(&[storage, compression]);
        }
        put_varint(&mut out, column.generated_from.len() as u64);
        for place in &column.generated_from {
            put_varint(&mut out, *place as u64);
        }
        out.push(u8::from(column.dropped));
        put_optional(&mut out, column.missing.as_deref());
    }
    put_varint(&mut out, table.indexes.len() as u64);
    for index in &table.indexes {
        put_varint(&mut out, u64::from(index.oid));
        put_bytes(&mut out, index.name.as_bytes());
        out.push(u8::from(index.primary));
        out.push(
            u8::from(index.unique)
                | u8::from(index.nulls_equal) << 1
                | u8::from(index.checked.is_some()) << 2
                | u8::from(index.exclusion.is_some()) << 3
                | u8::from(!index.form.collations.is_empty()) << 4
                | u8::from(index.clustered) << 5
                | u8::from(index.replica_identity) << 6,
        );
        if !index.form.collations.is_empty() {
            put_varint(&mut out, index.form.collations.len() as u64);
            for collation in &index.form.collations {
                put_varint(&mut out, u64::from(*collation));
            }
        }
        if let Some(checked) = &index.checked {
            checked::encode(checked, &mut out);
        }
        if let Some(exclusion) = &index.exclusion {
            exclusion::encode(exclusion, &mut out);
        }
        put_varint(&mut out, u64::from(index.constraint));
        put_varint(&mut out, index.tree.0);
        put_varint(&mut out, index.columns.len() as u64);
        for column in &index.columns {
            put_varint(&mut out, column.column as u64);
            out.push(column.order.code());
        }
        put_varint(&mut out, index.include.len() as u64);
        for place in &index.include {
            put_varint(&mut out, *place as u64);
        }
        put_part(&mut out, index.computed.as_deref(), computed::encode);
        index_form::encode(&index.form, &mut out);
    }
    put_varint(&mut out, table.checks.len() as u64);
    for check in &table.checks {
        put_varint(&mut out, u64::from(check.oid));
        put_bytes(&mut out, check.name.as_bytes());
        put_bytes(&mut out, check.condition.as_bytes());
        out.push(u8::from(check.validated) | u8::from(check.no_inherit) << 1);
        put_varint(&mut out, check.columns.len() as u64);
        for column in &check.columns {
            put_varint(&mut out, *column as u64);
        }
    }
    put_varint(&mut out, table.foreign_keys.len() as u64);
    for key in &table.foreign_keys {
        foreign::put(&mut out, key);
    }
    put_options(&mut out, &table.options);
    put_part(&mut out, table.view.as_ref(), view::encode);
    put_part(&mut out, table.sequence.as_ref(), sequence::encode);
    out.push(
        u8::from(table.row_security)
            | u8::from(table.force_row_security) << 1
            | u8::from(table.unlogged) << 2
            | u8::from(table.of_type != TypeId::NONE) << 3
            | (table.replica_identity as u8) << 4,
    );
    if table.of_type != TypeId::NONE {
        put_varint(&mut out, u64::from(table.of_type.0));
    }
    put_varint(&mut out, table.policies.len() as u64);
    for policy in &table.policies {
        policy::put(&mut out, policy);
    }
    put_varint(&mut out, table.triggers.len() as u64);
    for trigger in &table.triggers {
        trigger::put(&mut out, trigger);
    }
    put_part(&mut out, table.partition_key.as_deref(), partition::put_key);
    put_part(&mut out, table.partition_of.as_deref(), partition::put_of);
    put_varint(&mut out, table.foreign_parts.len() as u64);
    for part in &table.foreign_parts {
        foreign::put_foreign_part(&mut out, part);
    }
    put_part(&mut out, table.inheritance.as_deref(), inheritance::put);
    put_varint(&mut out, table.rules.len() as u64);
    for rule in &table.rules {
        rule::put(&mut out, rule);
    }
    RowBuilder::new(1).value(&out).finish()
}

fn kind_code(kind: RelationKind) -> u8 {
    match kind {
        RelationKind::Table => b'r',
        RelationKind::View => b'v',
        RelationKind::MaterializedView => b'm',
        RelationKind::Sequence => b'S',
        RelationKind::Partitioned => b'p',
        RelationKind::System => unreachable!("built-in relations are not stored"),
    }
}

fn kind_of(code: u8) -> Result<RelationKind> {
    Ok(match code {
        b'r' => RelationKind::Table,
        b'v' => RelationKind::View,
        b'm' => RelationKind::MaterializedView,
        b'S' => RelationKind::Sequence,
        b'p' => RelationKind::Partitioned,
        other => return Err(Error::corrupted(format!("a relation of kind {other}"))),
    })
}

pub(super) fn put_part<T>(out: &mut Vec<u8>, value: Option<&T>, put: fn(&T, &mut Vec<u8>)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(value, out);
    }
}

pub(super) fn read_part<T>(
    reader: &mut Reader<'_>,
    read: fn(&mut Reader<'_>) -> Result<T>,
) -> Result<Option<T>> {
    match reader.u8()? {
        0 => Ok(None),
        _ => read(reader).map(Some),
    }
}

/// Reads what [`encode`] made.
///
/// # Errors
/// XX001 when it is something else.
pub fn decode(row: &[u8]) -> Result<Table> {
    let row = Row::parse(row)?;
    let bytes = row
        .column(0)
        .ok_or_else(|| Error::corrupted("a table without a descriptor"))?;
    let mut reader = Reader::new(bytes);
    let format = reader.varint()?;
    if !(FORMAT_OLDEST..=FORMAT).contains(&format) {
        return Err(Error::corrupted(format!(
            "a table descriptor of format {format}, not {FORMAT}"
        )));
    }
    let mut table = Table {
        oid: reader.varint_as()?,
        schema: reader.varint_as()?,
        name: reader.str()?.to_owned(),
        owner: reader.varint_as()?,
        kind: kind_of(reader.u8()?)?,
        tree: TreeId(reader.varint()?),
        long_tree: TreeId(reader.varint()?),
        columns: read_list(&mut reader, read_column)?,
        indexes: read_list(&mut reader, |reader| read_index(reader, format))?,
        checks: read_list(&mut reader, read_check)?,
        foreign_keys: read_list(&mut reader, foreign::read)?,
        options: read_options(&mut reader)?,
        view: read_part::<View>(&mut reader, view::decode)?,
        sequence: read_part::<Sequence>(&mut reader, sequence::decode)?,
        ..Table::default()
    };
    if format >= FORMAT_OF_POLICIES {
        let flags = reader.u8()?;
        table.row_security = flags & 1 != 0;
        table.force_row_security = flags & 2 != 0;
        table.unlogged = flags & 4 != 0;
        table.replica_identity = ReplicaIdentity::ALL[usize::from(flags >> 4 & 3)];
        if flags & 8 != 0 {
            table.of_type = TypeId(reader.varint_as()?);
        }
        table.policies = read_list(&mut reader, policy::read)?;
    }
    if format >= FORMAT_OF_TRIGGERS {
        table.triggers = read_list(&mut reader, trigger::read)?;
    }
    if format >= FORMAT_OF_PARTITIONS {
        table.partition_key = read_part(&mut reader, partition::read_key)?.map(Box::new);
        table.partition_of = read_part(&mut reader, partition::read_of)?.map(Box::new);
        table.foreign_parts = read_list(&mut reader, foreign::read_foreign_part)?;
    }
    if format >= FORMAT_OF_INHERITANCE {
        table.inheritance = read_part(&mut reader, inheritance::read)?.map(Box::new);
    }
    if format >= FORMAT_OF_RULES {
        table.rules = read_list(&mut reader, rule::read)?;
    }
    reader.finish()?;
    Ok(table)
}

fn read_column(reader: &mut Reader<'_>) -> Result<Column> {
    let mut column = Column {
        name: reader.str()?.to_owned(),
        type_id: TypeId(reader.varint_as()?),
        typmod: i32::try_from(reader.signed()?)
            .map_err(|_| Error::corrupted("a type modifier of more than 32 bits"))?,
        not_null: reader.u8()? != 0,
        default: read_text(reader)?,
        default_uses: read_list(reader, |reader| reader.varint_as())?,
        identity: match reader.u8()? {
            0 => Identity::None,
            1 => Identity::Always,
            2 => Identity::ByDefault,
            other => return Err(Error::corrupted(format!("an identity of kind {other}"))),
        },
        ..Column::default()
    };
    let flags = reader.u8()?;
    column.generated = flags & 1 != 0;
    if flags & 2 != 0 {
        column.collation = reader.varint_as()?;
    }
    if flags & 4 != 0 {
        column.domain = TypeId(reader.varint_as()?);
    }
    if flags & 8 != 0 {
        column.options = read_options(reader)?;
    }
    if flags & 16 != 0 {
        column.said_storage = Storage::of_letter(reader.u8()?);
        column.compression = Compression::of_letter(reader.u8()?);
    }
    Ok(Column {
        generated_from: read_list(reader, |reader| reader.varint_as())?,
        dropped: reader.u8()? != 0,
        missing: match reader.varint()? {
            0 => None,
            _ => Some(reader.bytes()?.to_vec()),
        },
        ..column
    })
}

fn put_options(out: &mut Vec<u8>, options: &[(String, String)]) {
    put_varint(out, options.len() as u64);
    for (name, value) in options {
        put_bytes(out, name.as_bytes());
        put_bytes(out, value.as_bytes());
    }
}

fn read_options(reader: &mut Reader<'_>) -> Result<Vec<(String, String)>> {
    read_list(reader, |reader| {
        Ok((reader.str()?.to_owned(), reader.str()?.to_owned()))
    })
}

fn read_index(reader: &mut Reader<'_>, format: u64) -> Result<Index> {
    let (oid, name) = (reader.varint_as()?, reader.str()?.to_owned());
    let primary = reader.u8()? != 0;
    // 1: unique; 2: NULLs are equal; 4: checked later; 8: of an exclusion constraint; 16: with collations;
    // 32: clustered on; 64: replica identity.
    let unique = reader.u8()?;
    let collations = match unique & 16 {
        0 => Vec::new(),
        _ => read_list(reader, |reader| reader.varint_as())?,
    };
    let checked = match unique & 4 {
        0 => None,
        _ => Some(checked::decode(reader)?),
    };
    let exclusion = match unique & 8 {
        0 => None,
        _ => Some(Box::new(exclusion::decode(reader)?)),
    };
    Ok(Index {
        oid,
        name,
        primary,
        unique: unique & 1 != 0,
        nulls_equal: unique & 2 != 0,
        clustered: unique & 32 != 0,
        replica_identity: unique & 64 != 0,
        checked,
        exclusion,
        constraint: reader.varint_as()?,
        tree: TreeId(reader.varint()?),
        columns: read_list(reader, |reader| {
            Ok(IndexedColumn {
                column: reader.varint_as()?,
                order: ColumnOrder::from_code(reader.u8()?)?,
            })
        })?,
        include: read_list(reader, |reader| reader.varint_as())?,
        computed: read_part(reader, computed::decode)?.map(Box::new),
        form: match format >= FORMAT_OF_INDEX_FORMS {
            true => IndexForm {
                collations,
                ..index_form::decode(reader)?
            },
            false => IndexForm::default(),
        },
    })
}

fn read_check(reader: &mut Reader<'_>) -> Result<Check> {
    let (oid, name) = (reader.varint_as()?, reader.str()?.to_owned());
    let condition = reader.str()?.to_owned();
    let flags = reader.u8()?;
    Ok(Check {
        oid,
        name,
        condition,
        validated: flags & 1 != 0,
        no_inherit: flags & 2 != 0,
        columns: read_list(reader, |reader| reader.varint_as())?,
    })
}

pub(super) fn put_text(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_bytes(out, text.as_bytes());
    }
}

pub(super) fn read_text(reader: &mut Reader<'_>) -> Result<Option<String>> {
    match reader.u8()? {
        0 => Ok(None),
        _ => Ok(Some(reader.str()?.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::partition::{Bound, KeyPart, PartitionKey, PartitionOf, Strategy};
    use super::super::sql_body::{Known, SqlBody, SqlStatement};
    use super::super::trigger::{Condition, ConstraintTrigger, Enabled, Events, Timing};
    use super::super::{
        Action, Checked, Computed, ComputedKey, Exclusion, ForeignKey, ForeignPart, Inheritance,
        KeySource, Policy, PolicyCommand,
    };
    use super::super::{Rule, Trigger};
    use super::*;

    fn computed_index() -> Index {
        let keys = [
            KeySource::Column(0),
            KeySource::Expression {
                name: "lower".to_owned(),
                text: "lower(b)".to_owned(),
                type_id: TypeId::TEXT,
                typmod: -1,
            },
        ];
        let keys = keys.into_iter().map(|source| ComputedKey {
            source,
            order: ColumnOrder::DESCENDING,
        });
        Index {
            oid: 16_390,
            name: "some".to_owned(),
            primary: false,
            unique: true,
            nulls_equal: false,
            checked: None,
            exclusion: None,
            constraint: 0,
            tree: TreeId(16_401),
            clustered: false,
            replica_identity: false,
            columns: Vec::new(),
            include: Vec::new(),
            computed: Some(Box::new(Computed {
                keys: keys.collect(),
                condition: Some("i > 0".to_owned()),
                uses: vec![0, 1],
            })),
            form: IndexForm {
                method: 405,
                classes: vec![0, 4_217],
                collations: vec![950, 0],
                options: vec![("fillfactor".to_owned(), "70".to_owned())],
            },
        }
    }

    #[test]
    fn tables_come_back() {
        let table = Table {
            oid: 16_384,
            schema: 2_200,
            name: "démo".to_owned(),
            owner: 10,
            kind: RelationKind::Table,
            tree: TreeId(16_400),
            long_tree: TreeId(16_399),
            columns: vec![Column {
                name: "i".to_owned(),
                type_id: TypeId::INT4,
                typmod: -1,
                domain: TypeId::own(types::OwnKind::Domain, 7).unwrap(),
                collation: 950,
                not_null: true,
                default: Some("1".to_owned()),
                default_uses: vec![17, 18],
                identity: Identity::ByDefault,
                generated: true,
                generated_from: vec![3],
                dropped: false,
                missing: Some(vec![0, 0, 0, 7]),
                options: vec![("n_distinct".to_owned(), "-0.5".to_owned())],
                said_storage: Some(Storage::External),
                compression: None,
            }],
            indexes: vec![
                Index {
                    oid: 16_385,
                    name: "démo_pkey".to_owned(),
                    primary: true,
                    unique: true,
                    nulls_equal: false,
                    checked: None,
                    exclusion: None,
                    constraint: 16_386,
                    tree: TreeId(16_400),
                    clustered: true,
                    replica_identity: true,
                    columns: vec![IndexedColumn {
                        column: 0,
                        order: ColumnOrder::ASCENDING,
                    }],
                    include: vec![1],
                    computed: None,
                    form: IndexForm::default(),
                },
                computed_index(),
                Index {
                    oid: 16_391,
                    constraint: 16_392,
                    checked: Some(Checked {
                        primary: true,
                        initially_deferred: true,
                    }),
                    ..Index::default()
                },
                Index {
                    oid: 16_393,
                    constraint: 16_394,
                    exclusion: Some(Box::new(Exclusion {
                        operators: vec![3_888, 96],
                        deferrable: true,
                        initially_deferred: false,
                    })),
                    ..computed_index()
                },
            ],
            checks: vec![Check {
                oid: 16_387,
                name: "positive".to_owned(),
                condition: "i > 0".to_owned(),
                validated: true,
                no_inherit: false,
                columns: vec![0],
            }],
            foreign_keys: vec![ForeignKey {
                oid: 16_388,
                name: "up".to_owned(),
                columns: vec![0],
                table: 16_384,
                referenced: vec![0],
                index: 16_385,
                match_full: true,
                on_delete: Action::SetNull,
                on_update: Action::Cascade,
                set_columns: vec![0],
                deferrable: true,
                initially_deferred: false,
                validated: true,
            }],
            row_security: true,
            force_row_security: true,
            unlogged: true,
            policies: vec![Policy {
                oid: 16_389,
                name: "own".to_owned(),
                command: PolicyCommand::Update,
                permissive: true,
                roles: vec![0, 16_390],
                using: Some("SELECT i > 0".to_owned()),
                check: None,
                uses: vec![super::super::Uses {
                    relation: 16_384,
                    columns: vec![0],
                }],
            }],
            triggers: vec![Trigger {
                oid: 16_391,
                name: "watch".to_owned(),
                function: 16_392,
                timing: Timing::After,
                for_each_row: true,
                events: Events::INSERT.with(Events::UPDATE),
                columns: vec![0],
                arguments: vec!["x".to_owned(), String::new()],
                condition: Some(Condition {
                    text: "new.i > 0".to_owned(),
                    names: vec!["i".to_owned()],
                    columns: vec![0],
                }),
                enabled: Enabled::Replica,
                old_table: None,
                new_table: Some("gone".to_owned()),
                constraint: Some(ConstraintTrigger {
                    oid: 16_393,
                    table: 16_394,
                    deferrable: true,
                    initially_deferred: true,
                }),
            }],
            options: vec![("fillfactor".to_owned(), "90".to_owned())],
            view: Some(View {
                query: "SELECT 1".to_owned(),
                uses: vec![super::super::Uses {
                    relation: 16_500,
                    columns: vec![0, 2],
                }],
                check_option: super::super::CheckOption::Cascaded,
                populated: true,
            }),
            sequence: Some(Sequence {
                owner: Some(super::super::Owner {
                    table: 16_384,
                    column: 0,
                    identity: true,
                }),
                ..Sequence::default()
            }),
            partition_key: Some(Box::new(PartitionKey {
                strategy: Strategy::List,
                parts: vec![KeyPart {
                    source: computed_index().computed.unwrap().keys[1].source.clone(),
                    collation: 950,
                    uses: vec![1],
                }],
                partitions: vec![16_395],
            })),
            partition_of: Some(Box::new(PartitionOf {
                parent: 16_396,
                types: vec![TypeId::INT4],
                bound: Bound::List(vec![types::Datum::Int4(7)]),
                parts: Vec::new(),
            })),
            foreign_parts: vec![ForeignPart {
                key: 16_400,
                partition: 16_401,
                oid: 16_402,
                name: "t_k_fkey1".to_owned(),
            }],
            inheritance: Some(Box::new(Inheritance {
                parents: vec![16_403, 16_404],
                children: vec![16_405],
                local_columns: vec![1],
                local_checks: vec![16_406],
            })),
            of_type: TypeId::own(types::OwnKind::Composite, 8).unwrap(),
            replica_identity: ReplicaIdentity::Index,
            rules: vec![Rule {
                oid: 16_407,
                name: "also".to_owned(),
                event: Events::UPDATE,
                instead: true,
                enabled: Enabled::Always,
                condition: Some("SELECT new.a > 1".to_owned()),
                body: SqlBody {
                    is_block: true,
                    statements: vec![SqlStatement::default()],
                    known: vec![Known::default()],
                },
                uses: vec![super::super::Uses::default()],
            }],
        };
        assert_eq!(decode(&encode(&table)).unwrap(), table);
        assert!(decode(b"\x01\x03\x07\x07").is_err());
    }

    #[test]
    fn tables_of_the_formats_before_come_back() {
        let table = Table {
            indexes: vec![Index {
                form: IndexForm::default(),
                ..computed_index()
            }],
            ..Table::default()
        };
        let row = encode(&table);
        let mut bytes = Row::parse(&row).unwrap().column(0).unwrap().to_vec();
        let as_row = |bytes: &[u8]| RowBuilder::new(1).value(bytes).finish();
        bytes[0] = FORMAT_OF_RULES as u8;
        assert_eq!(decode(&as_row(&bytes)).unwrap(), table);
        // Without the rules at its end.
        bytes.pop();
        bytes[0] = FORMAT_OF_INHERITANCE as u8;
        assert_eq!(decode(&as_row(&bytes)).unwrap(), table);
        // Without the inheritance at its end.
        bytes.pop();
        bytes[0] = FORMAT_OF_INHERITANCE as u8 - 1;
        assert_eq!(decode(&as_row(&bytes)).unwrap(), table);
        // Without the partitions at its end.
        bytes.truncate(bytes.len() - 3);
        bytes[0] = FORMAT_OF_TRIGGERS as u8;
        assert_eq!(decode(&as_row(&bytes)).unwrap(), table);
        // Without the triggers at its end.
        bytes.pop();
        bytes[0] = FORMAT_OF_INDEX_FORMS as u8;
        assert_eq!(decode(&as_row(&bytes)).unwrap(), table);
        let mut form = Vec::new();
        index_form::encode(&IndexForm::default(), &mut form);
        let found = |bytes: &[u8]| bytes.windows(form.len()).position(|part| part == form);
        let start = found(&bytes).unwrap();
        bytes.drain(start..start + form.len());
        assert_eq!(found(&bytes), None);
        bytes[0] = FORMAT_OF_POLICIES as u8;
        assert_eq!(decode(&as_row(&bytes)).unwrap(), table);
        // Without the flags and the policies at its end.
        bytes.truncate(bytes.len() - 2);
        bytes[0] = FORMAT_OLDEST as u8;
        assert_eq!(decode(&as_row(&bytes)).unwrap(), table);
        bytes[0] = FORMAT_OLDEST as u8 - 1;
        assert!(decode(&as_row(&bytes)).is_err());
    }
}
