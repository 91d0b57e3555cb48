//! Statements that are parsed and planned, and what their plans hold for.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use base::TreeId;

use super::{Column, Oid};
use catalog::Catalog;
use planner::bind::Bound;
use syntax::parser::Statement;
use types::TypeId;

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
    /// Its plan; the catalog may have changed since.
    pub planned: RefCell<Rc<Planned>>,
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
            planned: RefCell::new(Rc::new(Planned {
                seen: None,
                catalog: Catalog::none(),
                own: true,
                path: SearchPath::default(),
                columns: None,
                types: Vec::new(),
                bound: None,
                point: None,
            })),
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
            planned: RefCell::new(planned),
        }
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
