//! Queries whose shape is what matters: joins of all kinds with conditions above them, queries in FROM,
//! subqueries that look at the rows around them, NOT IN with NULLs, alternatives of conjunctions.
//!
//! ```text
//! select n1.id, n2.q from t1 as n1 left join (select n3.ref as p, count(*) as q from t2 as n3
//! group by n3.ref) as n2 on n2.p = n1.id
//! where n1.ref not in (select n4.ref from t1 as n4 where n4.id < n1.id) and n2.q > 1
//! ```
//! Their values are small integers and NULLs, so that hardly anything fails but what is planned wrongly,
//! and pairs are found often.

use super::expression::Writer;
use super::statement::{fixed, optional, Statement, Table};
use super::tree::Tree;
use super::values::pick;

/// Queries inside of each other.
const DEPTH: usize = 3;

/// Columns by their qualified names: those of the query, and of the ones around it.
type Columns = Vec<String>;

impl Writer<'_> {
    /// Any of them.
    pub fn nested(&mut self, tables: &[Table]) -> Statement {
        self.note("nested");
        let mut names = 0;
        let (from, columns) = self.nested_from(tables, &[], DEPTH, &mut names);
        let grouped = self.random.percent(20);
        let filter = self.nested_filter(tables, &columns, DEPTH, &mut names);
        let tree = match grouped {
            true => {
                let key = self.nested_column(&columns);
                let aggregate = self.nested_aggregate(&columns);
                let tree = fixed(format!("select {key}, {aggregate}")).piece(from);
                tree.piece(filter).text(format!(" group by {key}"))
            }
            false => {
                let distinct = pick(self.random, &["", "", "", "distinct "]);
                let outputs = 1 + self.below(3);
                let mut tree = fixed(format!("select {distinct}"));
                for place in 0..outputs {
                    let comma = if place == 0 { "" } else { ", " };
                    let value = self.nested_value(tables, &columns, DEPTH - 1, &mut names);
                    tree = tree.text(comma).piece(value);
                }
                tree.piece(from).piece(filter)
            }
        };
        Statement::query(tree)
    }

    /// Items joined, and their columns before those of the queries around.
    fn nested_from(
        &mut self,
        tables: &[Table],
        around: &[String],
        depth: usize,
        names: &mut usize,
    ) -> (Tree, Columns) {
        let mut tree = fixed(" from ");
        let mut own: Columns = Vec::new();
        for place in 0..1 + self.below(depth + 1) {
            let (item, columns) = self.nested_item(tables, around, depth, names);
            if place == 0 {
                tree = tree.piece(item);
                own = columns;
                continue;
            }
            let joins = [
                "join",
                "left join",
                "left join",
                "right join",
                "full join",
                "cross join",
            ];
            let join = pick(self.random, &joins);
            let left = self.nested_column(&own);
            let right = self.nested_column(&columns);
            own.extend(columns);
            tree = tree.text(format!(" {join} ")).piece(item);
            tree = match join {
                "cross join" => tree,
                // Only such a condition serves a full join in PostgreSQL.
                "full join" => tree.text(format!(" on {left} = {right}")),
                _ => {
                    let tree = tree.text(format!(" on {left} = {right}"));
                    match self.random.percent(30) {
                        true => {
                            let more = self.nested_condition(tables, &own, 1, names);
                            tree.piece(optional(" and ").piece(more))
                        }
                        false => tree,
                    }
                }
            };
        }
        own.extend(around.iter().cloned());
        (tree, own)
    }

    fn nested_name(&mut self, names: &mut usize) -> String {
        *names += 1;
        format!("n{names}")
    }

    /// A table, or a query in FROM.
    fn nested_item(
        &mut self,
        tables: &[Table],
        around: &[String],
        depth: usize,
        names: &mut usize,
    ) -> (Tree, Columns) {
        let form = match depth {
            0 | 1 => 0,
            _ => self.below(8),
        };
        let columns = |name: &str| vec![format!("{name}.p"), format!("{name}.q")];
        if form < 4 {
            let table = &tables[self.below(tables.len())];
            let name = self.nested_name(names);
            let of = table.columns.iter().filter(|column| {
                let sql = column.sql.as_str();
                sql == "id" || sql == "ref"
            });
            let of = of.map(|column| format!("{name}.{}", column.sql)).collect();
            return (fixed(format!("{} as {name}", table.name)), of);
        }
        let (from, inner) = self.nested_from(tables, around, depth - 1, names);
        let filter = self.nested_filter(tables, &inner, depth - 1, names);
        let key = self.nested_column(&inner);
        let tree = match form {
            4 => {
                self.note("nested: group by in from");
                let aggregate = self.nested_aggregate(&inner);
                fixed(format!("(select {key} as p, {aggregate} as q"))
                    .piece(from)
                    .piece(filter)
                    .text(format!(" group by {key})"))
            }
            5 => {
                self.note("nested: union all in from");
                let other = self.nested_column(&inner);
                fixed(format!("(select {key} as p, {other} as q"))
                    .piece(from)
                    .piece(filter)
                    .text(" union all select id, 1 from t0)")
            }
            _ => {
                self.note("nested: query in from");
                let value = self.nested_value(tables, &inner, depth - 2, names);
                let tree = fixed(format!("(select {key} as p, ")).piece(value);
                tree.text(" as q").piece(from).piece(filter).text(")")
            }
        };
        let name = self.nested_name(names);
        (tree.text(format!(" as {name}")), columns(&name))
    }

    fn nested_column(&mut self, columns: &[String]) -> String {
        columns[self.below(columns.len())].clone()
    }

    fn nested_aggregate(&mut self, columns: &[String]) -> String {
        let column = self.nested_column(columns);
        let forms = ["count(*)", "count(#)", "max(#)", "min(#)", "sum(#)"];
        pick(self.random, &forms).replace('#', &column)
    }

    fn nested_filter(
        &mut self,
        tables: &[Table],
        columns: &[String],
        depth: usize,
        names: &mut usize,
    ) -> Tree {
        let mut tree = Tree::new(super::tree::Kind::Optional);
        for place in 0..self.below(3) {
            let word = if place == 0 { " where " } else { " and " };
            let condition = self.nested_condition(tables, columns, depth, names);
            tree = tree.text(word).piece(condition);
        }
        tree
    }

    /// A number, or NULL.
    fn nested_value(
        &mut self,
        tables: &[Table],
        columns: &[String],
        depth: usize,
        names: &mut usize,
    ) -> Tree {
        let column = self.nested_column(columns);
        let number = self.below(5);
        match self.below(if depth == 0 { 6 } else { 8 }) {
            0..=2 => fixed(column),
            3 => fixed(format!("{column} + {number}")),
            4 => fixed(format!("coalesce({column}, {number})")),
            5 => fixed(format!("nullif({column}, {number})")),
            6 => {
                let condition = self.nested_condition(tables, columns, depth - 1, names);
                let tree = fixed("case when ").piece(condition);
                tree.text(format!(" then {column} else {number} end"))
            }
            _ => self.nested_scalar(tables, columns, depth, names),
        }
    }

    /// A subquery with one value, which may look at the rows around it.
    fn nested_scalar(
        &mut self,
        tables: &[Table],
        columns: &[String],
        depth: usize,
        names: &mut usize,
    ) -> Tree {
        self.note("nested: scalar subquery");
        let (from, inner) = self.nested_from(tables, columns, depth - 1, names);
        let aggregate = self.nested_aggregate(&inner[..1]);
        let filter = self.nested_filter(tables, &inner, depth - 1, names);
        let (own, outer) = (&inner[0], self.nested_column(columns));
        let link = match filter.parts.is_empty() {
            true => format!(" where {own} = {outer}"),
            false => format!(" and {own} = {outer}"),
        };
        fixed(format!("(select {aggregate}"))
            .piece(from)
            .piece(filter)
            .piece(optional(link))
            .text(")")
    }

    /// A condition.
    fn nested_condition(
        &mut self,
        tables: &[Table],
        columns: &[String],
        depth: usize,
        names: &mut usize,
    ) -> Tree {
        let (one, other) = (self.nested_column(columns), self.nested_column(columns));
        let number = self.below(8);
        let compare = pick(self.random, &["=", "=", "=", "<>", "<", ">="]);
        match self.below(if depth == 0 { 6 } else { 12 }) {
            0 => fixed(format!("{one} {compare} {other}")),
            1 => fixed(format!("{one} = {number}")),
            2 => fixed(format!("{one} {compare} {number}")),
            3 => fixed(format!("{one} is {}null", pick(self.random, &["", "not "]))),
            4 => {
                let word = pick(self.random, &["", "not "]);
                let last = pick(self.random, &["null", "5", "7"]);
                fixed(format!("{one} {word}in ({number}, {last})"))
            }
            5 => fixed(format!("coalesce({one}, {number}) {compare} {number}")),
            6 | 7 => {
                self.note("nested: or of and");
                let mut tree = fixed("(");
                for arm in 0..2 + self.below(2) {
                    let word = if arm == 0 { "(" } else { " or (" };
                    let more = self.nested_condition(tables, columns, depth - 1, names);
                    tree = tree
                        .text(word)
                        .text(format!("{one} {compare} {other} and "));
                    tree = tree.piece(more).text(")");
                }
                tree.text(")")
            }
            8 => {
                let condition = self.nested_condition(tables, columns, depth - 1, names);
                fixed("not (").piece(condition).text(")")
            }
            9 => {
                let scalar = self.nested_scalar(tables, columns, depth, names);
                fixed(format!("{one} {compare} ")).piece(scalar)
            }
            form => {
                let (from, inner) = self.nested_from(tables, columns, depth - 1, names);
                let filter = self.nested_filter(tables, &inner, depth - 1, names);
                let word = pick(self.random, &["", "not "]);
                self.note(match (form, word) {
                    (10, "") => "nested: exists",
                    (10, _) => "nested: not exists",
                    (_, "") => "nested: in",
                    _ => "nested: not in",
                });
                let value = self.nested_column(&inner);
                let head = match form {
                    10 => format!("{word}exists (select 1"),
                    _ => format!("{one} {word}in (select {value}"),
                };
                fixed(head).piece(from).piece(filter).text(")")
            }
        }
    }
}
