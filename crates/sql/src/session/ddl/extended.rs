//! CREATE STATISTICS and ALTER STATISTICS: what ANALYZE is to find out of several columns together, or of
//! expressions ([`catalog::extended`]).
//!
//! ```text
//! create statistics s on a, b, (a + c) from t     one row of the catalog; t is locked against other DDL
//! alter statistics s set statistics 500           another row in its place
//! ```
//! Whoever makes, changes or drops them has locked their table, so that the row needs no lock of its own.
//!
//! # What it leaves out
//! Statistics of a temporary table in a schema that all see, and of other tables in a temporary one: 0A000.

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterObjectSchemaStmt, AlterOwnerStmt, AlterStatsStmt, CreateStatsStmt, Node, RangeVar,
    RenameStmt, StatsElem,
};

use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::table::{choose_name, cut_name};
use super::texts;
use catalog::access::{denied, must_own, Guarded, Privileges, SYSTEM_COLUMNS};
use catalog::cluster::Address;
use catalog::extended::{Expression, Extended, Kinds, PARTS_MAX};
use catalog::local::is_local;
use catalog::{statistics_store, Catalog, RelationKind, RelationRef, Table};
use syntax::parser::NodeEnum;

/// As much as may be kept at most.
const TARGET_MAX: i32 = 10_000;

/// What statistics are to be about, as it was written.
enum Element {
    /// A column, by its name.
    Name(String),
    /// A column in parentheses, by its place.
    Column(usize),
    /// An expression.
    Expression(Expression),
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn element_of(node: &Node) -> Result<&StatsElem> {
    match &node.node {
        Some(NodeEnum::StatsElem(element)) => Ok(element),
        _ => Err(Error::internal("statistics of something else")),
    }
}

/// The relation that statistics are about.
fn relation_of(create: &CreateStatsStmt) -> Result<&RangeVar> {
    match create.relations.as_slice() {
        [node] => match &node.node {
            Some(NodeEnum::RangeVar(range)) => Ok(range),
            _ => Err(unsupported(
                "CREATE STATISTICS only supports relation names in the FROM clause",
            )),
        },
        _ => Err(unsupported(
            "only a single relation is allowed in CREATE STATISTICS",
        )),
    }
}

/// The kinds that a statement names; none if it names none.
fn kinds_of(create: &CreateStatsStmt) -> Result<Option<Kinds>> {
    let mut kinds = Kinds::default();
    for kind in texts(&create.stat_types) {
        match kind.as_str() {
            "ndistinct" => kinds.distinct = true,
            "dependencies" => kinds.dependencies = true,
            "mcv" => kinds.common = true,
            _ => {
                let message = format!("unrecognized statistics kind \"{kind}\"");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
        }
    }
    Ok((!create.stat_types.is_empty()).then_some(kinds))
}

/// 42P17 and the like for parts that statistics cannot be about, in the order in which they were written.
fn chosen_parts(
    table: &Table,
    elements: Vec<Element>,
    create: &CreateStatsStmt,
) -> Result<(Vec<usize>, Vec<Expression>)> {
    let (mut columns, mut expressions) = (Vec::new(), Vec::new());
    let several = elements.len() > 1;
    for element in elements {
        let place = match element {
            Element::Expression(expression) => {
                let ty = expression.type_id;
                if several && !ty.is_sortable() {
                    return Err(unsupported(format!(
                        "expression cannot be used in multivariate statistics because its type \
                         {ty} has no default btree operator class"
                    )));
                }
                expressions.push(expression);
                continue;
            }
            Element::Column(place) => place,
            Element::Name(name) if SYSTEM_COLUMNS.contains(&name.as_str()) => {
                return Err(unsupported(
                    "statistics creation on system columns is not supported",
                ));
            }
            Element::Name(name) => table.column(&name).ok_or_else(|| {
                let message = format!("column \"{name}\" does not exist");
                Error::new(SqlState::UNDEFINED_COLUMN, message)
            })?,
        };
        must_be_sortable(table, place)?;
        columns.push(place);
    }
    if create.exprs.len() == 1 && expressions.len() == 1 && !create.stat_types.is_empty() {
        return Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "when building statistics on a single expression, statistics kinds may not be specified",
        ));
    }
    Ok((columns, expressions))
}

/// 0A000 for a column whose values have no order.
fn must_be_sortable(table: &Table, place: usize) -> Result<()> {
    let column = &table.columns[place];
    match column.type_id.is_sortable() {
        true => Ok(()),
        false => Err(unsupported(format!(
            "column \"{}\" cannot be used in statistics because its type {} has no default btree \
             operator class",
            column.name,
            column.declared().0
        ))),
    }
}

/// 42701 for what is there twice, 42P17 for too little; the columns ascend then.
fn check_parts(columns: &mut [usize], expressions: &[Expression]) -> Result<()> {
    if columns.len() + expressions.len() < 2 && expressions.len() != 1 {
        return Err(Error::new(
            SqlState::of("42P17"),
            "extended statistics require at least 2 columns",
        ));
    }
    columns.sort_unstable();
    let twice = |what: &str| {
        let message = format!("duplicate {what} in statistics definition");
        Err(Error::new(SqlState::DUPLICATE_COLUMN, message))
    };
    if columns.windows(2).any(|pair| pair[0] == pair[1]) {
        return twice("column name");
    }
    for (place, one) in expressions.iter().enumerate() {
        if expressions[..place].iter().any(|other| other == one) {
            return twice("expression");
        }
    }
    Ok(())
}

/// 0A000.
fn apart_from_table() -> Error {
    Error::unsupported(
        "statistics that are temporary where their table is not, or the other way round",
    )
}

/// 42704.
fn missing(name: &str) -> Error {
    let message = format!("statistics object \"{name}\" does not exist");
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}

/// 42710, where they were to go.
fn taken_in(catalog: &Catalog, schema: u32, name: &str) -> Error {
    let schema = catalog.schema_by_oid(schema);
    Error::new(
        SqlState::DUPLICATE_OBJECT,
        format!(
            "statistics object \"{name}\" already exists in schema \"{}\"",
            schema.map_or("", |schema| &schema.name)
        ),
    )
}

fn names_of(node: Option<&Node>) -> Vec<String> {
    match node.and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::List(list)) => texts(&list.items),
        Some(NodeEnum::String(name)) => vec![name.sval.clone()],
        _ => Vec::new(),
    }
}

impl Session {
    /// CREATE STATISTICS.
    pub(in crate::session) fn create_statistics(
        &mut self,
        text: &str,
        create: &CreateStatsStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        const TAG: &str = "CREATE STATISTICS";
        let range = relation_of(create)?;
        let table = self.lock_for_statistics(range)?;
        let catalog = self.current_catalog()?;
        let mut elements = Vec::with_capacity(create.exprs.len());
        for node in &create.exprs {
            let element = element_of(node)?;
            elements.push(match &element.expr {
                None => Element::Name(element.name.clone()),
                Some(node) => self.statistics_expression(text, &catalog, &table, node)?,
            });
        }
        let names = texts(&create.defnames);
        let (schema, name) = match names.as_slice() {
            [] => return Err(Error::internal("statistics without a name")),
            [.., schema, _] if schema == "pg_temp" && !is_local(table.oid) => {
                return Err(apart_from_table());
            }
            [.., schema, name] => (self.creation_schema(&catalog, schema)?, cut_name(name)),
            [name] => (self.creation_schema(&catalog, "")?, cut_name(name)),
        };
        if is_local(schema) != is_local(table.oid) {
            return Err(apart_from_table());
        }
        if catalog.extended_named(schema, &name).is_some() {
            let taken = statistics_store::extended_exists(&name);
            if !create.if_not_exists {
                return Err(taken);
            }
            let message = format!("{}, skipping", taken.message());
            let body = Error::new(SqlState::DUPLICATE_OBJECT, message);
            self.notice(NoticeSeverity::Notice, body, sink)?;
            return Ok(tag(TAG));
        }
        if create.exprs.len() > PARTS_MAX {
            let message = format!("cannot have more than {PARTS_MAX} columns in statistics");
            return Err(Error::new(SqlState::of("54011"), message));
        }
        let (mut columns, expressions) = chosen_parts(&table, elements, create)?;
        let several = columns.len() + expressions.len() >= 2;
        let usual = if several {
            Kinds::ALL
        } else {
            Kinds::default()
        };
        let kinds = kinds_of(create)?.unwrap_or(usual);
        check_parts(&mut columns, &expressions)?;
        let made = Extended {
            oid: self.new_oid()?,
            schema,
            name,
            owner: self.owner_of_new(&catalog)?,
            table: table.oid,
            target: -1,
            kinds,
            columns,
            expressions,
        };
        self.insert_statistics(&catalog, &made)?;
        Ok(tag(TAG))
    }

    pub(super) fn insert_statistics(&mut self, catalog: &Catalog, made: &Extended) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        statistics_store::insert_extended(open.txn.as_mut(), catalog.database.oid, made)?;
        self.changed_catalog();
        Ok(())
    }

    /// The relation that statistics can be about, of this role's, locked.
    fn lock_for_statistics(&mut self, range: &RangeVar) -> Result<Arc<Table>> {
        let refused = |name: &str, noun: &str| {
            let message = format!("cannot define statistics for relation \"{name}\"");
            let error = Error::new(SqlState::WRONG_OBJECT_TYPE, message);
            error.with_detail(format!("This operation is not supported for {noun}."))
        };
        let catalog = self.current_catalog()?;
        match self.find_range(range)? {
            Some(RelationRef::Index(..)) => return Err(refused(&range.relname, "indexes")),
            Some(RelationRef::Table(place)) => {
                let table = &catalog.tables[place];
                let is_one = table.kind.has_rows()
                    || matches!(table.kind, RelationKind::Partitioned | RelationKind::System);
                if !is_one {
                    return Err(refused(&table.name, &format!("{}s", table.kind.noun())));
                }
                self.must_own_relation(table)?;
            }
            None => {
                let schemas = match range.schemaname.as_str() {
                    "" => self.search_path(&catalog),
                    name => catalog
                        .schema(name)
                        .map(|known| known.oid)
                        .into_iter()
                        .collect(),
                };
                let is_of = |schema: &u32| {
                    let found = catalog.composite_relation(*schema, &range.relname);
                    found.is_some()
                };
                if schemas.iter().any(is_of) {
                    return Err(refused(&range.relname, "composite types"));
                }
            }
        }
        let table = self.lock_named(range, TableLock::ShareUpdateExclusive)?;
        self.must_own_relation(&table)?;
        Ok(table)
    }

    fn statistics_expression(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        table: &Arc<Table>,
        node: &Node,
    ) -> Result<Element> {
        let bound = self.try_binding(text, catalog, |binder| {
            binder.check_statistics_expression(table, node)
        })?;
        self.may_use_types_of(catalog, bound.uses.iter().map(|uses| uses.relation))?;
        Ok(match bound.kept {
            Ok(place) => Element::Column(place),
            Err(expression) => Element::Expression(expression),
        })
    }

    /// ALTER STATISTICS … SET STATISTICS.
    pub(in crate::session) fn alter_statistics_target(
        &mut self,
        alter: &AlterStatsStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let value = alter.stxstattarget.as_ref();
        let Some(Some(NodeEnum::Integer(value))) = value.map(|node| &node.node) else {
            let message = "syntax error at or near \"DEFAULT\"";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        };
        let mut target = value.ival;
        if target < -1 {
            let message = format!("statistics target {target} is too low");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        if target > TARGET_MAX {
            target = TARGET_MAX;
            let message = format!("lowering statistics target to {target}");
            self.warn(SqlState::INVALID_PARAMETER_VALUE, &message, sink)?;
        }
        let names = texts(&alter.defnames);
        let catalog = self.current_catalog()?;
        match self.statistics_of_names(&catalog, &names) {
            Err(error) if alter.missing_ok && super::drop_absent::is_missing(&error) => {
                let message = format!("{}, skipping", missing(&names.join(".")).message());
                let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
                self.notice(NoticeSeverity::Notice, body, sink)?;
                return Ok(tag("ALTER STATISTICS"));
            }
            found => {
                let known = found?;
                self.must_own_statistics(&catalog, &known, &names.join("."))?;
            }
        }
        self.change_statistics(&names, |_, _, old| {
            Ok(Extended {
                target,
                ..old.clone()
            })
        })
    }

    /// ALTER STATISTICS … RENAME TO.
    pub(super) fn rename_statistics(&mut self, rename: &RenameStmt) -> Result<CommandTag> {
        let name = cut_name(&rename.newname);
        let names = names_of(rename.object.as_deref());
        self.change_statistics(&names, |session, catalog, old| {
            if catalog.extended_named(old.schema, &name).is_some() {
                return Err(taken_in(catalog, old.schema, &name));
            }
            session.may_create_in(catalog, old.schema)?;
            Ok(Extended {
                name,
                ..old.clone()
            })
        })
    }

    /// ALTER STATISTICS … SET SCHEMA.
    pub(super) fn move_statistics(&mut self, alter: &AlterObjectSchemaStmt) -> Result<CommandTag> {
        let names = names_of(alter.object.as_deref());
        let catalog = self.current_catalog()?;
        let known = self.statistics_of_names(&catalog, &names)?;
        // Whoever moves nothing need not own it.
        if self.creation_schema(&catalog, &alter.newschema)? == known.schema {
            return Ok(tag("ALTER STATISTICS"));
        }
        self.change_statistics(&names, |session, catalog, old| {
            let schema = session.creation_schema(catalog, &alter.newschema)?;
            if is_local(schema) != is_local(old.table) {
                return Err(unsupported(
                    "cannot move objects into or out of temporary schemas",
                ));
            }
            if catalog.extended_named(schema, &old.name).is_some() {
                return Err(taken_in(catalog, schema, &old.name));
            }
            Ok(Extended {
                schema,
                ..old.clone()
            })
        })
    }

    /// ALTER STATISTICS … OWNER TO.
    pub(super) fn give_statistics(
        &mut self,
        alter: &AlterOwnerStmt,
        owner: u32,
    ) -> Result<CommandTag> {
        let names = names_of(alter.object.as_deref());
        self.change_statistics(&names, |session, catalog, old| {
            if old.owner != owner {
                session.may_give_to(catalog, owner, old.schema)?;
            }
            Ok(Extended {
                owner,
                ..old.clone()
            })
        })
    }

    /// Makes others of statistics, which belong to this role.
    fn change_statistics(
        &mut self,
        names: &[String],
        change: impl FnOnce(&mut Session, &Arc<Catalog>, &Extended) -> Result<Extended>,
    ) -> Result<CommandTag> {
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let known = self.statistics_of_names(&catalog, names)?;
        self.must_own_statistics(&catalog, &known, &known.name)?;
        if let Some(table) = catalog.table_by_oid(known.table) {
            self.lock_mode(table, TableLock::ShareUpdateExclusive)?;
            self.forget_own_catalog();
        }
        let catalog = self.current_catalog()?;
        let known = catalog.extended(known.oid).cloned();
        let known = known.ok_or_else(|| Error::internal("tuple concurrently deleted"))?;
        let new = change(self, &catalog, &known)?;
        self.put_statistics(&catalog, &known, &new)?;
        Ok(tag("ALTER STATISTICS"))
    }

    /// Puts statistics, whose table is locked, in the place of what they were.
    pub(super) fn put_statistics(
        &mut self,
        catalog: &Catalog,
        old: &Extended,
        new: &Extended,
    ) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        statistics_store::update_extended(open.txn.as_mut(), catalog.database.oid, old, new)?;
        self.changed_catalog();
        Ok(())
    }

    /// 42501 for statistics of another role, by the name that is given.
    pub(super) fn must_own_statistics(
        &self,
        catalog: &Catalog,
        known: &Extended,
        name: &str,
    ) -> Result<()> {
        let role = self.shared.settings.current_role();
        match catalog.has_privileges_of(role, known.owner) {
            true => Ok(()),
            false => Err(must_own("statistics object", name)),
        }
    }

    /// 42501 for statistics of another role, unless their schema is this role's.
    pub(super) fn may_drop_statistics(
        &self,
        catalog: &Catalog,
        known: &Extended,
        name: &str,
    ) -> Result<()> {
        let role = self.shared.settings.current_role();
        match catalog.schema_by_oid(known.schema) {
            Some(schema) if catalog.has_privileges_of(role, schema.owner) => Ok(()),
            _ => self.must_own_statistics(catalog, known, name),
        }
    }

    /// The statistics that names mean.
    ///
    /// # Errors
    /// 3F000 and 42704 when there are none of that name; 42501 for a schema that the role may not use.
    pub(super) fn statistics_of_names(
        &mut self,
        catalog: &Arc<Catalog>,
        names: &[String],
    ) -> Result<Arc<Extended>> {
        let role = self.shared.settings.current_role();
        let found = match names {
            [.., schema, name] => match catalog.schema(schema) {
                Some(known)
                    if !is_local(known.oid)
                        && !catalog.holds(role, Guarded::Schema, known.oid, Privileges::USAGE) =>
                {
                    return Err(denied("schema", schema));
                }
                Some(known) => catalog.extended_named(known.oid, name),
                None => {
                    let message = format!("schema \"{schema}\" does not exist");
                    return Err(Error::new(SqlState::INVALID_SCHEMA_NAME, message));
                }
            },
            [name] => {
                let search_path = self.search_path(catalog);
                catalog.visible_extended(&search_path, name)
            }
            [] => None,
        };
        found.cloned().ok_or_else(|| missing(&names.join(".")))
    }

    /// Statistics over columns that have other types now: what was found is forgotten, and expressions have
    /// the types that they have now.
    pub(super) fn retype_statistics(
        &mut self,
        table: &Arc<Table>,
        changed: &[usize],
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let all: Vec<_> = catalog.extended_of(table.oid).cloned().collect();
        for old in all {
            if !changed.iter().any(|place| old.looks_at(*place)) {
                continue;
            }
            let mut new = (*old).clone();
            for place in &new.columns {
                must_be_sortable(table, *place)?;
            }
            for expression in &mut new.expressions {
                let bound = self.try_binding("", &catalog, |binder| {
                    binder.index_expression(table, &expression.text)
                })?;
                (expression.type_id, expression.typmod) = (bound.ty, bound.typmod);
            }
            self.put_statistics(&catalog, &old, &new)?;
            let Some(open) = &mut self.open else {
                return Err(Error::internal("nothing is open"));
            };
            let (txn, database) = (open.txn.as_mut(), catalog.database.oid);
            statistics_store::forget_gathered(txn, database, &new)?;
        }
        Ok(())
    }

    /// Writes the expressions of a table's statistics anew, for a column with another name or a table with
    /// another one.
    pub(super) fn restate_statistics(
        &mut self,
        table: &Arc<Table>,
        renamed: Option<(usize, &str)>,
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let all: Vec<_> = catalog.extended_of(table.oid).cloned().collect();
        for old in all {
            let mut new = (*old).clone();
            for expression in &mut new.expressions {
                expression.text = self.try_binding("", &catalog, |binder| {
                    binder.with_renamed_column(&expression.text, table, renamed)
                })?;
            }
            if new != *old {
                self.put_statistics(&catalog, &old, &new)?;
            }
        }
        Ok(())
    }

    /// Statistics of a new table like those of another, for LIKE … INCLUDING STATISTICS; the places of the
    /// other's columns in the new table are given. The oids of both come back.
    pub(super) fn copy_statistics(
        &mut self,
        catalog: &Arc<Catalog>,
        other: &Table,
        places: &[usize],
        table: &Table,
    ) -> Result<Vec<(u32, u32)>> {
        let (mut copies, mut names) = (Vec::new(), Vec::new());
        for known in catalog.extended_of(other.oid) {
            let mut made = Extended {
                oid: self.new_oid()?,
                schema: table.schema,
                owner: self.owner_of_new(catalog)?,
                table: table.oid,
                target: -1,
                columns: known.columns.iter().map(|at| places[*at]).collect(),
                ..(**known).clone()
            };
            for place in made
                .expressions
                .iter_mut()
                .flat_map(|known| &mut known.uses)
            {
                *place = places[*place];
            }
            let columns = made.columns.iter();
            let columns = columns.map(|place| table.columns[*place].name.as_str());
            let parts: Vec<_> = columns
                .chain(made.expressions.iter().map(|_| "expr"))
                .collect();
            made.name = choose_name(&table.name, &parts.join("_"), "stat", |name| {
                names.iter().any(|known| known == name)
                    || catalog.extended_named(table.schema, name).is_some()
            });
            names.push(made.name.clone());
            copies.push((known.oid, made.oid));
            self.insert_statistics(catalog, &made)?;
        }
        Ok(copies)
    }

    /// COMMENT ON STATISTICS.
    pub(super) fn commented_statistics(
        &mut self,
        catalog: &Arc<Catalog>,
        names: &[String],
    ) -> Result<Address> {
        let known = self.statistics_of_names(catalog, names)?;
        self.must_own_statistics(catalog, &known, &names.join("."))?;
        Ok(Address::of(Address::STATISTIC_EXT, known.oid))
    }
}
