//! `pg_proc`'s rows of functions and procedures that users have made.

use super::objects::acl;
use super::rows::{array, char, flag, int, oid, small, text, vector, Rows};
use super::OfCatalog;
use catalog::cluster::Address;
use catalog::routine::{Language, Mode, Routine, RoutineKind};
use catalog::sql_body::SqlBody;
use catalog::{system, Catalog};
use types::{Array, Datum, TypeId};

pub(super) const ROWS: &[OfCatalog] = &[("pg_aggregate", aggregates), ("pg_proc", procedures)];

fn aggregates(catalog: &Catalog, rows: &mut Rows) {
    for routine in catalog.routines.iter() {
        let Some(parts) = &routine.aggregate else {
            continue;
        };
        rows.push([
            ("aggfnoid", oid(routine.oid)),
            ("aggkind", char(b'n')),
            ("aggnumdirectargs", small(0)),
            ("aggtransfn", oid(parts.transition)),
            ("aggfinalfn", oid(parts.last)),
            ("aggcombinefn", oid(parts.combine)),
            ("aggfinalextra", flag(parts.last_extra)),
            ("aggfinalmodify", char(parts.last_modifies)),
            ("aggmfinalmodify", char(b'r')),
            ("aggtranstype", oid(parts.state.0)),
            (
                "aggtransspace",
                int(i32::try_from(parts.space).unwrap_or(0)),
            ),
            (
                "agginitval",
                parts.initial.as_ref().map_or(Datum::Null, text),
            ),
        ]);
    }
}

fn procedures(catalog: &Catalog, rows: &mut Rows) {
    for routine in catalog.routines.iter() {
        procedure_row(catalog, routine, rows);
    }
}

/// A body in standard SQL as a `pg_node_tree`, which nobody but the catalog reads.
fn node_of(body: &SqlBody) -> String {
    let texts: Vec<_> = body
        .statements
        .iter()
        .map(|statement| statement.text.as_str())
        .collect();
    format!("{{BODY}} {}", texts.join("; "))
}

fn chars(letters: impl Iterator<Item = u8>) -> Datum {
    let letters = letters.map(Datum::Char).collect();
    Datum::Array(std::sync::Arc::new(Array::of(TypeId::CHAR, letters)))
}

fn procedure_row(catalog: &Catalog, routine: &Routine, rows: &mut Rows) {
    let inputs: Vec<_> = routine.inputs().collect();
    let types = inputs.iter().map(|input| oid(input.type_id.0)).collect();
    let all = &routine.arguments;
    let has_outputs = all.iter().any(|argument| argument.mode != Mode::In);
    let has_names = all.iter().any(|argument| !argument.name.is_empty());
    let last = inputs.last().filter(|input| input.mode == Mode::Variadic);
    let variadic = last.map_or(0, |last| {
        last.type_id.array_element().map_or(2_276, |ty| ty.0)
    });
    let settings = routine.settings.iter();
    let settings: Vec<_> = settings
        .map(|(name, value)| text(format!("{name}={value}")))
        .collect();
    let language = match routine.kind {
        RoutineKind::Aggregate => system::language_named("internal"),
        _ => system::language_named(routine.language.name()),
    };
    let defaults = inputs
        .iter()
        .filter(|input| input.default.is_some())
        .count();
    let cost = match (routine.cost, routine.language) {
        (cost, _) if cost > 0.0 => cost,
        (_, Language::Sql | Language::PlPgSql) => 100.0,
        (_, Language::C | Language::Internal) => 1.0,
    };
    let count = match (routine.rows, routine.set) {
        (count, true) if count > 0.0 => count,
        (_, true) => 1_000.0,
        (_, false) => 0.0,
    };
    let or_null = |is: bool, value: Datum| if is { value } else { Datum::Null };
    let of_rows = catalog.table_by_oid(routine.result_relation);
    let result = of_rows.and_then(|table| table.row_type());
    let result = result.unwrap_or(routine.result);
    let of_library = routine.language == Language::C && routine.kind != RoutineKind::Aggregate;
    rows.push([
        ("oid", oid(routine.oid)),
        ("proname", text(&routine.name)),
        ("pronamespace", oid(routine.schema)),
        ("proowner", oid(routine.owner)),
        ("prolang", oid(language.map_or(0, |language| language.oid))),
        ("procost", Datum::Float4(cost)),
        ("prorows", Datum::Float4(count)),
        ("provariadic", oid(variadic)),
        (
            "prokind",
            char(match routine.kind {
                RoutineKind::Function => b'f',
                RoutineKind::Procedure => b'p',
                RoutineKind::Aggregate => b'a',
            }),
        ),
        ("prosecdef", flag(routine.security_definer)),
        ("proleakproof", flag(routine.leakproof)),
        ("proisstrict", flag(routine.strict)),
        ("proretset", flag(routine.set)),
        ("provolatile", char(routine.volatility)),
        ("proparallel", char(routine.parallel)),
        ("pronargs", small(inputs.len())),
        ("pronargdefaults", small(defaults)),
        ("prorettype", oid(result.0)),
        ("proargtypes", vector(TypeId::OID, types)),
        (
            "proallargtypes",
            or_null(
                has_outputs,
                array(
                    TypeId::OID,
                    all.iter().map(|known| oid(known.type_id.0)).collect(),
                ),
            ),
        ),
        (
            "proargmodes",
            or_null(
                has_outputs,
                chars(all.iter().map(|known| known.mode.letter())),
            ),
        ),
        (
            "proargnames",
            or_null(
                has_names,
                array(
                    TypeId::TEXT,
                    all.iter().map(|known| text(&known.name)).collect(),
                ),
            ),
        ),
        ("prosrc", text(&routine.body)),
        (
            "prosqlbody",
            match &routine.sql_body {
                Some(body) => text(node_of(body)),
                None => Datum::Null,
            },
        ),
        ("probin", or_null(of_library, text("$libdir/quorate"))),
        (
            "proconfig",
            or_null(!settings.is_empty(), array(TypeId::TEXT, settings)),
        ),
        ("proacl", acl(catalog, Address::PROC, routine.oid, 0)),
    ]);
}
