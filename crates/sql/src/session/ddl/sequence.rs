//! CREATE SEQUENCE, ALTER SEQUENCE, and the sequences of serial and identity columns.
//!
//! The options are taken in the order in which PostgreSQL checks them, so that the first of several
//! mistakes is the one that is reported.

use base::engine::TableLock;
use base::{Error, Result, SequenceId, SqlState};
use pg_query::protobuf::{AlterSeqStmt, CreateSeqStmt, DefElem, Node, RangeVar};

use super::super::utility::{node_of, tag};
use super::super::{CommandTag, Session, Sink};
use super::table::{choose_name, cut_name};
use super::texts;
use catalog::sequence::limits_of;
use catalog::store::{self, duplicate_relation};
use catalog::{Catalog, Column, Owner, RelationKind, Sequence, Table};
use planner::bind::{self, BindContext};
use syntax::parser::{char_position, NodeEnum};
use types::TypeId;

/// States of SQL's sequences are above those of hidden row numbers, which are oids.
const STATES: u64 = 1 << 40;

/// Options of a sequence as they are written.
#[derive(Default)]
struct Options<'n> {
    type_id: Option<TypeId>,
    increment: Option<i64>,
    start: Option<i64>,
    /// RESTART, perhaps WITH a value.
    restart: Option<Option<i64>>,
    /// MAXVALUE, or NO MAXVALUE.
    max: Option<Option<i64>>,
    min: Option<Option<i64>>,
    cache: Option<i64>,
    cycle: Option<bool>,
    owned_by: Option<&'n [Node]>,
    /// SEQUENCE NAME of an identity column.
    name: Option<&'n str>,
}

impl Session {
    pub(in crate::session) fn create_sequence(
        &mut self,
        text: &str,
        create: &CreateSeqStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let range = create
            .sequence
            .as_ref()
            .ok_or_else(|| Error::internal("a sequence without a name"))?;
        let catalog = self.current_catalog()?;
        let schema = self.schema_for(&catalog, "", range)?;
        let name = cut_name(&range.relname);
        if catalog.has_relation(schema, &name) {
            self.pass_over_existing(&name, create.if_not_exists, sink)?;
            return Ok(tag("CREATE SEQUENCE"));
        }
        let options = self.sequence_options(text, &catalog, &create.options, false)?;
        let mut sequence = Sequence::default();
        begin(&mut sequence, &options)?;
        let mut table = self.sequence_table(&catalog, schema, name, sequence)?;
        table.unlogged = range.relpersistence == "u";
        if let Some(names) = options.owned_by {
            let owner = self.owner_named(names, &table)?;
            set_owner(&mut table, owner)?;
        }
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        store::insert_table(open.txn.as_mut(), &catalog, &table)?;
        Ok(tag("CREATE SEQUENCE"))
    }

    /// The schema in which a named relation is made, with the error's position.
    pub(super) fn schema_for(
        &mut self,
        catalog: &Catalog,
        text: &str,
        range: &RangeVar,
    ) -> Result<u32> {
        if self.is_temporary(range) {
            return self.temporary_schema(range).map_err(|error| {
                match char_position(text, range.location) {
                    Some(position) => error.at(position),
                    None => error,
                }
            });
        }
        if let Some(local) = &self.shared.local {
            local.decide(false);
        }
        self.creation_schema(catalog, &range.schemaname)
            .map_err(|error| match char_position(text, range.location) {
                Some(position) => error.at(position),
                None => error,
            })
    }

    fn new_state(&self) -> Result<SequenceId> {
        let number = store::new_tree(&*self.shared.engine.sequences)?;
        Ok(SequenceId(STATES + number.0))
    }

    /// The relation of a sequence, with a state of its own.
    pub(super) fn sequence_table(
        &mut self,
        catalog: &Catalog,
        schema: u32,
        name: String,
        mut sequence: Sequence,
    ) -> Result<Table> {
        sequence.state = self.new_state()?;
        let column = |name: &str, type_id| Column {
            name: name.to_owned(),
            type_id,
            typmod: -1,
            not_null: true,
            ..Column::default()
        };
        Ok(Table {
            oid: self.new_oid()?,
            schema,
            name,
            owner: self.own_role(catalog)?,
            kind: RelationKind::Sequence,
            tree: store::new_tree(&*self.shared.engine.sequences)?,
            columns: vec![
                column("last_value", TypeId::INT8),
                column("log_cnt", TypeId::INT8),
                column("is_called", TypeId::BOOL),
            ],
            sequence: Some(sequence),
            ..Table::default()
        })
    }

    /// The sequence of a serial or identity column of a table that is being made.
    pub(super) fn column_sequence(
        &mut self,
        text: &str,
        catalog: &std::sync::Arc<Catalog>,
        table: &Table,
        place: usize,
        options: Option<&[Node]>,
        taken: impl Fn(&str) -> bool,
    ) -> Result<Table> {
        let column = &table.columns[place];
        let parsed = self.sequence_options(text, catalog, options.unwrap_or_default(), true)?;
        let mut sequence = Sequence {
            type_id: column.type_id,
            ..Sequence::default()
        };
        begin(&mut sequence, &parsed)?;
        let taken = |name: &str| taken(name) || catalog.relation(table.schema, name).is_some();
        let name = match parsed.name {
            Some(name) if taken(name) => return Err(duplicate_relation(name)),
            Some(name) => cut_name(name),
            None => choose_name(&table.name, &column.name, "seq", taken),
        };
        sequence.owner = Some(Owner {
            table: table.oid,
            column: place,
            identity: options.is_some(),
        });
        Ok(Table {
            unlogged: table.unlogged,
            ..self.sequence_table(catalog, table.schema, name, sequence)?
        })
    }

    pub(in crate::session) fn alter_sequence(
        &mut self,
        text: &str,
        alter: &AlterSeqStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let range = alter
            .sequence
            .as_ref()
            .ok_or_else(|| Error::internal("a sequence without a name"))?;
        if self.skip_missing(range, alter.missing_ok, sink)? {
            return Ok(tag("ALTER SEQUENCE"));
        }
        // Values go on being read, and none is given, until this transaction ends.
        let table = self.lock_table_so(range, TableLock::ShareRowExclusive)?;
        self.change_sequence(text, &table, &alter.options, alter.for_identity)?;
        Ok(tag("ALTER SEQUENCE"))
    }

    /// Changes the options of a sequence.
    pub(super) fn change_sequence(
        &mut self,
        text: &str,
        table: &Table,
        options: &[Node],
        for_identity: bool,
    ) -> Result<()> {
        let Some(old) = &table.sequence else {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a sequence", table.name),
            ));
        };
        let catalog = self.current_catalog()?;
        let options = self.sequence_options(text, &catalog, options, for_identity)?;
        let mut sequence = old.clone();
        let sequences = self.shared.engine.sequences.clone();
        let (at, _, debt) = sequences.sequence_position(old.state, &old.spec())?;
        change(&mut sequence, &options, at.last)?;
        if options.restart.is_some() {
            sequence.state = self.new_state()?;
        }
        let mut new = table.clone();
        new.sequence = Some(sequence);
        if let Some(names) = options.owned_by {
            if old.owner.is_some_and(|owner| owner.identity) {
                return Err(owned_identity(&catalog, &new));
            }
            let owner = self.owner_named(names, &new)?;
            set_owner(&mut new, owner)?;
        }
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        open.txn.owe(&debt);
        store::update_table(open.txn.as_mut(), catalog.database.oid, &new)?;
        self.shared.sequences_ahead.remove(&old_state(table));
        Ok(())
    }

    /// Gives the sequences that belong to a table a new beginning.
    pub(super) fn restart_sequences(&mut self, table: u32) -> Result<()> {
        let catalog = self.current_catalog()?;
        for owned in &catalog.tables {
            let Some(sequence) = &owned.sequence else {
                continue;
            };
            if sequence.owner.is_none_or(|owner| owner.table != table) {
                continue;
            }
            self.lock_exclusively(owned)?;
            let mut new = (**owned).clone();
            new.sequence = Some(Sequence {
                state: self.new_state()?,
                begins_at: sequence.start,
                ..sequence.clone()
            });
            if let Some(open) = &mut self.open {
                store::update_table(open.txn.as_mut(), catalog.database.oid, &new)?;
            }
        }
        Ok(())
    }

    /// The relation that a name means, if there is one.
    pub(super) fn find_range(&mut self, range: &RangeVar) -> Result<Option<catalog::RelationRef>> {
        let catalog = self.current_catalog()?;
        let search_path = self.search_path(&catalog);
        let cx = BindContext {
            catalog: &catalog,
            search_path: &search_path,
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text: "",
            literals: None,
            variables: None,
        };
        bind::find_relation(&cx, range)
    }

    /// The column that OWNED BY names; none for NONE.
    fn owner_named(&mut self, names: &[Node], sequence: &Table) -> Result<Option<Owner>> {
        let names = texts(names);
        let (table, column) = match names.as_slice() {
            [none] if none == "none" => return Ok(None),
            [table @ .., column] if !table.is_empty() => (table, column),
            _ => {
                return Err(
                    Error::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option")
                        .with_hint("Specify OWNED BY table.column or OWNED BY NONE."),
                )
            }
        };
        let range = RangeVar {
            relname: table.last().cloned().unwrap_or_default(),
            schemaname: match table {
                [.., schema, _] => schema.clone(),
                _ => String::new(),
            },
            location: -1,
            ..RangeVar::default()
        };
        let table = self.find_table(&range)?;
        if matches!(
            table.kind,
            RelationKind::Sequence | RelationKind::MaterializedView
        ) {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("sequence cannot be owned by relation \"{}\"", table.name),
            ));
        }
        let differs = |what: &str| {
            Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("sequence must {what} as table it is linked to"),
            )
        };
        if table.owner != sequence.owner {
            return Err(differs("have same owner"));
        }
        if table.schema != sequence.schema {
            return Err(differs("be in same schema"));
        }
        let place = table.column(column).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "column \"{column}\" of relation \"{}\" does not exist",
                    table.name
                ),
            )
        })?;
        Ok(Some(Owner {
            table: table.oid,
            column: place,
            identity: false,
        }))
    }

    fn sequence_options<'n>(
        &self,
        text: &str,
        catalog: &std::sync::Arc<Catalog>,
        nodes: &'n [Node],
        for_identity: bool,
    ) -> Result<Options<'n>> {
        let mut options = Options::default();
        let mut seen: Vec<&str> = Vec::new();
        for node in nodes {
            let Some(NodeEnum::DefElem(option)) = &node.node else {
                continue;
            };
            if seen.contains(&option.defname.as_str()) {
                let error = Error::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options");
                return Err(match char_position(text, option.location) {
                    Some(position) => error.at(position),
                    None => error,
                });
            }
            seen.push(&option.defname);
            match option.defname.as_str() {
                "as" => {
                    options.type_id =
                        Some(self.sequence_type(text, catalog, option, for_identity)?)
                }
                "increment" => options.increment = Some(number(option)?),
                "start" => options.start = Some(number(option)?),
                "restart" => options.restart = Some(optional_number(option)?),
                "maxvalue" => options.max = Some(optional_number(option)?),
                "minvalue" => options.min = Some(optional_number(option)?),
                "cache" => options.cache = Some(number(option)?),
                "cycle" => {
                    options.cycle = Some(match node_of(&option.arg) {
                        Some(NodeEnum::Boolean(value)) => value.boolval,
                        _ => true,
                    });
                }
                "owned_by" => {
                    if let Some(NodeEnum::List(list)) = node_of(&option.arg) {
                        options.owned_by = Some(&list.items);
                    }
                }
                "sequence_name" if for_identity => {
                    if let Some(NodeEnum::List(list)) = node_of(&option.arg) {
                        let last = list.items.last().and_then(|node| node.node.as_ref());
                        if let Some(NodeEnum::String(name)) = last {
                            options.name = Some(&name.sval);
                        }
                    }
                }
                other => {
                    return Err(Error::unsupported(format!("{other} of a sequence")));
                }
            }
        }
        Ok(options)
    }

    fn sequence_type(
        &self,
        text: &str,
        catalog: &std::sync::Arc<Catalog>,
        option: &DefElem,
        for_identity: bool,
    ) -> Result<TypeId> {
        let Some(NodeEnum::TypeName(name)) = node_of(&option.arg) else {
            return Err(Error::internal("a sequence AS no type"));
        };
        let search_path = self.search_path(catalog);
        let cx = BindContext {
            catalog,
            search_path: &search_path,
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text,
            literals: None,
            variables: None,
        };
        let (type_id, _) = bind::type_names::resolve(&cx, name)?;
        match type_id {
            TypeId::INT2 | TypeId::INT4 | TypeId::INT8 => Ok(type_id),
            _ => Err(wrong_type(for_identity)),
        }
    }
}

/// 22023 for a sequence or an identity column that is no integer.
pub(super) fn wrong_type(for_identity: bool) -> Error {
    let what = match for_identity {
        true => "identity column",
        false => "sequence",
    };
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("{what} type must be smallint, integer, or bigint"),
    )
}

fn old_state(table: &Table) -> SequenceId {
    let sequence = table.sequence.as_ref();
    sequence.map_or(SequenceId(0), |sequence| sequence.state)
}

fn set_owner(table: &mut Table, owner: Option<Owner>) -> Result<()> {
    let sequence = table.sequence.as_mut();
    let sequence = sequence.ok_or_else(|| Error::internal("a sequence without numbers"))?;
    sequence.owner = owner;
    Ok(())
}

fn owned_identity(catalog: &Catalog, sequence: &Table) -> Error {
    let owner = sequence
        .sequence
        .as_ref()
        .and_then(|sequence| sequence.owner);
    let table = owner.and_then(|owner| catalog.table_by_oid(owner.table));
    Error::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "cannot change ownership of identity sequence",
    )
    .with_detail(format!(
        "Sequence \"{}\" is linked to table \"{}\".",
        sequence.name,
        table.map_or("", |table| table.name.as_str())
    ))
}

fn number(option: &DefElem) -> Result<i64> {
    optional_number(option)?
        .ok_or_else(|| Error::internal(format!("{} without a number", option.defname)))
}

fn optional_number(option: &DefElem) -> Result<Option<i64>> {
    match node_of(&option.arg) {
        None => Ok(None),
        Some(NodeEnum::Integer(number)) => Ok(Some(i64::from(number.ival))),
        Some(NodeEnum::Float(number)) => number.fval.parse().map(Some).map_err(|_| {
            let what = format!("value \"{}\" is out of range for type bigint", number.fval);
            Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, what)
        }),
        Some(_) => Err(Error::internal(format!("{} of no number", option.defname))),
    }
}

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// A new sequence with these options.
fn begin(sequence: &mut Sequence, options: &Options<'_>) -> Result<()> {
    if let Some(type_id) = options.type_id {
        sequence.type_id = type_id;
    }
    apply(sequence, options, true)?;
    sequence.start = options.start.unwrap_or(match sequence.increment > 0 {
        true => sequence.min,
        false => sequence.max,
    });
    check_within(sequence, "START", sequence.start)?;
    sequence.begins_at = match options.restart {
        Some(Some(value)) => value,
        _ => sequence.start,
    };
    check_within(sequence, "RESTART", sequence.begins_at)?;
    check_cache(sequence, options)
}

/// A sequence with other options; `last` is where it stands.
fn change(sequence: &mut Sequence, options: &Options<'_>, last: i64) -> Result<()> {
    let mut options = Options {
        owned_by: None,
        ..*options
    };
    if let Some(type_id) = options.type_id.filter(|new| *new != sequence.type_id) {
        // A bound that was the old type's becomes the new type's.
        let (low, high) = limits_of(sequence.type_id);
        let (new_low, new_high) = limits_of(type_id);
        if sequence.max == high && !matches!(options.max, Some(Some(_))) {
            options.max = Some(Some(new_high));
        }
        if sequence.min == low && !matches!(options.min, Some(Some(_))) {
            options.min = Some(Some(new_low));
        }
        sequence.type_id = type_id;
    }
    apply(sequence, &options, false)?;
    if let Some(start) = options.start {
        sequence.start = start;
    }
    check_within(sequence, "START", sequence.start)?;
    let restart = match options.restart {
        Some(Some(value)) => Some(value),
        Some(None) => Some(sequence.start),
        None => None,
    };
    check_within(sequence, "RESTART", restart.unwrap_or(last))?;
    if let Some(value) = restart {
        sequence.begins_at = value;
    }
    check_cache(sequence, &options)
}

fn check_cache(sequence: &mut Sequence, options: &Options<'_>) -> Result<()> {
    let Some(cache) = options.cache else {
        return Ok(());
    };
    if cache <= 0 {
        return Err(invalid(format!(
            "CACHE ({cache}) must be greater than zero"
        )));
    }
    sequence.cache = cache;
    Ok(())
}

/// INCREMENT, CYCLE and the bounds. Bounds that are not named keep what they are, unless the
/// sequence is new.
fn apply(sequence: &mut Sequence, options: &Options<'_>, new: bool) -> Result<()> {
    if let Some(increment) = options.increment {
        if increment == 0 {
            return Err(invalid("INCREMENT must not be zero".to_owned()));
        }
        sequence.increment = increment;
    }
    sequence.cycle = options.cycle.unwrap_or(sequence.cycle);
    let (low, high) = sequence.limits();
    let rises = sequence.increment > 0;
    match options.max {
        Some(Some(max)) => sequence.max = max,
        None if !new => {}
        _ => sequence.max = if rises { high } else { -1 },
    }
    let type_id = sequence.type_id;
    let out_of_range = |what: &str, value: i64| {
        invalid(format!(
            "{what} ({value}) is out of range for sequence data type {type_id}"
        ))
    };
    if !(low..=high).contains(&sequence.max) {
        return Err(out_of_range("MAXVALUE", sequence.max));
    }
    match options.min {
        Some(Some(min)) => sequence.min = min,
        None if !new => {}
        _ => sequence.min = if rises { 1 } else { low },
    }
    if !(low..=high).contains(&sequence.min) {
        return Err(out_of_range("MINVALUE", sequence.min));
    }
    if sequence.min >= sequence.max {
        return Err(invalid(format!(
            "MINVALUE ({}) must be less than MAXVALUE ({})",
            sequence.min, sequence.max
        )));
    }
    Ok(())
}

fn check_within(sequence: &Sequence, what: &str, value: i64) -> Result<()> {
    if value < sequence.min {
        return Err(invalid(format!(
            "{what} value ({value}) cannot be less than MINVALUE ({})",
            sequence.min
        )));
    }
    if value > sequence.max {
        return Err(invalid(format!(
            "{what} value ({value}) cannot be greater than MAXVALUE ({})",
            sequence.max
        )));
    }
    Ok(())
}
