//! A differential fuzzer: random schemas, queries and changes, on Quorate and on PostgreSQL 15, and
//! the answers compared.
//!
//! ```text
//! catalogs of both ──► makers (functions, operators, casts that both have)
//!                          │
//!   seed ──► tables ──► statements ──► both servers ──► the same? ── no ──► a rule explains it?
//!              ▲                                                              │ no
//!              └── a new schema every some hundred statements                  ▼
//!                                              the smallest statement that shows the difference
//! ```
//! Everything generated follows from the seed and from what the servers have. A difference is shown
//! as the statement made smaller ([`tree::shrink`]), with both answers and, where it reads tables,
//! the statements before it that matter.
//!
//! # Invariants
//! - The least generated function comes first, so that each is generated as often as the others.
//! - After a change that both refuse or both make, the tables hold the same; they are compared every
//!   [`LOOK_EVERY`] changes.
//! - A rule covers no kind of statement whole ([`compare::RULES`]).
//!
//! # What it leaves out
//! Sessions beside each other (isolation specifications and [`crate::check`] look at these), and
//! functions that tell of the server, the session, the time or chance ([`catalog::LEFT_OUT`]).

pub mod catalog;
pub mod compare;
pub mod expression;
pub mod nested;
mod rows;
pub mod servers;
pub mod shapes;
pub mod statement;
pub mod tree;
pub mod values;

use std::collections::BTreeMap;
use std::io::Result;
use std::time::Duration;

use base::env::Instant;

use crate::driver::Driver;
use crate::tpcc::random::Random;
use catalog::Catalog;
use expression::{Counts, Writer};
use servers::{Answer, Server};
use statement::{Statement, Table};
use tree::Tree;

/// Statements in one schema.
const STATEMENTS_IN_SCHEMA: u64 = 400;

/// Changes after which the tables are compared.
const LOOK_EVERY: u64 = 5;

/// Questions that making one statement smaller may take.
const QUESTIONS_MAX: usize = 250;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Quorate, `ip:port`.
    pub ours: String,
    /// PostgreSQL, `ip:port`.
    pub theirs: String,
    /// The database on both, whose tables t0, t1, … go.
    pub database: String,
    /// Everything drawn follows from it.
    pub seed: u64,
    /// How long.
    pub length: Duration,
    /// No more statements than these.
    pub statements_max: u64,
    /// Differences after which it ends.
    pub differences_max: usize,
    /// Queries whose shape matters, and nothing else ([`nested`]).
    pub nested_only: bool,
}

/// A difference that no rule explains.
#[derive(Clone, Debug)]
pub struct Difference {
    /// What made the tables, where the statement reads any.
    pub before: Vec<String>,
    /// The smallest statement found.
    pub sql: String,
    /// Its answers.
    pub ours: Answer,
    /// PostgreSQL's.
    pub theirs: Answer,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Queries that were compared.
    pub queries: u64,
    /// Changes that were compared.
    pub changes: u64,
    /// Statements that both refused.
    pub refused: u64,
    /// How often each rule explained a difference.
    pub explained: Vec<u64>,
    /// The others.
    pub differences: Vec<Difference>,
    /// Everything generated, and how often.
    pub counts: BTreeMap<String, u64>,
}

struct Run<'a> {
    catalog: &'a Catalog,
    ours: Server,
    theirs: Server,
    counts: Counts,
    findings: Findings,
    random: Random,
    nested_only: bool,
    tables: Vec<Table>,
    /// The statements that made the tables.
    schema: Vec<String>,
    /// Every statement that made or changed the tables.
    before: Vec<String>,
}

/// Runs it.
///
/// # Errors
/// A server is not there.
pub fn run(driver: &Driver, plan: &Plan, mut told: impl FnMut(&Difference)) -> Result<Findings> {
    let mut ours = Server::connect(driver, &plan.ours, &plan.database)?;
    let mut theirs = Server::connect(driver, &plan.theirs, &plan.database)?;
    let catalog = catalog::read(&mut ours, &mut theirs)?;
    let counts = Counts {
        makers: vec![0; catalog.rows.len()],
        constructs: BTreeMap::new(),
    };
    let findings = Findings {
        explained: vec![0; compare::RULES.len()],
        ..Findings::default()
    };
    let mut run = Run {
        catalog: &catalog,
        ours,
        theirs,
        counts,
        findings,
        random: Random::new(plan.seed),
        nested_only: plan.nested_only,
        tables: Vec::new(),
        schema: Vec::new(),
        before: Vec::new(),
    };
    let env = driver.env();
    let end: Instant = env.now().after(plan.length);
    let mut number = 0;
    while env.now() < end && number < plan.statements_max {
        let known = run.findings.differences.len();
        if known >= plan.differences_max {
            break;
        }
        if number % STATEMENTS_IN_SCHEMA == 0 {
            run.begin_schema()?;
        }
        run.step()?;
        number += 1;
        run.findings.differences[known..].iter().for_each(&mut told);
    }
    run.end();
    Ok(run.findings)
}

/// The place of the rule that explains a difference.
fn explained(
    server: &mut Server,
    statement: &Statement,
    ours: &Answer,
    theirs: &Answer,
) -> Result<Option<usize>> {
    if let Some(rule) = compare::explained(statement, ours, theirs) {
        return Ok(Some(rule));
    }
    if compare::may_be_folded(ours, theirs) {
        let is_refused = |answer: &Answer| compare::state(answer) == compare::state(theirs);
        if has_part(server, statement, is_refused)? {
            return Ok(Some(compare::FOLDED));
        }
    }
    if compare::may_be_strict(&statement.tree.sql(), ours, theirs)
        && has_part(server, statement, is_null)?
    {
        return Ok(Some(compare::STRICT));
    }
    Ok(None)
}

fn is_null(answer: &Answer) -> bool {
    match answer {
        Answer::Rows(_, rows, _) => rows.iter().flatten().any(Option::is_none),
        _ => false,
    }
}

/// Whether our server gives such an answer for a part of the statement, asked for alone.
fn has_part(
    server: &mut Server,
    statement: &Statement,
    is_such: impl Fn(&Answer) -> bool,
) -> Result<bool> {
    for path in statement.tree.paths() {
        let Some(piece) = statement.tree.at(&path) else {
            continue;
        };
        if !matches!(piece.kind, tree::Kind::Value(_)) {
            continue;
        }
        let answer = server.ask(&format!("select {}", piece.sql()))?;
        if is_such(&answer) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Run<'_> {
    fn writer(&mut self) -> Writer<'_> {
        Writer {
            random: &mut self.random,
            catalog: self.catalog,
            counts: &mut self.counts,
            scope: Vec::new(),
        }
    }

    fn ask(&mut self, sql: &str) -> Result<(Answer, Answer)> {
        Ok((self.ours.ask(sql)?, self.theirs.ask(sql)?))
    }

    fn begin_schema(&mut self) -> Result<()> {
        (self.schema, self.tables) = self.writer().schema();
        self.ask("rollback")?;
        self.before.clear();
        for sql in self.schema.clone() {
            let tree = Tree::of(tree::Kind::Fixed, sql);
            self.compare(&Statement::change(tree))?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        let tables = self.tables.clone();
        let nested_only = self.nested_only;
        let is_change = !nested_only && self.random.percent(50);
        let statement = match (is_change, nested_only) {
            (true, _) => self.writer().change(&tables),
            (false, true) => self.writer().nested(&tables),
            (false, false) => self.writer().query(&tables),
        };
        let is_same = self.compare(&statement)?;
        if is_change && is_same && self.findings.changes % LOOK_EVERY == 0 {
            self.look()?;
        }
        Ok(())
    }

    /// Compares the tables.
    fn look(&mut self) -> Result<()> {
        for table in self.tables.clone() {
            let sql = format!("select * from {}", table.name);
            let tree = Tree::of(tree::Kind::Fixed, sql);
            let statement = Statement {
                tree,
                is_change: false,
                is_ordered: false,
            };
            if !self.compare(&statement)? {
                return self.begin_schema_again();
            }
        }
        Ok(())
    }

    /// Whether both answer the same.
    fn compare(&mut self, statement: &Statement) -> Result<bool> {
        let sql = statement.tree.sql();
        let (ours, theirs) = self.ask(&sql)?;
        match statement.is_change {
            true => self.findings.changes += 1,
            false => self.findings.queries += 1,
        }
        if compare::same(statement, &ours, &theirs) {
            let is_refused = matches!(ours, Answer::Refused(..));
            self.findings.refused += u64::from(is_refused);
            if statement.is_change && !is_refused {
                self.before.push(sql);
            }
            return Ok(true);
        }
        // A block in which one of them has failed goes on differently.
        self.ask("rollback")?;
        match self.explained(statement, &ours, &theirs)? {
            Some(rule) => self.findings.explained[rule] += 1,
            None => self.report(statement, ours, theirs)?,
        }
        // What was changed on one side only would be found again and again.
        if statement.is_change {
            self.begin_schema_again()?;
        }
        Ok(false)
    }

    /// The place of the rule that explains a difference.
    fn explained(
        &mut self,
        statement: &Statement,
        ours: &Answer,
        theirs: &Answer,
    ) -> Result<Option<usize>> {
        explained(&mut self.ours, statement, ours, theirs)
    }

    /// The schema as it began, after one that is not the same on both any more: what is generated
    /// follows from the seed alone, whatever the answers.
    fn begin_schema_again(&mut self) -> Result<()> {
        self.ask("rollback")?;
        self.before.clear();
        for sql in self.schema.clone() {
            let (ours, theirs) = self.ask(&sql)?;
            let is_made = matches!((&ours, &theirs), (Answer::Rows(..), Answer::Rows(..)));
            if is_made {
                self.before.push(sql);
            }
        }
        Ok(())
    }

    fn report(&mut self, statement: &Statement, ours: Answer, theirs: Answer) -> Result<()> {
        let mut difference = Difference {
            before: Vec::new(),
            sql: statement.tree.sql(),
            ours,
            theirs,
        };
        if !statement.is_change {
            self.make_smaller(statement, &mut difference)?;
        }
        let mut tables = self.tables.iter();
        if tables.any(|table| difference.sql.contains(&table.name)) {
            difference.before = self.before.clone();
        }
        self.findings.differences.push(difference);
        Ok(())
    }

    fn make_smaller(&mut self, statement: &Statement, difference: &mut Difference) -> Result<()> {
        let catalog = self.catalog;
        let constant = |of: u32| {
            let name = values::quoted_type(catalog.name(of));
            let all = values::literals(catalog.name(of)).unwrap_or(&[]);
            let mut all: Vec<String> = all
                .iter()
                .take(3)
                .map(|text| format!("{}::{name}", values::quote(text)))
                .collect();
            all.push(format!("null::{name}"));
            all
        };
        let kind = (
            compare::state(&difference.ours).to_owned(),
            compare::state(&difference.theirs).to_owned(),
        );
        let mut failed = None;
        let mut last = None;
        let smallest = tree::shrink(&statement.tree, QUESTIONS_MAX, constant, |tree| {
            let candidate = Statement {
                tree: tree.clone(),
                ..statement.clone()
            };
            let (ours, theirs) = match (self.ours.ask(&tree.sql()), self.theirs.ask(&tree.sql())) {
                (Ok(ours), Ok(theirs)) => (ours, theirs),
                (Err(error), _) | (_, Err(error)) => {
                    failed = Some(error);
                    return false;
                }
            };
            let states = (compare::state(&ours), compare::state(&theirs));
            let is_alike = states == (kind.0.as_str(), kind.1.as_str())
                && !compare::same(&candidate, &ours, &theirs);
            let shows = is_alike
                && explained(&mut self.ours, &candidate, &ours, &theirs)
                    .is_ok_and(|rule| rule.is_none());
            if shows {
                last = Some((ours, theirs));
            }
            shows
        });
        if let Some(error) = failed {
            return Err(error);
        }
        difference.sql = smallest.sql();
        if let Some((ours, theirs)) = last {
            difference.ours = ours;
            difference.theirs = theirs;
        }
        Ok(())
    }

    fn end(&mut self) {
        let rows = self.catalog.rows.iter().zip(&self.counts.makers);
        for (row, count) in rows {
            let known = self.findings.counts.entry(row.name(self.catalog));
            *known.or_default() += count;
        }
        for (name, count) in &self.counts.constructs {
            self.findings.counts.insert((*name).to_owned(), *count);
        }
    }
}
