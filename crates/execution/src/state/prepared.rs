//! Statements that are parsed and planned, and what their plans hold for.
//!
//! A parse tree and a plan take some fifty times their text. So of the prepared statements of a
//! session only those used lately are whole ([`Named`]); the others are parsed and planned again
//! when they are used.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use base::{Result, TreeId};

use super::{Column, Oid};
use catalog::Catalog;
use planner::bind::Bound;
use syntax::parser::{self, Source, Statement, Strings};
use types::TypeId;

/// What a statement at rest takes beside its text.
const REST_BYTES: usize = 512;

/// The trees by which a statement may look for rows, where others have changed meanwhile.
pub type TreesSeen = Rc<BTreeSet<TreeId>>;

/// A statement that is parsed and planned; used again for as long as the session lives.
#[derive(Debug)]
pub struct Prepared {
    /// None: the text held no statement.
    pub statement: Option<Statement>,
    /// The parameter types that were given, or inferred when it was first planned.
    pub params: Vec<TypeId>,
    param_oids: Vec<Oid>,
    columns: Option<Vec<Column>>,
    /// The types of its rows.
    pub types: Vec<TypeId>,
    /// Its plan, if there is one; the catalog may have changed since.
    pub planned: RefCell<Option<Rc<Planned>>>,
    executions: Cell<i64>,
}

/// A prepared statement under its name: whole, or at rest, without parse tree and plan.
#[derive(Debug)]
pub struct Named {
    source: Option<Source>,
    param_oids: Vec<Oid>,
    /// The memory of parse tree and plan, about.
    tree_bytes: usize,
    /// When it was made, in microseconds since 2000-01-01.
    made_at: i64,
    kept: RefCell<Kept>,
}

#[derive(Debug)]
enum Kept {
    Whole(Rc<Prepared>),
    AtRest(Box<Rest>),
}

/// What is left of a statement at rest, beside its text.
#[derive(Debug)]
struct Rest {
    params: Box<[TypeId]>,
    columns: Option<Box<[Column]>>,
    types: Box<[TypeId]>,
    executions: i64,
}

impl Named {
    /// A statement that was just made, at a time in microseconds since 2000-01-01.
    pub fn new(prepared: Rc<Prepared>, made_at: i64) -> Named {
        let source = prepared.statement.as_ref().map(Source::of);
        Named {
            tree_bytes: source.as_ref().map_or(0, Source::tree_bytes),
            source,
            param_oids: prepared.param_oids.clone(),
            made_at,
            kept: RefCell::new(Kept::Whole(prepared)),
        }
    }

    /// When it was made, in microseconds since 2000-01-01.
    pub fn made_at(&self) -> i64 {
        self.made_at
    }

    /// The text that the statement came in, as `pg_prepared_statements` shows it.
    pub fn text(&self) -> Option<&str> {
        self.source.as_ref().map(Source::text)
    }

    /// The statement's text, by which it is made anew.
    pub fn text_alone(&self) -> Option<&str> {
        self.source.as_ref().map(Source::text_alone)
    }

    /// How often it was executed.
    pub fn executions(&self) -> i64 {
        match &*self.kept.borrow() {
            Kept::Whole(prepared) => prepared.executions.get(),
            Kept::AtRest(rest) => rest.executions,
        }
    }

    /// Whether SQL's PREPARE made it.
    pub fn is_from_sql(&self) -> bool {
        self.source.as_ref().is_some_and(Source::is_inner)
    }

    /// How the strings of its text are read.
    pub fn strings(&self) -> Strings {
        self.source
            .as_ref()
            .map_or(Strings::Conforming, Source::strings)
    }

    /// The types of the parameters, `$1` first.
    pub fn param_types(&self) -> &[Oid] {
        &self.param_oids
    }

    /// The memory that it takes, in bytes, about.
    pub fn bytes(&self) -> usize {
        // The tree of a long text counts itself.
        let is_short = self.source.as_ref().is_some_and(Source::is_short);
        match is_short && self.is_whole() {
            true => REST_BYTES + self.tree_bytes,
            false => REST_BYTES + self.source.as_ref().map_or(0, Source::text_bytes),
        }
    }

    /// Whether parse tree and plan are there.
    pub fn is_whole(&self) -> bool {
        matches!(*self.kept.borrow(), Kept::Whole(_))
    }

    /// The statement, parsed again if it was at rest; then it has no plan yet.
    ///
    /// # Errors
    /// As [`Source::parse`].
    pub fn whole(&self) -> Result<Rc<Prepared>> {
        let mut kept = self.kept.borrow_mut();
        let rest = match &mut *kept {
            Kept::Whole(prepared) => return Ok(prepared.clone()),
            Kept::AtRest(rest) => rest,
        };
        let statement = self.source.as_ref().map(Source::parse).transpose()?;
        let prepared = Rc::new(Prepared {
            statement,
            params: rest.params.to_vec(),
            param_oids: self.param_oids.clone(),
            columns: rest.columns.as_deref().map(<[Column]>::to_vec),
            types: rest.types.to_vec(),
            planned: RefCell::new(None),
            executions: Cell::new(rest.executions),
        });
        *kept = Kept::Whole(prepared.clone());
        Ok(prepared)
    }

    /// Drops parse tree and plan, unless somebody uses them or the text is too long to be parsed
    /// again in passing.
    pub fn rest(&self) {
        if !self.source.as_ref().is_some_and(Source::is_short) {
            return;
        }
        let mut kept = self.kept.borrow_mut();
        let rest = match &*kept {
            Kept::Whole(prepared) if Rc::strong_count(prepared) == 1 => Rest {
                params: prepared.params.as_slice().into(),
                columns: prepared.columns.as_deref().map(Box::from),
                types: prepared.types.as_slice().into(),
                executions: prepared.executions.get(),
            },
            _ => return,
        };
        *kept = Kept::AtRest(Box::new(rest));
    }
}

/// A plan, and what it holds for.
#[derive(Debug)]
pub struct Planned {
    /// The catalog it was made with.
    pub catalog: Arc<Catalog>,
    /// Made inside a transaction that had changed the catalog; not to be used again.
    pub own: bool,
    /// Where its names were looked for.
    pub path: SearchPath,
    /// The columns of its rows, if it returns rows.
    pub columns: Option<Vec<Column>>,
    /// Their types.
    pub types: Vec<TypeId>,
    /// What it does; none: a utility statement, which is carried out from its tree.
    pub bound: Option<Bound>,
    /// If it reads one row by its key and returns columns of it: which ones.
    pub point: Option<Box<[usize]>>,
    /// The trees by which it may look for rows, if not by all.
    pub seen: Option<TreesSeen>,
    /// How many rows tables had, by their trees, if it rests on that.
    pub sizes: Vec<(TreeId, u64)>,
    /// By what its statement is counted.
    pub counted: Counted,
}

/// By what a statement is counted ([`super::statements`]), which is found out once somebody counts it.
#[derive(Debug, Default)]
pub struct Counted {
    /// None of what is never counted by itself.
    source: Option<Source>,
    identified: OnceCell<Identified>,
    /// How long planning took, until that is counted.
    planning: Cell<Option<Duration>>,
}

/// The id of a statement, and its text without constants.
#[derive(Clone, Debug)]
pub struct Identified {
    /// The id; never 0.
    pub id: i64,
    /// The text.
    pub text: Arc<str>,
}

impl Counted {
    /// Of a statement with a plan that took so long to make, if anybody asks.
    pub fn of(statement: &Statement, planning: Option<Duration>) -> Counted {
        Counted {
            source: Some(Source::of(statement)),
            identified: OnceCell::new(),
            planning: Cell::new(planning),
        }
    }

    /// The statement's id and text.
    ///
    /// # Errors
    /// As [`parser::normalize_beside`], the first time.
    pub fn identified(&self, env: &Arc<dyn Env>) -> Result<Option<Identified>> {
        let Some(source) = &self.source else {
            return Ok(None);
        };
        if let Some(known) = self.identified.get() {
            return Ok(Some(known.clone()));
        }
        let text = source.own_text();
        let found = match source.strings() {
            Strings::Conforming => {
                let found = parser::normalize_beside(text, env)?;
                Identified {
                    id: found.id,
                    text: found.text.into(),
                }
            }
            Strings::Escaped => Identified {
                id: parser::id_of_text(text),
                text: text.into(),
            },
        };
        Ok(Some(self.identified.get_or_init(|| found).clone()))
    }

    /// How long planning took, if that was asked for and was not counted yet.
    pub fn take_planning(&self) -> Option<Duration> {
        self.planning.take()
    }
}

/// Where names that are not qualified are looked for, and what that follows from.
#[derive(Debug, Default)]
pub struct SearchPath {
    /// The setting.
    pub names: Vec<String>,
    /// The role whose privileges count.
    pub role: u32,
    /// The schemas.
    pub schemas: Vec<u32>,
}

impl SearchPath {
    /// The schemas, in order.
    pub fn schemas(&self) -> &[u32] {
        &self.schemas
    }
}

impl Prepared {
    /// What a text without a statement gives.
    pub fn empty(params: Vec<TypeId>) -> Prepared {
        Prepared {
            statement: None,
            param_oids: oids(&params),
            columns: None,
            params,
            types: Vec::new(),
            planned: RefCell::new(Some(Rc::new(Planned {
                seen: None,
                sizes: Vec::new(),
                catalog: Catalog::none(),
                own: true,
                path: SearchPath::default(),
                columns: None,
                types: Vec::new(),
                bound: None,
                point: None,
                counted: Counted::default(),
            }))),
            executions: Cell::default(),
        }
    }

    /// What stands for a cursor: its columns, and no statement.
    pub fn of_columns(columns: Vec<Column>) -> Prepared {
        Prepared {
            columns: Some(columns),
            ..Prepared::empty(Vec::new())
        }
    }

    /// The types of the parameters, `$1` first.
    pub fn param_types(&self) -> &[Oid] {
        &self.param_oids
    }

    /// The columns of the rows it returns; none when it returns no rows.
    pub fn columns(&self) -> Option<&[Column]> {
        self.columns.as_deref()
    }

    /// Whether the text held no statement.
    pub fn is_empty(&self) -> bool {
        self.statement.is_none()
    }

    /// The statement's text, as `pg_prepared_statements` shows it.
    pub fn text(&self) -> Option<&str> {
        Some(self.statement.as_ref()?.own_text())
    }

    /// The whole text that it was given in, as the server's log shows it.
    pub fn whole_text(&self) -> Option<&str> {
        Some(self.statement.as_ref()?.text())
    }

    /// Whether SQL's PREPARE made it.
    pub fn is_from_sql(&self) -> bool {
        self.statement.as_ref().is_some_and(Statement::is_inner)
    }

    /// The types of its parameters.
    pub fn param_type_ids(&self) -> &[TypeId] {
        &self.params
    }

    /// A prepared statement with its plan.
    pub fn of_plan(statement: Statement, params: Vec<TypeId>, planned: Rc<Planned>) -> Prepared {
        Prepared {
            statement: Some(statement),
            param_oids: oids(&params),
            columns: planned.columns.clone(),
            params,
            types: planned.types.clone(),
            planned: RefCell::new(Some(planned)),
            executions: Cell::default(),
        }
    }

    /// Counts an execution of what has a name.
    pub fn count_execution(&self) {
        self.executions.set(self.executions.get().saturating_add(1));
    }

    /// The statement, if the text held one.
    pub fn statement(&self) -> Option<&Statement> {
        self.statement.as_ref()
    }
}

/// The oids of types.
pub fn oids(types: &[TypeId]) -> Vec<Oid> {
    types.iter().map(|ty| Oid(ty.0)).collect()
}
