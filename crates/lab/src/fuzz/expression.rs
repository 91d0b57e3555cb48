//! Random expressions of a wanted type, over the columns in scope.
//!
//! What has been generated least comes first at the top of a statement ([`Counts`]), so that
//! everything comes often; below it chance decides.

use std::collections::BTreeMap;

use super::catalog::{pseudo, Catalog, Maker, Row, Use};
use super::tree::{Kind, Tree};
use super::values::{self, pick};
use crate::tpcc::random::Random;

/// How often everything was generated.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// By the place of the maker in the catalog.
    pub makers: Vec<u64>,
    /// Constructs and kinds of statements, by name.
    pub constructs: BTreeMap<&'static str, u64>,
}

/// A column in scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// As an expression names it.
    pub sql: String,
    /// Its type.
    pub of: u32,
}

/// Functions whose numbers say how much there shall be: small ones, so that the answer fits.
const GROWING: [&str; 12] = [
    "repeat",
    "lpad",
    "rpad",
    "generate_series",
    "array_fill",
    "generate_subscripts",
    "to_char",
    "power",
    "pow",
    "^",
    "exp",
    "factorial",
];

/// Writes expressions.
pub struct Writer<'a> {
    /// Chance.
    pub random: &'a mut Random,
    /// What there is.
    pub catalog: &'a Catalog,
    /// What was generated.
    pub counts: &'a mut Counts,
    /// The columns that may be named.
    pub scope: Vec<Column>,
}

impl Writer<'_> {
    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.random.between(0, bound.max(1) as u64 - 1) as usize
    }

    /// Any type of which there are literals.
    pub fn any_type(&mut self) -> u32 {
        pick(self.random, &self.catalog.plain)
    }

    /// Notes that a construct was written.
    pub fn note(&mut self, construct: &'static str) {
        *self.counts.constructs.entry(construct).or_default() += 1;
    }

    /// A type by name; `text` where there is none.
    pub fn named(&self, name: &str) -> u32 {
        self.catalog.named(name).unwrap_or(25)
    }

    /// A constant.
    pub fn constant(&mut self, of: u32) -> Tree {
        let text = match self.catalog.element_of(of) {
            Some(element) => {
                let count = self.below(4);
                let elements: Vec<String> = (0..count)
                    .map(|_| values::literal(self.random, self.catalog.name(element)))
                    .collect();
                let name = values::quoted_type(self.catalog.name(element));
                format!("array[{}]::{name}[]", elements.join(", "))
            }
            None => values::literal(self.random, self.catalog.name(of)),
        };
        Tree::of(Kind::Value(of), text)
    }

    /// A value of a type, of at most so many makers above each other.
    pub fn value(&mut self, of: u32, depth: usize) -> Tree {
        let columns: Vec<Column> = self.scope.iter().filter(|c| c.of == of).cloned().collect();
        if !columns.is_empty() && self.random.percent(45) {
            let column = &columns[self.below(columns.len())];
            return Tree::of(Kind::Value(of), column.sql.clone());
        }
        if depth == 0 || self.random.percent(15) {
            return self.constant(of);
        }
        if self.random.percent(25) {
            return self.construct(of, depth - 1);
        }
        let makers = self.catalog.makers_of(of);
        for _ in 0..4 {
            if makers.is_empty() {
                break;
            }
            let place = makers[self.below(makers.len())];
            if let Some(tree) = self.call(place, Some(of), depth - 1) {
                return tree;
            }
        }
        self.constant(of)
    }

    /// What a maker gives, of a wanted type where it may give any; none where it cannot.
    pub fn call(&mut self, place: usize, wanted: Option<u32>, depth: usize) -> Option<Tree> {
        let row = self.catalog.rows[place].clone();
        let (takes, gives) = self.resolve(&row, wanted)?;
        let (name, grows) = match &row.maker {
            Maker::Function(name, _) | Maker::Infix(name) | Maker::Prefix(name) => {
                (name.clone(), GROWING.contains(&name.as_str()))
            }
            Maker::Cast => (String::new(), false),
        };
        let mut given = Vec::new();
        for of in &takes {
            given.push(match grows {
                true if self.is_number(*of) => {
                    let small = pick(self.random, &values::SMALL);
                    let of_name = self.catalog.name(*of);
                    Tree::of(Kind::Value(*of), format!("{small}::{of_name}"))
                }
                _ => self.value(*of, depth),
            });
        }
        self.counts.makers[place] += 1;
        let tree = Tree::new(Kind::Value(gives));
        Some(match row.maker {
            Maker::Function(..) => {
                let name = called(&name);
                let tree = tree.text(format!("{name}("));
                comma_separated(tree, given).text(")")
            }
            Maker::Infix(_) => {
                let mut given = given.into_iter();
                tree.text("(")
                    .piece(given.next()?)
                    .text(format!(" {name} "))
                    .piece(given.next()?)
                    .text(")")
            }
            Maker::Prefix(_) => tree.text(format!("({name} ")).piece(given.pop()?).text(")"),
            Maker::Cast => {
                let to = values::quoted_type(self.catalog.name(gives));
                tree.text("cast(")
                    .piece(given.pop()?)
                    .text(format!(" as {to})"))
            }
        })
    }

    fn is_number(&self, of: u32) -> bool {
        let numbers = ["int2", "int4", "int8", "numeric", "float4", "float8"];
        numbers.contains(&self.catalog.name(of))
    }

    /// The types of a maker's arguments and of its result, with none that stands for others.
    pub fn resolve(&mut self, row: &Row, wanted: Option<u32>) -> Option<(Vec<u32>, u32)> {
        let mut element = self.any_type();
        if let Some(wanted) = wanted {
            if pseudo::ARRAYS.contains(&row.gives) {
                element = self.catalog.element_of(wanted)?;
            } else if pseudo::ELEMENTS.contains(&row.gives) {
                element = wanted;
            } else if row.gives != wanted {
                return None;
            }
        }
        let of = |of: u32| match of {
            of if pseudo::ELEMENTS.contains(&of) => Some(element),
            of if pseudo::ARRAYS.contains(&of) => self.catalog.array_of(element),
            of => Some(of),
        };
        let mut takes: Vec<u32> = row
            .takes
            .iter()
            .map(|each| of(*each))
            .collect::<Option<_>>()?;
        let gives = of(row.gives)?;
        if row.is_variadic {
            // The catalog says the array; what is written are its elements.
            let last = takes.pop()?;
            let last = self.catalog.element_of(last).unwrap_or(last);
            let times = 1 + self.below(3);
            takes.extend(std::iter::repeat_n(last, times));
        }
        Some((takes, gives))
    }

    /// What the grammar has besides functions and operators.
    fn construct(&mut self, of: u32, depth: usize) -> Tree {
        let boolean = self.named("bool");
        if of == boolean {
            return self.condition(depth);
        }
        if let Some(element) = self.catalog.element_of(of) {
            if self.random.percent(30) {
                return self.slice(of, depth);
            }
            self.note("array[]");
            let count = 1 + self.below(3);
            let elements = (0..count).map(|_| self.value(element, depth)).collect();
            let name = values::quoted_type(self.catalog.name(of));
            return Tree::of(Kind::Value(of), "array[")
                .list(elements, ", ")
                .text(format!("]::{name}"));
        }
        let tree = Tree::new(Kind::Value(of));
        match self.below(6) {
            0 => {
                self.note("case when");
                let (when, then) = (self.condition(depth), self.value(of, depth));
                let otherwise = self.value(of, depth);
                tree.text("case when ")
                    .piece(when)
                    .text(" then ")
                    .piece(then)
                    .text(" else ")
                    .piece(otherwise)
                    .text(" end")
            }
            1 => {
                self.note("case of");
                let by = self.any_comparable();
                let (subject, when) = (self.value(by, depth), self.value(by, depth));
                let then = self.value(of, depth);
                tree.text("case ")
                    .piece(subject)
                    .text(" when ")
                    .piece(when)
                    .text(" then ")
                    .piece(then)
                    .text(" end")
            }
            2 => self.of_several("coalesce", tree, of, depth),
            3 if self.is_comparable(of) => self.of_several("greatest", tree, of, depth),
            4 if self.is_comparable(of) => self.of_several("least", tree, of, depth),
            5 if self.is_comparable(of) => {
                self.note("nullif");
                let (one, other) = (self.value(of, depth), self.value(of, depth));
                tree.text("nullif(")
                    .piece(one)
                    .text(", ")
                    .piece(other)
                    .text(")")
            }
            _ => {
                self.note("(select)");
                let inner = self.value(of, depth);
                tree.text("(select ").piece(inner).text(")")
            }
        }
    }

    fn of_several(&mut self, name: &'static str, tree: Tree, of: u32, depth: usize) -> Tree {
        self.note(name);
        let count = 2 + self.below(2);
        let all = (0..count).map(|_| self.value(of, depth)).collect();
        tree.text(format!("{name}(")).list(all, ", ").text(")")
    }

    /// Types without an order.
    pub fn is_comparable(&self, of: u32) -> bool {
        let of = self.catalog.element_of(of).unwrap_or(of);
        !matches!(
            self.catalog.name(of),
            "json" | "jsonpath" | "xid" | "cid" | "?"
        )
    }

    /// A type whose values can be compared.
    pub fn any_comparable(&mut self) -> u32 {
        loop {
            let of = self.any_type();
            if self.is_comparable(of) {
                return of;
            }
        }
    }

    /// A condition of the grammar's own, or any other.
    pub fn condition(&mut self, depth: usize) -> Tree {
        let boolean = self.named("bool");
        let tree = Tree::of(Kind::Value(boolean), "(");
        if depth == 0 {
            return self.constant(boolean);
        }
        let depth = depth - 1;
        let by = self.any_comparable();
        let tree = match self.below(12) {
            0 => {
                let word = pick(self.random, &["and", "or"]);
                self.note(word);
                let (one, other) = (self.value(boolean, depth), self.value(boolean, depth));
                tree.piece(one).text(format!(" {word} ")).piece(other)
            }
            1 => {
                self.note("not");
                let one = self.value(boolean, depth);
                tree.text("not ").piece(one)
            }
            2 => {
                self.note("is null");
                let one = self.value(by, depth);
                let word = pick(self.random, &[" is null", " is not null"]);
                tree.piece(one).text(word)
            }
            3 => {
                self.note("is distinct from");
                let (one, other) = (self.value(by, depth), self.value(by, depth));
                let word = pick(
                    self.random,
                    &[" is distinct from ", " is not distinct from "],
                );
                tree.piece(one).text(word).piece(other)
            }
            4 => {
                self.note("between");
                let word = pick(
                    self.random,
                    &[" between ", " not between ", " between symmetric "],
                );
                let (one, low) = (self.value(by, depth), self.value(by, depth));
                let high = self.value(by, depth);
                tree.piece(one)
                    .text(word)
                    .piece(low)
                    .text(" and ")
                    .piece(high)
            }
            5 => {
                self.note("in");
                let word = pick(self.random, &[" in (", " not in ("]);
                let one = self.value(by, depth);
                let count = 1 + self.below(4);
                let all = (0..count).map(|_| self.value(by, depth)).collect();
                tree.piece(one).text(word).list(all, ", ").text(")")
            }
            6 => self.like(tree, depth),
            7 => {
                self.note("any, all");
                let Some(array) = self.catalog.array_of(by) else {
                    return self.constant(boolean);
                };
                let compare = pick(self.random, &["=", "<>", "<", ">="]);
                let word = pick(self.random, &["any", "all"]);
                let (one, all) = (self.value(by, depth), self.value(array, depth));
                tree.piece(one)
                    .text(format!(" {compare} {word} ("))
                    .piece(all)
                    .text(")")
            }
            8 => {
                self.note("is true");
                let one = self.value(boolean, depth);
                let all = [
                    " is true",
                    " is not true",
                    " is false",
                    " is unknown",
                    " is not unknown",
                ];
                let word = pick(self.random, &all);
                tree.piece(one).text(word)
            }
            9 => {
                self.note("rows compared");
                let other = self.any_comparable();
                let compare = pick(self.random, &["=", "<>", "<", ">="]);
                let (a, b) = (self.value(by, depth), self.value(other, depth));
                let (c, d) = (self.value(by, depth), self.value(other, depth));
                tree.text("(")
                    .piece(a)
                    .text(", ")
                    .piece(b)
                    .text(format!(") {compare} ("))
                    .piece(c)
                    .text(", ")
                    .piece(d)
                    .text(")")
            }
            10 if self.random.percent(50) => self.rows_compared(tree, depth),
            10 => {
                self.note("in (select)");
                let (one, other) = (self.value(by, depth), self.value(by, depth));
                tree.piece(one).text(" in (select ").piece(other).text(")")
            }
            _ => {
                let compare = pick(self.random, &["=", "<>", "<", "<=", ">", ">="]);
                self.note("compared");
                let (one, other) = (self.value(by, depth), self.value(by, depth));
                tree.piece(one).text(format!(" {compare} ")).piece(other)
            }
        };
        tree.text(")")
    }

    fn like(&mut self, tree: Tree, depth: usize) -> Tree {
        self.note("like");
        let text = self.named("text");
        let all = [
            " like ",
            " not like ",
            " ilike ",
            " similar to ",
            " ~ ",
            " ~* ",
            " !~ ",
        ];
        let word = pick(self.random, &all);
        let (one, other) = (self.value(text, depth), self.value(text, depth));
        tree.piece(one).text(word).piece(other)
    }

    /// What was generated least, of those that are used in that way.
    pub fn least(&mut self, is_wanted: impl Fn(&Row) -> bool) -> Option<usize> {
        let rows = self.catalog.rows.iter().enumerate();
        let wanted = rows.filter(|(_, row)| is_wanted(row));
        let places: Vec<usize> = wanted.map(|(place, _)| place).collect();
        let least = places
            .iter()
            .map(|place| self.counts.makers[*place])
            .min()?;
        let among: Vec<usize> = places
            .into_iter()
            .filter(|place| self.counts.makers[*place] <= least + 2)
            .collect();
        Some(pick(self.random, &among))
    }
}

/// Whether a maker stands in any expression.
pub fn is_plain(row: &Row) -> bool {
    !matches!(&row.maker, Maker::Function(_, how) if *how != Use::Plain)
}

/// A function's name as it is called: some are words of the grammar.
pub fn called(name: &str) -> String {
    format!("\"{name}\"")
}

/// Arguments, none of which may be left out.
pub fn comma_separated(mut tree: Tree, all: Vec<Tree>) -> Tree {
    for (place, each) in all.into_iter().enumerate() {
        if place > 0 {
            tree = tree.text(", ");
        }
        tree = tree.piece(each);
    }
    tree
}
