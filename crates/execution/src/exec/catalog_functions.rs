//! Functions over the catalog, for the queries of psql, drivers and `information_schema`: what
//! objects are called, how they were defined, what was said of them.
//!
//! | question | functions |
//! |---|---|
//! | definition | `pg_get_expr`, `pg_get_constraintdef`, `pg_get_indexdef`, … |
//! | name and visibility | `pg_table_is_visible`, `to_regclass`, … |
//! | comments | `obj_description`, `col_description`, `shobj_description` |
//!
//! Who may do what is in [`super::privilege_functions`].

use std::sync::Arc;

use base::{Error, Result, SqlState};

use super::session_functions::schemas;
use super::{
    index_text, large_objects, partition, partition_text, privilege_functions, routine_text,
    rule_text, sequences, statistics_text, trigger_text, Exec,
};
use catalog::access::{Guarded, Privileges};
use catalog::cluster::Address;
use catalog::depend::finds_routines;
use catalog::layout::FIRST_USER_OID;
use catalog::system::facts;
use catalog::trigger::Events;
use catalog::{operator_class, Catalog, ForeignKey, Table, PG_CATALOG, SUPERUSER};
use functions::collator;
use functions::session::CatalogFunction;
use functions::strings::quote_identifier;
use planner::bind::{stored, BindContext, Binder};
use types::{Datum, TypeId};

/// Computes such a function.
pub(super) fn call(
    cx: &mut Exec<'_>,
    which: CatalogFunction,
    result: TypeId,
    args: &[Datum],
) -> Result<Datum> {
    use CatalogFunction as Asked;
    let oid = oid_of(args, 0);
    let catalog = cx.catalog;
    match which {
        Asked::RoleName => Ok(match catalog.role_by_oid(oid) {
            Some(role) => Datum::text(&role.name),
            None => Datum::text(format!("unknown (OID={oid})")),
        }),
        Asked::HasRole => privilege_functions::has_role(cx, args),
        Asked::OidOfName => named(cx, result, args[0].as_str()),
        Asked::IsRelationVisible => Ok(relation_is_visible(cx, oid)),
        Asked::IsTypeVisible => Ok(type_is_visible(cx, TypeId(oid))),
        Asked::IsFunctionVisible => match catalog.routine(oid) {
            Some(routine) => {
                let is_found = finds_routines(&search_path(cx), routine.schema);
                Ok(Datum::Bool(is_found))
            }
            None => known(functions::signature_of(oid).is_some()),
        },
        Asked::IsOperatorVisible => match catalog.own_operator(oid) {
            Some(own) => {
                let types = (own.left, own.right);
                let found = catalog.visible_operator(&search_path(cx), &own.name, types);
                Ok(Datum::Bool(found == Some(oid)))
            }
            None => known(functions::operator_by_oid(oid).is_some()),
        },
        Asked::IsCollationVisible => match catalog.collation(oid) {
            Some(known) => {
                let found = catalog.visible_collation(&search_path(cx), &known.name);
                Ok(Datum::Bool(found.is_some_and(|found| found.oid == oid)))
            }
            None => Ok(Datum::Null),
        },
        Asked::IsStatisticsVisible => Ok(match catalog.extended(oid) {
            Some(known) => {
                let (mut path, role) = (search_path(cx), cx.role());
                path.retain(|schema| {
                    catalog.holds(role, Guarded::Schema, *schema, Privileges::USAGE)
                });
                let found = catalog.visible_extended(&path, &known.name);
                Datum::Bool(found.is_some_and(|found| found.oid == oid))
            }
            None => Datum::Null,
        }),
        Asked::StatisticsDefinition => statistics_text::definition(cx, oid),
        Asked::StatisticsColumns => statistics_text::columns(cx, oid),
        Asked::StatisticsExpressions => statistics_text::expressions(cx, oid),
        Asked::CollationVersion => match catalog.collation(oid) {
            Some(known) if !known.is_bytewise() => Ok(Datum::text(collator::VERSION)),
            Some(_) => Ok(Datum::Null),
            None => Err(Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("collation with OID {oid} does not exist"),
            )),
        },
        Asked::IsBuiltInVisible => known(oid < FIRST_USER_OID),
        Asked::ObjectComment => Ok(object_comment(cx, oid, args.get(1))),
        Asked::ColumnComment => Ok(column_comment(cx, oid, args.get(1))),
        Asked::ObjectDescription => match oid {
            Address::LARGE_OBJECT => large_objects::described(cx, oid_of(args, 1)),
            _ => Ok(describe(cx, args)),
        },
        Asked::Expression => node(cx, args[0].as_str(), oid_of(args, 1), flag(args, 2)),
        Asked::IndexDefinition => index_definition(cx, oid, args),
        Asked::ConstraintDefinition => constraint(cx, oid, flag(args, 1)),
        Asked::TriggerDefinition => match catalog.trigger(oid) {
            Some((table, trigger)) => {
                let shown = trigger_text::definition(cx, table, trigger, flag(args, 1))?;
                Ok(Datum::text(shown))
            }
            None => Ok(Datum::Null),
        },
        Asked::RuleDefinition => rule_definition(cx, oid, flag(args, 1)),
        Asked::ViewDefinition => view_definition(cx, args),
        Asked::FunctionDefinition => match cx.catalog.routine(oid) {
            Some(routine) => Ok(Datum::text(routine_text::definition(cx, routine)?)),
            None => function_definition(oid),
        },
        Asked::FunctionSqlBody => Ok(match cx.catalog.routine(oid) {
            Some(routine) => match routine_text::sql_body(cx, routine)? {
                Some(body) => Datum::text(body),
                None => Datum::Null,
            },
            None => Datum::Null,
        }),
        Asked::FunctionArguments | Asked::FunctionIdentity => Ok(match cx.catalog.routine(oid) {
            Some(routine) => {
                let with_defaults = which == Asked::FunctionArguments;
                Datum::text(routine_text::arguments(cx, routine, with_defaults)?)
            }
            None => function_arguments(oid),
        }),
        Asked::FunctionArgumentDefault => {
            let place = args.get(1).and_then(Datum::as_i64).unwrap_or(0);
            let routine = cx.catalog.routine(oid);
            let shown = routine.map(|routine| routine_text::argument_default(cx, routine, place));
            let shown = shown.transpose()?.flatten();
            Ok(shown.map_or(Datum::Null, Datum::text))
        }
        Asked::FunctionResult => Ok(match cx.catalog.routine(oid) {
            Some(routine) => match routine_text::result(cx, routine) {
                Some(result) => Datum::text(result),
                None => Datum::Null,
            },
            None => function_result(oid),
        }),
        Asked::DefaultPrivileges => default_privileges(catalog, args),
        Asked::SerialSequence => sequences::of_column(cx, args[0].as_str(), args[1].as_str()),
        Asked::SequenceLastValue => last_value(cx, oid),
        Asked::FileNode => Ok(Datum::Oid(oid)),
        Asked::TablespaceLocation => Ok(Datum::text("")),
        Asked::IsRelationUpdatable => {
            let events = updatable_events(cx, oid, flag(args, 1), None)?;
            let codes = UPDATABLE.iter().filter(|(event, _)| events.has(*event));
            Ok(Datum::Int4(codes.map(|(_, code)| code).sum()))
        }
        Asked::IsColumnUpdatable => column_is_updatable(cx, oid, args),
        Asked::IsPublishable => Ok(Datum::Bool(false)),
        Asked::MethodProperty => Ok(method_property(oid, args[1].as_str())),
        Asked::SequenceParameters => sequences::parameters(cx, oid),
        Asked::ReplicaIdentityIndex => Ok(match catalog.table_by_oid(oid) {
            Some(table) => table.identity_index().map_or(Datum::Null, Datum::Oid),
            None => Datum::Null,
        }),
        Asked::RowSecurityActive => row_security_active(cx, args),
        Asked::PartitionKey => match catalog.table_by_oid(oid) {
            Some(table) if table.partition_key.is_some() => {
                partition::key_text(cx, table).map(Datum::text)
            }
            _ => Ok(Datum::Null),
        },
        Asked::PartitionConstraint => match catalog.table_by_oid(oid) {
            Some(table) => {
                let text = partition_text::constraint(cx, table)?;
                Ok(text.map_or(Datum::Null, Datum::text))
            }
            None => Ok(Datum::Null),
        },
        Asked::Nothing => Ok(Datum::Null),
    }
}

/// Whether a type is found by its name; NULL for none.
fn type_is_visible(cx: &mut Exec<'_>, id: TypeId) -> Datum {
    let (is_own, is_known) = (id.is_own(), type_is_known(cx.catalog, id));
    let path = schemas(cx, true);
    let path = path
        .iter()
        .filter_map(|schema| cx.catalog.schema(schema.as_str()));
    let path: Vec<_> = path.map(|schema| schema.oid).collect();
    match is_known {
        true => Datum::Bool(!is_own || cx.catalog.type_is_visible(&path, id)),
        false => Datum::Null,
    }
}

/// Whether there is such a type.
pub(super) fn type_is_known(catalog: &Catalog, id: TypeId) -> bool {
    match id.is_own() {
        true => catalog.has_own_type(id),
        false => id.info().is_some(),
    }
}

/// What `pg_relation_is_updatable` adds up.
const UPDATABLE: [(Events, i32); 3] = [
    (Events::UPDATE, 4),
    (Events::INSERT, 8),
    (Events::DELETE, 16),
];

/// What can be done to a relation, as far as these of its columns go if they are given; nothing to one
/// that is not there.
fn updatable_events(
    cx: &Exec<'_>,
    oid: u32,
    with_triggers: bool,
    columns: Option<&[usize]>,
) -> Result<Events> {
    let Some(table) = cx.catalog.table_by_oid(oid) else {
        return Ok(Events::NONE);
    };
    let path = search_path(cx);
    syntax::parser::large_stack(|| {
        let mut binder = Binder::new(binding(cx, &path), Vec::new(), false);
        binder.updatable_events(table, with_triggers, columns)
    })
}

/// Whether a column can be written, and rows be deleted.
fn column_is_updatable(cx: &Exec<'_>, oid: u32, args: &[Datum]) -> Result<Datum> {
    let number = args[1]
        .as_i64()
        .and_then(|number| usize::try_from(number).ok());
    let Some(place) = number.and_then(|number| number.checked_sub(1)) else {
        return Ok(Datum::Bool(false));
    };
    let events = updatable_events(cx, oid, flag(args, 2), Some(&[place]))?;
    let is = events.has(Events::UPDATE) && events.has(Events::DELETE);
    Ok(Datum::Bool(is))
}

fn index_definition(cx: &mut Exec<'_>, oid: u32, args: &[Datum]) -> Result<Datum> {
    let Some((table, index)) = cx.catalog.index_by_oid(oid) else {
        return Ok(Datum::Null);
    };
    match args.get(1).and_then(Datum::as_i64) {
        Some(column) if column > 0 => {
            index_text::key_text(cx, table, index, column as usize - 1, flag(args, 2))
        }
        column => {
            let (visible, pretty) = (column.is_some() && visible(cx, table), flag(args, 2));
            index_text::definition(cx, table, index, visible, pretty).map(Datum::text)
        }
    }
}

/// Whether a table, by its oid or its name, guards its rows from the session's role.
fn row_security_active(cx: &Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let oid = match &args[0] {
        Datum::Oid(oid) => *oid,
        name => cx.context.oid_of(TypeId::REGCLASS, name.as_str())?,
    };
    let role = cx.role();
    let table = cx.catalog.table_by_oid(oid);
    let guards = table.is_some_and(|table| cx.catalog.guards_rows(role, table));
    Ok(Datum::Bool(guards))
}

fn oid_of(args: &[Datum], place: usize) -> u32 {
    match args.get(place) {
        Some(Datum::Oid(oid)) => *oid,
        _ => 0,
    }
}

fn flag(args: &[Datum], place: usize) -> bool {
    args.get(place).is_some_and(Datum::is_true)
}

/// True for an object that is there, NULL for one that is not.
fn known(is: bool) -> Result<Datum> {
    Ok(if is { Datum::Bool(true) } else { Datum::Null })
}

fn relation_is_visible(cx: &Exec<'_>, oid: u32) -> Datum {
    match cx.catalog.relation_name(oid) {
        Some((schema, name)) => {
            let all = schemas(cx, true);
            let found = all.iter().find_map(|schema| {
                let schema = cx.catalog.schema(schema.as_str())?;
                let relation = cx.catalog.relation(schema.oid, name).map(|_| schema.oid);
                let composite = cx.catalog.composite_relation(schema.oid, name);
                relation.or_else(|| composite.map(|_| schema.oid))
            });
            Datum::Bool(found == Some(schema))
        }
        None => Datum::Null,
    }
}

fn visible(cx: &Exec<'_>, table: &Table) -> bool {
    relation_is_visible(cx, table.oid).is_true()
}

/// The name of a relation, with its schema where the search path does not find it.
pub(super) fn shown_name(cx: &Exec<'_>, table: &Table) -> String {
    match visible(cx, table) {
        true => quote_identifier(&table.name),
        false => qualified_name(cx.catalog, table),
    }
}

pub(super) fn qualified_name(catalog: &Catalog, table: &Table) -> String {
    let schema = catalog.schema_by_oid(table.schema);
    let schema = schema.map_or("", |schema| &schema.name);
    format!(
        "{}.{}",
        quote_identifier(schema),
        quote_identifier(&table.name)
    )
}

/// `to_regclass` and its kin: NULL for what is not there, be it the object or its schema.
fn named(cx: &Exec<'_>, kind: TypeId, name: &str) -> Result<Datum> {
    let found = match &cx.context.names {
        Some(names) => names.oid_of(kind, name),
        None => Ok(None),
    };
    match found {
        Err(error) if error.state() == SqlState::INVALID_SCHEMA_NAME => Ok(Datum::Null),
        // An operator's name alone may mean several.
        Err(error) if error.state() == SqlState::of("42725") => Ok(Datum::Null),
        found => Ok(found?.map_or(Datum::Null, Datum::Oid)),
    }
}

fn column_comment(cx: &Exec<'_>, object: u32, column: Option<&Datum>) -> Datum {
    let column = column.and_then(Datum::as_i64).unwrap_or(0);
    let text = cx.catalog.comment(Address {
        class: Address::CLASS,
        object,
        column: u32::try_from(column).unwrap_or(0),
    });
    text.map_or(Datum::Null, Datum::text)
}

/// The comment on an object; without a catalog's name, of the first catalog that has one.
fn object_comment(cx: &Exec<'_>, object: u32, class: Option<&Datum>) -> Datum {
    let text = match class {
        Some(class) => {
            let relation = cx.catalog.relation(PG_CATALOG, class.as_str());
            let class = relation.map_or(0, |relation| relation.oid(cx.catalog));
            cx.catalog.comment(Address::of(class, object))
        }
        None => [
            Address::CLASS,
            Address::PROC,
            Address::NAMESPACE,
            Address::CONSTRAINT,
            Address::TRIGGER,
            Address::REWRITE,
            Address::POLICY,
            Address::EXTENSION,
            Address::LANGUAGE,
            Address::TYPE,
            Address::OPERATOR,
        ]
        .into_iter()
        .find_map(|class| cx.catalog.comment(Address::of(class, object))),
    };
    text.map_or(Datum::Null, Datum::text)
}

/// What CREATE RULE would take; NULL where there is no such rule.
fn rule_definition(cx: &Exec<'_>, oid: u32, pretty: bool) -> Result<Datum> {
    let shown = match (cx.catalog.rule(oid), cx.catalog.view_of_rule(oid)) {
        (Some((table, rule)), _) => rule_text::definition(cx, table, rule, pretty)?,
        (None, Some(view)) => rule_text::of_view(cx, view, pretty)?,
        (None, None) => return Ok(Datum::Null),
    };
    Ok(Datum::text(shown))
}

/// The query of a view, or of a materialized view; NULL for what is none.
fn view_definition(cx: &Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let oid = match &args[0] {
        Datum::Oid(oid) => *oid,
        name => cx.context.oid_of(TypeId::REGCLASS, name.as_str())?,
    };
    let Some(table) = cx.catalog.table_by_oid(oid) else {
        return Ok(Datum::Null);
    };
    if table.view.is_none() {
        return Ok(Datum::Null);
    }
    let path = search_path(cx);
    let bind = BindContext {
        catalog: cx.catalog,
        search_path: &path,
        role: SUPERUSER,
        eval: cx.context,
        text: "",
        literals: None,
        variables: None,
    };
    let text = syntax::parser::large_stack(|| {
        Binder::new(bind, Vec::new(), false).definition(table, flag(args, 1))
    });
    text.map(Datum::text)
}

/// The text of a `pg_node_tree`.
fn node(cx: &Exec<'_>, text: &str, table: u32, pretty: bool) -> Result<Datum> {
    if let Some(oid) = text.strip_prefix("{BOUND ") {
        let oid = oid.split('}').next().and_then(|oid| oid.parse().ok());
        let known = oid.and_then(|oid| cx.catalog.table_by_oid(oid));
        return Ok(match known.and_then(|table| table.partition_of.as_ref()) {
            Some(of) => Datum::text(partition::bound_text(cx.context, of)),
            None => Datum::Null,
        });
    }
    let none = Arc::new(Table::default());
    let table = cx.catalog.table_by_oid(table).unwrap_or(&none);
    let path = search_path(cx);
    if let Some(shown) = stored::domain_node_text(binding(cx, &path), text, pretty)? {
        return Ok(Datum::text(shown));
    }
    let bind = binding(cx, &path);
    Ok(Datum::text(stored::node_text(bind, table, text, pretty)?))
}

/// For binding what is only to be shown.
pub(super) fn binding<'b>(cx: &'b Exec<'_>, path: &'b [u32]) -> BindContext<'b> {
    BindContext {
        catalog: cx.catalog,
        search_path: path,
        role: SUPERUSER,
        eval: cx.context,
        text: "",
        literals: None,
        variables: None,
    }
}

/// The schemas in which names are looked for: that of temporary ones first, unless the path says where.
pub(super) fn search_path(cx: &Exec<'_>) -> Vec<u32> {
    let path = &cx.host.shared().settings.parsed().search_path;
    let says_where = path.iter().any(|name| name == "pg_temp");
    let temporary = cx.catalog.schema("pg_temp").filter(|_| !says_where);
    let names = schemas(cx, false);
    let known = names
        .iter()
        .filter_map(|name| cx.catalog.schema(name.as_str()));
    let all = temporary.into_iter().chain(known);
    all.map(|schema| schema.oid).collect()
}

/// A constraint as ALTER TABLE ADD would take it.
fn constraint(cx: &Exec<'_>, oid: u32, pretty: bool) -> Result<Datum> {
    let Some((table, _)) = cx.catalog.constraint(oid) else {
        return domain_check(cx, oid, pretty);
    };
    let Some(table) = cx.catalog.table_by_oid(table.oid) else {
        return Ok(Datum::Null);
    };
    if let Some(index) = table.indexes.iter().find(|index| index.constraint == oid) {
        if index.exclusion.is_some() {
            let mut out = index_text::exclusion(cx, table, index, pretty)?;
            put_deferral(
                index.is_deferrable(),
                index.is_initially_deferred(),
                &mut out,
            );
            return Ok(Datum::text(out));
        }
        let kind = match (index.is_primary(), index.nulls_equal) {
            (true, _) => "PRIMARY KEY",
            (false, false) => "UNIQUE",
            (false, true) => "UNIQUE NULLS NOT DISTINCT",
        };
        let columns = (0..index.key_count()).filter_map(|place| index.key_column(place));
        let columns: Vec<_> = columns.collect();
        let (columns, included) = (
            names_of(table, &columns),
            index_text::included(table, index),
        );
        let mut out = format!("{kind} ({columns}){included}");
        put_deferral(
            index.checked.is_some(),
            index.is_initially_deferred(),
            &mut out,
        );
        return Ok(Datum::text(out));
    }
    if let Some(check) = table.checks.iter().find(|check| check.oid == oid) {
        let text = node(cx, &stored::check(check), table.oid, pretty)?;
        let mut out = format!("CHECK ({})", text.as_str());
        if check.no_inherit {
            out.push_str(" NO INHERIT");
        }
        if !check.validated {
            out.push_str(" NOT VALID");
        }
        return Ok(Datum::text(out));
    }
    let key = table
        .foreign_keys
        .iter()
        .find(|key| key.oid == oid)
        .cloned();
    let part = table.foreign_parts.iter().find(|part| part.oid == oid);
    let key = key.or_else(|| cx.catalog.foreign_part(table, part?));
    Ok(key.map_or(Datum::Null, |key| Datum::text(foreign_key(cx, table, &key))))
}

/// A check as ALTER DOMAIN ADD would take it; NULL if there is none.
fn domain_check(cx: &Exec<'_>, oid: u32, pretty: bool) -> Result<Datum> {
    let Some((made, check)) = cx.catalog.domain_check(oid) else {
        return Ok(Datum::Null);
    };
    let Some(domain) = made.domain() else {
        return Ok(Datum::Null);
    };
    let path = search_path(cx);
    let bind = binding(cx, &path);
    let text = stored::domain_check(bind, domain, &check.condition, pretty)?;
    let mut out = format!("CHECK ({text})");
    if !check.validated {
        out.push_str(" NOT VALID");
    }
    Ok(Datum::text(out))
}

fn names_of(table: &Table, places: &[usize]) -> String {
    let names = places.iter().filter_map(|place| table.columns.get(*place));
    let names = names.map(|column| quote_identifier(&column.name));
    names.collect::<Vec<_>>().join(", ")
}

fn foreign_key(cx: &Exec<'_>, table: &Table, key: &ForeignKey) -> String {
    use catalog::Action;
    let mut out = format!(
        "FOREIGN KEY ({}) REFERENCES ",
        names_of(table, &key.columns)
    );
    if let Some(referred) = cx.catalog.table_by_oid(key.table) {
        let name = shown_name(cx, referred);
        out.push_str(&format!("{name}({})", names_of(referred, &key.referenced)));
    }
    if key.match_full {
        out.push_str(" MATCH FULL");
    }
    let words = |action: Action| match action {
        Action::NoAction => None,
        Action::Restrict => Some("RESTRICT"),
        Action::Cascade => Some("CASCADE"),
        Action::SetNull => Some("SET NULL"),
        Action::SetDefault => Some("SET DEFAULT"),
    };
    if let Some(action) = words(key.on_update) {
        out.push_str(&format!(" ON UPDATE {action}"));
    }
    if let Some(action) = words(key.on_delete) {
        out.push_str(&format!(" ON DELETE {action}"));
    }
    if !key.set_columns.is_empty() {
        out.push_str(&format!(" ({})", names_of(table, &key.set_columns)));
    }
    put_deferral(key.deferrable, key.initially_deferred, &mut out);
    if !key.validated {
        out.push_str(" NOT VALID");
    }
    out
}

fn put_deferral(deferrable: bool, initially_deferred: bool, out: &mut String) {
    if deferrable {
        out.push_str(" DEFERRABLE");
    }
    if initially_deferred {
        out.push_str(" INITIALLY DEFERRED");
    }
}

/// `acldefault`: the privileges of an object of which nothing was said.
fn default_privileges(catalog: &Catalog, args: &[Datum]) -> Result<Datum> {
    use catalog::access::default_acl;
    let Datum::Char(letter) = args[0] else {
        return Ok(Datum::Null);
    };
    // 'S' is said of servers here, and of sequences in pg_default_acl.
    let kind = match letter {
        b'S' => Some(Guarded::ForeignServer),
        letter => Guarded::lettered(letter),
    };
    let kind = kind.ok_or_else(|| {
        let letter = char::from(letter);
        Error::internal(format!("unrecognized objtype abbreviation: {letter}"))
    })?;
    let mut acl = default_acl(kind, oid_of(args, 1));
    if kind == Guarded::Column {
        acl.clear();
    }
    Ok(catalog::system::acl_items(catalog, &acl))
}

fn type_list(types: &[TypeId], variadic: bool) -> String {
    let last = types.len().wrapping_sub(1);
    let shown = types.iter().enumerate().map(|(place, ty)| {
        let word = match variadic && place == last {
            true => "VARIADIC ",
            false => "",
        };
        format!("{word}{ty}")
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn function_arguments(oid: u32) -> Datum {
    if let Some(fact) = facts::of_function(oid) {
        return Datum::text(fact.arguments);
    }
    if let Some(function) = functions::function_by_oid(oid) {
        return Datum::text(type_list(function.arguments, function.variadic));
    }
    match functions::aggregate_by_oid(oid) {
        Some(aggregate) => Datum::text(type_list(aggregate.arguments, false)),
        None => Datum::Null,
    }
}

fn function_result(oid: u32) -> Datum {
    if let Some(fact) = facts::of_function(oid) {
        return Datum::text(fact.result);
    }
    if let Some(function) = functions::function_by_oid(oid) {
        let set = if function.is_set_returning() {
            "SETOF "
        } else {
            ""
        };
        return Datum::text(format!("{set}{}", function.result));
    }
    match functions::aggregate_by_oid(oid) {
        Some(aggregate) => Datum::text(aggregate.result.to_string()),
        None => Datum::Null,
    }
}

fn function_definition(oid: u32) -> Result<Datum> {
    if let Some(aggregate) = functions::aggregate_by_oid(oid) {
        return Err(Error::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is an aggregate function", aggregate.name),
        ));
    }
    let Some(function) = functions::function_by_oid(oid) else {
        return Ok(Datum::Null);
    };
    let volatility = match function.volatility {
        functions::Volatility::Immutable => " IMMUTABLE",
        functions::Volatility::Stable => " STABLE",
        functions::Volatility::Volatile => "",
    };
    let strict = if function.strict { " STRICT" } else { "" };
    Ok(Datum::text(format!(
        "CREATE OR REPLACE FUNCTION pg_catalog.{name}({arguments})\n RETURNS {result}\n LANGUAGE \
         internal\n{volatility} PARALLEL SAFE{strict}\nAS $function${source}$function$\n",
        name = quote_identifier(function.name),
        arguments = type_list(function.arguments, function.variadic),
        result = function_result(oid).as_str(),
        source = function.name,
    )))
}

/// The last value that a sequence gave; NULL before its first.
fn last_value(cx: &mut Exec<'_>, oid: u32) -> Result<Datum> {
    let Some(table) = cx.catalog.table_by_oid(oid).cloned() else {
        return Ok(Datum::Null);
    };
    let rows = sequences::rows(&table, cx)?;
    Ok(match rows.first().map(Vec::as_slice) {
        Some([value, _, Datum::Bool(true)]) => value.clone(),
        _ => Datum::Null,
    })
}

/// What messages call an object.
fn describe(cx: &Exec<'_>, args: &[Datum]) -> Datum {
    use catalog::Object;
    let (class, object) = (oid_of(args, 0), oid_of(args, 1));
    let column = args.get(2).and_then(Datum::as_i64).unwrap_or(0);
    let column = usize::try_from(column - 1).ok();
    let object = match (class, column) {
        (Address::CLASS, Some(column)) => Object::Column(object, column),
        (Address::CLASS, None) => Object::Relation(object),
        (Address::NAMESPACE, _) => Object::Schema(object),
        (Address::CONSTRAINT, _) => Object::Constraint(object),
        (Address::TRIGGER, _) => Object::Trigger(object),
        (Address::REWRITE, _) => Object::Rule(object),
        (Address::PROC, _) if cx.catalog.routine(object).is_some() => Object::Routine(object),
        (Address::TYPE, _) if cx.catalog.has_own_type(TypeId(object)) => {
            Object::Type(TypeId(object))
        }
        (Address::TYPE, _) if TypeId(object).info().is_some() => {
            return Datum::text(format!("type {}", TypeId(object)));
        }
        (Address::CAST, _) => {
            if cx.catalog.types_of_cast(object).is_none() {
                return Datum::Null;
            }
            Object::Cast(object)
        }
        (Address::COLLATION, _) if cx.catalog.collation(object).is_some() => {
            Object::Collation(object)
        }
        (Address::OPERATOR, _) if cx.catalog.own_operator(object).is_some() => {
            Object::Operator(object)
        }
        (Address::STATISTIC_EXT, _) if cx.catalog.extended(object).is_some() => {
            Object::Statistics(object)
        }
        _ => return Datum::Null,
    };
    Datum::text(object.describe(cx.catalog, &search_path(cx)))
}

/// `pg_indexam_has_property`, as PostgreSQL's methods have them: NULL of what is no property, and of what is no
/// method of indexes.
fn method_property(method: u32, property: &str) -> Datum {
    // Order, uniqueness, several columns, exclusion, INCLUDE.
    let has = match operator_class::method_name(method) {
        "btree" => [true, true, true, true, true],
        "hash" => [false, false, false, true, false],
        "gist" => [false, false, true, true, true],
        "spgist" => [false, false, false, true, true],
        "gin" | "brin" | "bloom" => [false, false, true, false, false],
        _ => return Datum::Null,
    };
    const NAMES: [&str; 5] = [
        "can_order",
        "can_unique",
        "can_multi_col",
        "can_exclude",
        "can_include",
    ];
    let mut names = NAMES.iter();
    let place = names.position(|name| name.eq_ignore_ascii_case(property));
    place.map_or(Datum::Null, |place| Datum::Bool(has[place]))
}
