//! Conditions as PostgreSQL 15 prints them, from `expected.txt`.

use std::sync::Arc;

use super::stored::node_text;
use super::BindContext;
use catalog::{Catalog, Column, Table, PG_CATALOG, SUPERUSER};
use types::{EvalContext, TypeId};

const EXPECTED: &str = include_str!("expected.txt");

fn table() -> Arc<Table> {
    let columns = [
        ("a", "int4", -1),
        ("b", "text", -1),
        ("n", "numeric", (10 << 16 | 2) + 4),
        ("v", "varchar", 9),
        ("c", "bpchar", 7),
        ("ts", "timestamptz", -1),
        ("d", "date", -1),
        ("f", "bool", -1),
        ("arr", "_int4", -1),
        ("u", "uuid", -1),
        ("i", "interval", -1),
        ("r", "float4", -1),
        ("s", "int2", -1),
        ("l", "int8", -1),
    ];
    let columns = columns.map(|(name, ty, typmod)| Column {
        name: name.to_owned(),
        type_id: TypeId::by_name(ty).unwrap(),
        typmod,
        ..Column::default()
    });
    Arc::new(Table {
        name: "zz".to_owned(),
        columns: columns.to_vec(),
        ..Table::default()
    })
}

#[test]
fn conditions_are_printed_as_postgresql_prints_them() {
    let table = table();
    let catalog = Catalog::none();
    let eval = EvalContext::for_tests();
    let cx = BindContext {
        catalog: &catalog,
        search_path: &[PG_CATALOG],
        role: SUPERUSER,
        eval: &eval,
        text: "",
        literals: None,
        variables: None,
    };
    let mut wrong = String::new();
    let lines: Vec<_> = EXPECTED.lines().skip(1).collect();
    assert!(lines.len() > 150, "{} lines", lines.len());
    for case in lines.chunks(3) {
        for (expected, pretty) in [(case[1], false), (case[2], true)] {
            let found = match node_text(cx, &table, &format!("{{CHECK}} {}", case[0]), pretty) {
                Ok(text) => text.replace('\n', "~"),
                Err(error) => format!("{error}"),
            };
            if found != expected.trim_start() {
                wrong.push_str(&format!("{}\n  {expected}\n    {found}\n", case[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
