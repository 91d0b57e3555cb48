//! Random statements: tables and what fills them, queries of every shape, changes.
//!
//! Each statement has one answer only: rows are ordered by all their columns where a limit cuts, and
//! aggregates and windows that depend on an order are given one. What is left to the server's
//! choice is a rule of [`super::compare`].

use super::catalog::{Maker, Use};
use super::expression::{called, comma_separated, is_plain, Column, Writer};
use super::tree::{Kind, Tree};
use super::values::{self, pick};

/// Tables of a schema.
const TABLES: usize = 3;

/// Rows of each in the beginning.
const ROWS: u64 = 14;

/// Makers above each other.
const DEPTH: usize = 3;

/// A table that was made.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns, the first `id`, the primary key.
    pub columns: Vec<Column>,
    /// Columns with a unique key besides.
    pub unique: Vec<String>,
}

/// What a statement is, for the counts and for how its answers are compared.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its text.
    pub tree: Tree,
    /// It changes something.
    pub is_change: bool,
    /// Its rows come in one order.
    pub is_ordered: bool,
}

impl Statement {
    /// A query whose rows come in any order.
    pub fn query(tree: Tree) -> Statement {
        Statement {
            tree,
            is_change: false,
            is_ordered: false,
        }
    }

    /// A statement that changes something.
    pub fn change(tree: Tree) -> Statement {
        Statement {
            tree,
            is_change: true,
            is_ordered: false,
        }
    }
}

pub(super) fn fixed(text: impl Into<String>) -> Tree {
    Tree::of(Kind::Fixed, text)
}

pub(super) fn optional(text: impl Into<String>) -> Tree {
    Tree::of(Kind::Optional, text)
}

impl Writer<'_> {
    /// The statements that make a schema, and its tables.
    pub fn schema(&mut self) -> (Vec<String>, Vec<Table>) {
        let mut statements = Vec::new();
        for place in (0..TABLES).rev() {
            statements.push(format!("drop table if exists t{place} cascade"));
        }
        let mut tables: Vec<Table> = Vec::new();
        for place in 0..TABLES {
            let mut table = Table {
                name: format!("t{place}"),
                columns: vec![self.column("id", "int4")],
                unique: Vec::new(),
            };
            let mut definitions = vec!["id int4 primary key".to_owned()];
            if place > 0 {
                let to = self.below(place);
                let actions = [
                    "",
                    " on delete cascade",
                    " on delete set null",
                    " on update cascade",
                ];
                let action = pick(self.random, &actions);
                definitions.push(format!("ref int4 references t{to}{action}"));
                table.columns.push(self.column("ref", "int4"));
            }
            for number in 1..=3 + self.below(4) {
                let plain = self.any_type();
                let array = self.catalog.array_of(plain);
                let of = match self.random.percent(10) {
                    true => array.unwrap_or(plain),
                    false => plain,
                };
                let type_name = values::quoted_type(self.catalog.name(of));
                let name = format!("c{number}");
                // No index holds arrays yet.
                let is_comparable = of == plain && self.is_comparable(of);
                let mut definition = format!("{name} {type_name}");
                if self.random.percent(15) {
                    let text = self.constant(of).sql();
                    definition.push_str(&format!(" default {text}"));
                }
                if self.random.percent(10) {
                    definition.push_str(" not null");
                }
                if self.random.percent(15) && is_comparable {
                    definition.push_str(" unique");
                    // What is checked later serves no ON CONFLICT.
                    match self.random.percent(25) {
                        true => definition.push_str(" deferrable"),
                        false => table.unique.push(name.clone()),
                    }
                }
                if self.random.percent(10) && is_comparable {
                    let text = self.constant(of).sql();
                    definition.push_str(&format!(" check ({name} <> {text})"));
                }
                definitions.push(definition);
                table.columns.push(Column { sql: name, of });
            }
            statements.push(format!(
                "create table {} ({})",
                table.name,
                definitions.join(", ")
            ));
            if self.random.percent(60) {
                let column = &table.columns[self.below(table.columns.len())].clone();
                let is_array = self.catalog.element_of(column.of).is_some();
                if !is_array && self.is_comparable(column.of) {
                    statements.push(format!("create index on {} ({})", table.name, column.sql));
                }
            }
            for id in 1..=ROWS {
                let row = self.row(&table, id as i64);
                statements.push(format!("insert into {} values ({row})", table.name));
            }
            tables.push(table);
        }
        (statements, tables)
    }

    fn column(&self, name: &str, of: &str) -> Column {
        Column {
            sql: name.to_owned(),
            of: self.named(of),
        }
    }

    fn row(&mut self, table: &Table, id: i64) -> String {
        let columns = table.columns.clone();
        let all = columns.iter().map(|column| match column.sql.as_str() {
            "id" => id.to_string(),
            "ref" if self.random.percent(80) => self.random.between(1, ROWS).to_string(),
            "ref" => "null".to_owned(),
            _ => self.constant(column.of).sql(),
        });
        all.collect::<Vec<_>>().join(", ")
    }

    /// Any query.
    pub fn query(&mut self, tables: &[Table]) -> Statement {
        self.scope.clear();
        match self.below(18) {
            0..=3 => self.expressions(),
            14..=17 => self.nested(tables),
            12 | 13 => self.shaped(tables),
            4 => self.set_function(),
            5 | 6 => self.grouped(tables),
            7 => self.windowed(tables),
            8 => self.united(tables),
            _ => self.joined(tables),
        }
    }

    /// One expression without a table: what was generated least.
    fn expressions(&mut self) -> Statement {
        self.note("select");
        let least = self.least(is_plain);
        let called = least.and_then(|place| self.call(place, None, DEPTH - 1));
        let value = match called {
            Some(value) => value,
            None => {
                let of = self.any_type();
                self.value(of, DEPTH)
            }
        };
        Statement::query(fixed("select ").piece(value).text(" as v"))
    }

    /// A function in FROM.
    fn set_function(&mut self) -> Statement {
        let is_set = |maker: &Maker| matches!(maker, Maker::Function(_, Use::Set));
        let least = self.least(|row| is_set(&row.maker));
        let Some(called) = least.and_then(|place| self.call(place, None, 1)) else {
            return self.expressions();
        };
        let ordinality = pick(self.random, &["", " with ordinality"]);
        self.note(match ordinality {
            "" => "from function",
            _ => "with ordinality",
        });
        let tree = fixed("select * from ")
            .piece(called)
            .text(ordinality)
            .text(" as s");
        Statement::query(tree.piece(optional(" limit 50")))
    }

    /// Takes tables into scope under new names, joined.
    fn from(&mut self, tables: &[Table], count: usize) -> Tree {
        let mut tree = fixed(" from ");
        self.scope.clear();
        for place in 0..count {
            let table = &tables[self.below(tables.len())];
            let name = ["a", "b", "c"][place.min(2)];
            let joins = ["join", "left join", "right join", "full join", "cross join"];
            let join = pick(self.random, &joins);
            let columns = table.columns.iter().map(|column| Column {
                sql: format!("{name}.{}", column.sql),
                of: column.of,
            });
            self.scope.extend(columns);
            if place == 0 {
                tree = tree.text(format!("{} as {name}", table.name));
                continue;
            }
            self.note(match join {
                "join" => "join",
                "left join" => "left join",
                "right join" => "right join",
                "full join" => "full join",
                _ => "cross join",
            });
            let joined = format!(" {join} {} as {name}", table.name);
            let on = match join {
                "cross join" => None,
                // A full join needs a condition that can be merged or hashed.
                "full join" => Some(fixed(format!("a.id = {name}.id"))),
                _ if self.random.percent(70) => {
                    let outer = ["a.id", "a.id", "b.id"][place.min(2)];
                    let inner = match table.columns.iter().any(|c| c.sql == "ref") {
                        true => "ref",
                        false => "id",
                    };
                    Some(fixed(format!("{outer} = {name}.{inner}")))
                }
                _ => Some(self.condition(1)),
            };
            tree = tree.text(joined);
            if let Some(on) = on {
                tree = tree.text(" on ").piece(on);
            }
        }
        tree
    }

    fn filter(&mut self) -> Tree {
        if self.random.percent(40) {
            return Tree::new(Kind::Optional);
        }
        self.note("where");
        let condition = self.condition(2);
        optional(" where ").piece(condition)
    }

    fn comparable_value(&mut self, depth: usize) -> Tree {
        let of = self.any_comparable();
        self.value(of, depth)
    }

    /// A query over joined tables.
    fn joined(&mut self, tables: &[Table]) -> Statement {
        let count = 1 + self.below(3);
        let from = self.from(tables, count);
        let outputs = 1 + self.below(3);
        let outputs: Vec<Tree> = (0..outputs).map(|_| self.comparable_value(2)).collect();
        let width = outputs.len();
        let distinct = pick(self.random, &["", "", "", "distinct "]);
        let filter = self.filter();
        let filter = match self.random.percent(25) {
            true => self.with_sublink(tables, filter),
            false => filter,
        };
        let tree = fixed(format!("select {distinct}"));
        let tree = comma_separated(tree, outputs).piece(from).piece(filter);
        if !distinct.is_empty() {
            self.note("distinct");
        }
        let (tree, is_ordered) = self.ordered(tree, width);
        Statement {
            is_ordered,
            ..Statement::query(self.wrapped(tree))
        }
    }

    /// Perhaps an order by every column, and a limit.
    fn ordered(&mut self, tree: Tree, width: usize) -> (Tree, bool) {
        if self.random.percent(50) {
            return (tree, false);
        }
        self.note("order by");
        let words = ["", " desc", " nulls first", " desc nulls last"];
        let all: Vec<String> = (1..=width)
            .map(|place| format!("{place}{}", pick(self.random, &words)))
            .collect();
        let tree = tree.text(format!(" order by {}", all.join(", ")));
        if self.random.percent(50) {
            self.note("limit");
            let (limit, offset) = (self.below(8), self.below(3));
            return (tree.text(format!(" limit {limit} offset {offset}")), true);
        }
        (tree, true)
    }

    /// The same below a WITH or a subquery in FROM.
    fn wrapped(&mut self, tree: Tree) -> Tree {
        match self.below(10) {
            0 => {
                self.note("with");
                let word = pick(self.random, &["", "materialized ", "not materialized "]);
                fixed(format!("with w as {word}("))
                    .piece(tree)
                    .text(") select * from w")
            }
            1 => {
                self.note("from (select)");
                fixed("select * from (").piece(tree).text(") as s")
            }
            _ => tree,
        }
    }

    /// A condition about rows of another table, which may name the outer ones.
    fn with_sublink(&mut self, tables: &[Table], filter: Tree) -> Tree {
        let table = tables[self.below(tables.len())].clone();
        let inner = table.columns.iter().map(|column| Column {
            sql: format!("z.{}", column.sql),
            of: column.of,
        });
        let outer = self.scope.clone();
        self.scope.extend(inner);
        let condition = self.condition(1);
        self.scope = outer;
        let tree = match filter.parts.is_empty() {
            true => optional(" where "),
            false => filter.text(" and "),
        };
        let form = self.below(3);
        self.note(["exists", "not exists", "in (select)"][form]);
        let head = match form {
            0 => format!("exists (select from {} as z where ", table.name),
            1 => format!("not exists (select from {} as z where ", table.name),
            _ => format!("a.id in (select z.id from {} as z where ", table.name),
        };
        tree.text(head).piece(condition).text(")")
    }

    /// A query with groups: the aggregate that was generated least.
    fn grouped(&mut self, tables: &[Table]) -> Statement {
        let is_aggregate = |maker: &Maker| {
            matches!(
                maker,
                Maker::Function(_, Use::Aggregate | Use::OrderedSet(_))
            )
        };
        let count = 1 + self.below(2);
        let from = self.from(tables, count);
        let mut outputs = Vec::new();
        for _ in 0..1 + self.below(2) {
            let least = self.least(|row| is_aggregate(&row.maker));
            if let Some(aggregate) = least.and_then(|place| self.aggregate(place)) {
                outputs.push(aggregate);
            }
        }
        if outputs.is_empty() {
            outputs.push(fixed("count(*)"));
        }
        let filter = self.filter();
        let keys: Vec<Column> = match self.random.percent(50) {
            true => Vec::new(),
            false => {
                let columns = self.scope.iter().filter(|c| self.is_comparable(c.of));
                let columns: Vec<Column> = columns.cloned().collect();
                (0..1 + self.below(2))
                    .map(|_| columns[self.below(columns.len())].clone())
                    .collect()
            }
        };
        let mut tree = fixed("select ");
        let names: Vec<&str> = keys.iter().map(|key| key.sql.as_str()).collect();
        let names = names.join(", ");
        if !keys.is_empty() {
            tree = tree.text(format!("{names}, "));
        }
        tree = comma_separated(tree, outputs).piece(from).piece(filter);
        if !keys.is_empty() {
            let forms = ["", "", "rollup", "cube", "grouping sets"];
            let form = pick(self.random, &forms);
            self.note(match form {
                "" => "group by",
                "rollup" => "rollup",
                "cube" => "cube",
                _ => "grouping sets",
            });
            tree = match form {
                "" => tree.text(format!(" group by {names}")),
                "grouping sets" => tree.text(format!(" group by grouping sets (({names}), ())")),
                _ => tree.text(format!(" group by {form} ({names})")),
            };
        }
        if self.random.percent(20) {
            self.note("having");
            tree = tree.piece(optional(" having count(*) > 1"));
        }
        Statement::query(tree)
    }

    /// A call of an aggregate, its input in one order where that may matter.
    fn aggregate(&mut self, place: usize) -> Option<Tree> {
        let row = self.catalog.rows[place].clone();
        let Maker::Function(name, how) = &row.maker else {
            return None;
        };
        let (takes, gives) = self.resolve(&row, None)?;
        self.counts.makers[place] += 1;
        let all: Vec<Tree> = takes.iter().map(|of| self.value(*of, 1)).collect();
        let name = called(name);
        let tree = fixed(format!("{name}("));
        let sorts = |writer: &Self| takes.iter().all(|of| writer.is_comparable(*of));
        let tree = match how {
            Use::OrderedSet(direct) => {
                let (direct, mut sorted) = takes.split_at(takes.len().min(*direct));
                // A hypothetical row has a value for every column that is sorted by.
                if sorted.is_empty() {
                    sorted = direct;
                }
                // What stands before WITHIN GROUP may not name columns.
                let scope = std::mem::take(&mut self.scope);
                let given = direct.iter().map(|of| self.constant(*of)).collect();
                self.scope = scope;
                let sorted = sorted.iter().map(|of| self.value(*of, 1)).collect();
                comma_separated(tree, given)
                    .text(") within group (order by ")
                    .piece(comma_separated(fixed(""), sorted))
                    .text(")")
            }
            _ if takes.is_empty() => fixed(format!("{name}(*)")),
            _ if sorts(self) => {
                let distinct = pick(self.random, &["", "", "distinct "]);
                self.note("aggregate order by");
                let order = all.clone();
                let tree = fixed(format!("{name}({distinct}"));
                comma_separated(comma_separated(tree, all).text(" order by "), order).text(")")
            }
            // What has no order of its own comes in that of its text.
            _ => {
                let as_text = |value: &Tree| fixed("(").piece(value.clone()).text(")::text");
                let order = all.iter().map(as_text).collect();
                comma_separated(comma_separated(tree, all).text(" order by "), order).text(")")
            }
        };
        let filter = match self.random.percent(15) {
            true => {
                self.note("filter");
                let condition = self.condition(1);
                optional(" filter (where ").piece(condition).text(")")
            }
            false => Tree::new(Kind::Optional),
        };
        Some(Tree::new(Kind::Value(gives)).piece(tree).piece(filter))
    }

    /// A query with a window: the function that was generated least.
    fn windowed(&mut self, tables: &[Table]) -> Statement {
        let from = self.from(tables, 1);
        let is_window =
            |maker: &Maker| matches!(maker, Maker::Function(_, Use::Window | Use::Aggregate));
        let Some(place) = self.least(|row| is_window(&row.maker)) else {
            return self.expressions();
        };
        let Some(call) = self.window_call(place) else {
            return self.expressions();
        };
        let filter = self.filter();
        let mut over = Tree::of(Kind::Fixed, " over (");
        if self.random.percent(50) {
            self.note("partition by");
            let by = self.comparable_value(1);
            over = over.piece(optional("partition by ").piece(by));
        }
        let frames = [
            "",
            "",
            " rows between unbounded preceding and current row",
            " rows between 1 preceding and 2 following",
            " groups between 1 preceding and current row",
            " range between unbounded preceding and unbounded following",
            " rows between unbounded preceding and 1 following exclude current row",
            " groups between current row and 1 following exclude ties",
            " range between 3 preceding and 2 following",
            " range between 2 following and unbounded following exclude group",
        ];
        let frame = pick(self.random, &frames);
        self.note("over");
        over = over.text(" order by a.id").piece(optional(frame)).text(")");
        let tree = fixed("select a.id, ").piece(call).piece(over).piece(from);
        Statement::query(tree.piece(filter))
    }

    fn window_call(&mut self, place: usize) -> Option<Tree> {
        let row = self.catalog.rows[place].clone();
        let Maker::Function(name, _) = &row.maker else {
            return None;
        };
        let (takes, gives) = self.resolve(&row, None)?;
        self.counts.makers[place] += 1;
        let name = called(name);
        if takes.is_empty() && name == "\"count\"" {
            return Some(Tree::of(Kind::Value(gives), "count(*)"));
        }
        let all: Vec<Tree> = takes.iter().map(|of| self.value(*of, 1)).collect();
        let tree = Tree::of(Kind::Value(gives), format!("{name}("));
        Some(comma_separated(tree, all).text(")"))
    }

    /// Two queries united, with one type for each column.
    fn united(&mut self, tables: &[Table]) -> Statement {
        let types: Vec<u32> = (0..1 + self.below(2))
            .map(|_| self.any_comparable())
            .collect();
        let words = [
            "union",
            "union all",
            "intersect",
            "except",
            "intersect all",
            "except all",
        ];
        let word = pick(self.random, &words);
        self.note(match word {
            "union" | "union all" => "union",
            "intersect" | "intersect all" => "intersect",
            _ => "except",
        });
        let mut side = || {
            let from = self.from(tables, 1);
            let outputs = types.iter().map(|of| self.value(*of, 1)).collect();
            let filter = self.filter();
            comma_separated(fixed("select "), outputs)
                .piece(from)
                .piece(filter)
        };
        let (one, other) = (side(), side());
        let tree = fixed("").piece(one).text(format!(" {word} ")).piece(other);
        let (tree, is_ordered) = self.ordered(tree, types.len());
        Statement {
            is_ordered,
            ..Statement::query(tree)
        }
    }

    /// Any change.
    pub fn change(&mut self, tables: &[Table]) -> Statement {
        let table = tables[self.below(tables.len())].clone();
        self.scope.clear();
        let tree = match self.below(22) {
            0..=4 => self.insert(&table),
            5..=7 => self.insert_on_conflict(&table),
            8..=12 => self.update(&table),
            13..=15 => self.delete(&table),
            16 => self.insert_select(&table, tables),
            17 => self.update_from(&table, tables),
            18 => self.block(),
            19..=20 => self.merge(&table, tables),
            _ => self.definition(&table),
        };
        Statement::change(tree)
    }

    fn some_id(&mut self) -> u64 {
        self.random.between(1, 2 * ROWS)
    }

    fn returning(&mut self, table: &Table) -> Tree {
        if self.random.percent(60) {
            return Tree::new(Kind::Optional);
        }
        self.note("returning");
        self.scope = table.columns.clone();
        let value = self.comparable_value(1);
        if self.random.percent(20) {
            self.note("whole row");
            let table = &table.name;
            let row = format!(" returning id, ({table}).id, {table} is null, {table}::text, ");
            return optional(row).piece(value);
        }
        optional(" returning id, ").piece(value)
    }

    /// A value for a column, mostly a plain one.
    fn filling(&mut self, column: &Column) -> Tree {
        match column.sql.as_str() {
            "id" => fixed(self.some_id().to_string()),
            "ref" if self.random.percent(90) => fixed(self.random.between(1, ROWS).to_string()),
            _ if self.random.percent(10) => fixed("default"),
            _ if self.random.percent(60) => self.constant(column.of),
            _ => self.value(column.of, 2),
        }
    }

    fn insert(&mut self, table: &Table) -> Tree {
        self.note("insert");
        let rows = 1 + self.below(2);
        let rows: Vec<Tree> = (0..rows)
            .map(|_| {
                let columns = table.columns.iter();
                let all = columns.map(|column| self.filling(column)).collect();
                comma_separated(fixed("("), all).text(")")
            })
            .collect();
        let tree = fixed(format!("insert into {} values ", table.name)).list(rows, ", ");
        let returning = self.returning(table);
        tree.piece(returning)
    }

    fn insert_on_conflict(&mut self, table: &Table) -> Tree {
        let columns = table.columns.iter();
        let all = columns.map(|column| self.filling(column)).collect();
        let target = match table.unique.is_empty() || self.random.percent(60) {
            true => "id".to_owned(),
            false => table.unique[self.below(table.unique.len())].clone(),
        };
        let tree = fixed(format!("insert into {} values (", table.name));
        let tree = comma_separated(tree, all);
        if self.random.percent(35) {
            self.note("on conflict do nothing");
            let target = pick(self.random, &["", " (id)"]);
            return tree.text(format!(") on conflict{target} do nothing"));
        }
        self.note("on conflict do update");
        let column = table.columns[table.columns.len() - 1 - self.below(2)].clone();
        let mut scope = table.columns.clone();
        for column in &mut scope {
            let prefix = pick(self.random, &["excluded.", ""]);
            let owner = match prefix {
                "" => format!("{}.", table.name),
                _ => prefix.to_owned(),
            };
            column.sql = format!("{owner}{}", column.sql);
        }
        self.scope = scope;
        let value = self.value(column.of, 1);
        let tree = tree
            .text(format!(
                ") on conflict ({target}) do update set {} = ",
                column.sql
            ))
            .piece(value);
        let tree = match self.random.percent(30) {
            true => {
                let condition = self.condition(1);
                tree.piece(optional(" where ").piece(condition))
            }
            false => tree,
        };
        self.scope.clear();
        tree.text(format!(" returning {}.id", table.name))
    }

    fn update(&mut self, table: &Table) -> Tree {
        self.note("update");
        self.scope = table.columns.clone();
        let settable: Vec<Column> = table
            .columns
            .iter()
            .filter(|column| column.sql != "id" && !table.unique.contains(&column.sql))
            .cloned()
            .collect();
        // A key is changed in one row only: in which order rows come is the server's affair.
        let is_of_key = settable.is_empty() || self.random.percent(20);
        let (tree, filter) = if is_of_key {
            let (old, new) = (self.some_id(), self.some_id());
            let tree = format!("update {} set id = {new}", table.name);
            (fixed(tree), optional(format!(" where id = {old}")))
        } else {
            let of_rows = match self.random.percent(25) {
                true => self.set_of_rows(table, &settable),
                false => None,
            };
            if let Some(tree) = of_rows {
                let (filter, returning) = (self.filter(), self.returning(table));
                return tree.piece(filter).piece(returning);
            }
            let column = settable[self.below(settable.len())].clone();
            let value = match column.sql == "ref" {
                true => fixed(self.random.between(1, ROWS).to_string()),
                false => self.value(column.of, 2),
            };
            let tree = fixed(format!("update {} set {} = ", table.name, column.sql)).piece(value);
            (tree, self.filter())
        };
        let returning = self.returning(table);
        tree.piece(filter).piece(returning)
    }

    fn delete(&mut self, table: &Table) -> Tree {
        self.note("delete");
        self.scope = table.columns.clone();
        let filter = match self.random.percent(70) {
            true => {
                let from = self.some_id();
                fixed(format!(" where id between {from} and {}", from + 2))
            }
            false => {
                let condition = self.condition(2);
                fixed(" where id < 8 and ").piece(condition)
            }
        };
        let returning = self.returning(table);
        fixed(format!("delete from {}", table.name))
            .piece(filter)
            .piece(returning)
    }

    fn insert_select(&mut self, table: &Table, tables: &[Table]) -> Tree {
        self.note("insert select");
        let from = self.from(tables, 1);
        let outputs = table
            .columns
            .iter()
            .map(|column| match column.sql.as_str() {
                "id" => fixed(format!("a.id + {}", self.random.between(0, 40))),
                "ref" => fixed("a.id"),
                _ => self.value(column.of, 1),
            });
        let outputs = outputs.collect();
        let tree = fixed(format!("insert into {} select ", table.name));
        let from_id = self.some_id();
        comma_separated(tree, outputs)
            .piece(from)
            .text(format!(" where a.id = {from_id}"))
    }

    fn update_from(&mut self, table: &Table, tables: &[Table]) -> Tree {
        self.note("update from");
        let other = tables[self.below(tables.len())].clone();
        let column = table.columns[table.columns.len() - 1].clone();
        self.scope = other.columns.clone();
        for column in &mut self.scope {
            column.sql = format!("o.{}", column.sql);
        }
        let value = self.value(column.of, 1);
        let id = self.some_id();
        fixed(format!("update {} as t set {} = ", table.name, column.sql))
            .piece(value)
            .text(format!(
                " from {} as o where o.id = t.id and t.id = {id}",
                other.name
            ))
    }

    /// A MERGE of few rows of another table, each of which meets one row at most.
    fn merge(&mut self, table: &Table, tables: &[Table]) -> Tree {
        self.note("merge");
        let other = tables[self.below(tables.len())].clone();
        let named = |table: &Table, alias: &str| {
            let columns = table.columns.iter();
            let column = |column: &Column| Column {
                sql: format!("{alias}.{}", column.sql),
                ..column.clone()
            };
            columns.map(column).collect::<Vec<_>>()
        };
        let source = named(&other, "o");
        let both: Vec<Column> = named(table, "t")
            .into_iter()
            .chain(source.clone())
            .collect();
        let column = table.columns[table.columns.len() - 1].clone();
        let from = self.some_id();
        let mut tree = fixed(format!(
            "merge into {} as t using (select * from {} where id between {from} and {}) as o \
             on t.id = o.id",
            table.name,
            other.name,
            from + 1
        ));
        for _ in 0..=self.below(2) {
            self.scope = both.clone();
            let condition = self.condition(1);
            let value = self.value(column.of, 1);
            let action = match self.below(4) {
                0 => fixed("delete"),
                1 => fixed("do nothing"),
                _ => fixed(format!("update set {} = ", column.sql)).piece(value),
            };
            tree = tree
                .text(" when matched and ")
                .piece(condition)
                .text(" then ")
                .piece(action);
        }
        self.scope = source;
        let value = self.value(column.of, 1);
        let insert = fixed(format!("insert (id, {}) values (o.id, ", column.sql))
            .piece(value)
            .text(")");
        let action = match self.random.percent(80) {
            true => insert,
            false => fixed("do nothing"),
        };
        self.scope.clear();
        tree.text(" when not matched then ").piece(action)
    }

    fn block(&mut self) -> Tree {
        let all = [
            "begin",
            "commit",
            "rollback",
            "savepoint s",
            "rollback to s",
            "release s",
            "begin isolation level repeatable read",
            "begin isolation level serializable",
        ];
        let word = pick(self.random, &all);
        self.note(match word {
            "begin" | "commit" | "rollback" => "begin, commit, rollback",
            "savepoint s" | "rollback to s" | "release s" => "savepoints",
            _ => "isolation levels",
        });
        fixed(word)
    }

    fn definition(&mut self, table: &Table) -> Tree {
        let column = table.columns[self.below(table.columns.len())].clone();
        let is_array = self.catalog.element_of(column.of).is_some();
        let text = match self.below(6) {
            0 if !is_array => {
                self.note("create index");
                format!("create index on {} ({})", table.name, column.sql)
            }
            1 => {
                self.note("add column");
                let of = self.any_type();
                let name = values::quoted_type(self.catalog.name(of));
                let default = self.constant(of).sql();
                format!(
                    "alter table {} add column x {name} default {default}",
                    table.name
                )
            }
            2 => {
                self.note("drop column");
                format!("alter table {} drop column if exists x", table.name)
            }
            3 => {
                self.note("set default");
                let default = self.constant(column.of).sql();
                format!(
                    "alter table {} alter {} set default {default}",
                    table.name, column.sql
                )
            }
            4 => {
                self.note("set not null");
                let word = pick(self.random, &["set", "drop"]);
                format!(
                    "alter table {} alter {} {word} not null",
                    table.name, column.sql
                )
            }
            _ => {
                self.note("truncate");
                format!("truncate {} cascade", table.name)
            }
        };
        fixed(text)
    }
}
