//! Queries of further shapes: lists of values, recursion, LATERAL, DISTINCT ON, views, sequences,
//! prepared statements, sets inside expressions.
//!
//! Where one needs an object (a view), the statements that make it stand before the query in one
//! text; the answer of the last is compared.

use super::expression::{comma_separated, Column, Writer};
use super::statement::{fixed, optional, Statement, Table};
use super::tree::Tree;
use super::values::{self, pick};

impl Writer<'_> {
    /// Any of them.
    pub fn shaped(&mut self, tables: &[Table]) -> Statement {
        let tree = match self.below(8) {
            0 => self.values_list(),
            1 => self.recursion(),
            2 => self.lateral(tables),
            3 => self.distinct_on(tables),
            4 => self.view(tables),
            5 => self.sequence(),
            6 => self.sets(tables),
            _ => self.prepared(),
        };
        Statement::query(tree)
    }

    fn values_list(&mut self) -> Tree {
        self.note("values");
        let types: Vec<u32> = (0..1 + self.below(3)).map(|_| self.any_type()).collect();
        let mut rows = Vec::new();
        for _ in 0..1 + self.below(3) {
            let row = types.iter().map(|of| self.value(*of, 1)).collect();
            rows.push(comma_separated(fixed("("), row).text(")"));
        }
        fixed("values ").list(rows, ", ")
    }

    fn recursion(&mut self) -> Tree {
        self.note("with recursive");
        let mut of = self.any_comparable();
        // Texts that come of `name` have its collation, and both terms would have to say so.
        if ["name", "text", "varchar", "bpchar"].contains(&self.catalog.name(of)) {
            of = self.named("int4");
        }
        let name = values::quoted_type(self.catalog.name(of));
        let first = self.value(of, 1);
        self.scope = vec![Column {
            sql: "r.v".to_owned(),
            of,
        }];
        let next = self.value(of, 1);
        let word = pick(self.random, &["union", "union all"]);
        fixed("with recursive r(n, v) as (select 1, ")
            .piece(first)
            .text(format!("::{name} {word} select n + 1, "))
            .piece(next)
            .text(format!("::{name} from r where n < 6) select * from r"))
    }

    fn lateral(&mut self, tables: &[Table]) -> Tree {
        self.note("lateral");
        let mut table = || tables[self.below(tables.len())].clone();
        let (outer, inner) = (table(), table());
        let of = |table: &Table, name: &str| -> Vec<Column> {
            let columns = table.columns.iter().map(|column| Column {
                sql: format!("{name}.{}", column.sql),
                of: column.of,
            });
            columns.collect()
        };
        self.scope = of(&outer, "a");
        self.scope.extend(of(&inner, "z"));
        let output = self.any_comparable();
        let value = self.value(output, 1);
        let condition = self.condition(1);
        let join = pick(self.random, &["cross join", "left join"]);
        let on = if join == "left join" { " on true" } else { "" };
        fixed(format!(
            "select a.id, s.v from {} as a {join} lateral (select ",
            outer.name
        ))
        .piece(value)
        .text(format!(" as v from {} as z", inner.name))
        .piece(optional(" where ").piece(condition))
        .text(format!(") as s{on}"))
    }

    fn distinct_on(&mut self, tables: &[Table]) -> Tree {
        self.note("distinct on");
        let table = tables[self.below(tables.len())].clone();
        self.scope = table.columns.clone();
        let of = self.any_comparable();
        let key = self.value(of, 1).sql();
        // A constant would be the number of a column.
        fixed(format!(
            "select distinct on (({key})) id, ({key}) from {} order by ({key}), id",
            table.name
        ))
    }

    fn view(&mut self, tables: &[Table]) -> Tree {
        self.note("view");
        let table = tables[self.below(tables.len())].clone();
        self.scope = table.columns.clone();
        let of = self.any_comparable();
        let value = self.value(of, 2);
        let condition = self.condition(1);
        fixed("drop view if exists v0; create view v0 as select id, ")
            .piece(value)
            .text(format!(" as v from {}", table.name))
            .piece(optional(" where ").piece(condition))
            .text("; select * from v0")
    }

    /// Set-returning functions where columns stand, in several columns of the select list.
    fn sets(&mut self, tables: &[Table]) -> Tree {
        self.note("sets in expressions");
        let table = tables[self.below(tables.len())].clone();
        self.scope = table.columns.clone();
        let int4 = self.named("int4");
        for last in [2, 3] {
            self.scope.push(Column {
                sql: format!("generate_series(1, {last})"),
                of: int4,
            });
        }
        let of = self.any_comparable();
        let name = values::quoted_type(self.catalog.name(of));
        let elements = [self.constant(of).sql(), self.constant(of).sql()];
        self.scope.push(Column {
            sql: format!("unnest(array[{}]::{name}[])", elements.join(", ")),
            of,
        });
        let (first, second) = (self.value(int4, 2), self.value(of, 2));
        fixed("select id, ")
            .piece(first)
            .text(", ")
            .piece(second)
            .text(format!(" from {}", table.name))
    }

    fn sequence(&mut self) -> Tree {
        self.note("sequence");
        let (step, start) = (self.random.between(1, 3), self.random.between(1, 9));
        let options = [
            "",
            " minvalue 1 maxvalue 10 cycle",
            " maxvalue 10",
            " as int2",
            " cache 1",
        ];
        let option = pick(self.random, &options);
        let call = pick(
            self.random,
            &[
                "nextval('s0'), nextval('s0'), currval('s0')",
                "setval('s0', 5), nextval('s0'), lastval()",
                "setval('s0', 7, false), nextval('s0')",
                "nextval('s0'), setval('s0', 11)",
            ],
        );
        fixed(format!(
            "drop sequence if exists s0; create sequence s0 increment by {step} start {start}\
             {option}; select {call}"
        ))
    }

    fn prepared(&mut self) -> Tree {
        self.note("prepare, execute");
        let types: Vec<u32> = (0..1 + self.below(2)).map(|_| self.any_type()).collect();
        let names: Vec<String> = types
            .iter()
            .map(|of| values::quoted_type(self.catalog.name(*of)))
            .collect();
        let given = types.iter().map(|of| self.value(*of, 1)).collect();
        let columns = types.iter().enumerate().map(|(place, of)| Column {
            sql: format!("${}", place + 1),
            of: *of,
        });
        self.scope = columns.collect();
        let of = match self.random.percent(50) {
            true => types[0],
            false => self.any_type(),
        };
        let value = self.value(of, 2);
        self.scope.clear();
        let tree = fixed(format!(
            "deallocate all; prepare p ({}) as select ",
            names.join(", ")
        ))
        .piece(value)
        .text(" as v; execute p(");
        comma_separated(tree, given).text(")")
    }
}
