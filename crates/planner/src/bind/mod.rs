//! Names and types: parse trees into plans.
//!
//! A [`Binder`] works on one statement with one [`Catalog`]. It never waits, and it runs on the
//! thread's own stack ([`syntax::parser::large_stack`]), because expressions may be deep.
//!
//! | module | what |
//! |---|---|
//! | [`scope`] | which column a name means |
//! | [`expr`], [`operation`], [`call`], [`routine`] | expressions |
//! | [`indirection`] | elements of arrays |
//! | [`coerce`] | changes of type |
//! | [`domain`] | values of domains |
//! | [`type_names`] | type names |
//! | [`from`] | FROM: tables, joins, functions, subqueries |
//! | [`join_order`] | in which order joins run |
//! | [`select`], [`outputs`], [`grouping_sets`], [`group`] | SELECT |
//! | [`window`], [`window_plan`] | window functions |
//! | [`sublink`] | queries inside expressions |
//! | [`access`] | which keys a condition leaves |
//! | [`system`] | system relations |
//! | [`literals`] | what a plan does not rest on, so that it can be used again |
//! | [`with`] | WITH |
//! | [`write`] | INSERT, UPDATE, DELETE |
//! | [`copy`] | COPY |
//! | [`foreign`] | the foreign keys that those touch |
//! | [`alter`] | what ALTER TABLE computes |
//! | [`view`] | what a view stands for |
//! | [`definition`] | a view's query as text |
//! | [`updatable`] | views that are a selection of one table |
//! | [`updatable_events`] | what can be done to a relation |
//! | [`rule`], [`rule_rows`] | what rules make of a statement |
//! | [`rule_made`], [`rule_text`] | rules as they are made, and as text |
//! | [`policy`] | which rows a role may see and write |
//! | [`given`] | values that are not for the statement to give |
//! | [`fixed`] | text whose names are fixed |

pub mod alter;
mod arbiter;
mod assignments;
mod beside;
pub mod call;
pub mod coerce;
pub mod collation;
mod column_name;
pub mod computed;
pub mod copy;
mod current_of;
mod definition;
mod definition_from;
mod definition_union;
mod definition_with;
mod definition_write;
pub mod domain;
mod exclusion;
pub mod expr;
mod extreme;
mod fields;
pub mod fixed;
mod fixed_arrays;
pub mod foreign;
pub mod from;
mod given;
pub mod group;
mod grouping_sets;
mod hstore;
mod indirection;
mod inline;
mod join;
mod json;
mod keyed;
mod keys;
mod level;
mod listed;
pub mod literals;
mod locking;
mod merge;
mod named;
mod naming;
mod operation;
mod ordered_set;
mod outputs;
pub mod own_aggregate;
mod own_cast;
mod own_operator;
mod partition;
mod parts;
mod policy;
mod postpone;
mod project_set;
mod pull_up;
mod record;
mod renamed;
mod routine;
mod row;
mod rows_from;
pub mod rule;
pub mod rule_made;
mod rule_rows;
pub mod rule_text;
pub mod sample;
pub mod scope;
mod search_cycle;
pub mod select;
mod set_operation;
pub mod sql_body;
mod star;
pub mod stored;
#[cfg(test)]
mod stored_tests;
pub mod sublink;
mod system;
mod trigger;
pub mod type_names;
mod updatable;
mod updatable_events;
pub mod view;
mod whole_row;
pub mod window;
pub mod window_plan;
pub mod with;
pub mod write;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState, TreeId};
use pg_query::protobuf::{LockingClause, Node, RangeVar};

use self::literals::Literals;
use crate::logical::columns_of;
use crate::paths::{Methods, Planner, Statistics};
use crate::plan::compile;
use crate::plan::permit::{BoundFor, Required, UncheckedPlan};
use crate::plan::{narrow_below, Collated, CursorTable, Expr, ExprKind, Plan, With};
use catalog::access::column_in_address;
use catalog::access::{Guarded, Privileges};
use catalog::cast::has_using_in_place;
use catalog::cluster::Address;
use catalog::sql_body::SqlBody;
use catalog::trigger::Events;
use catalog::{Catalog, RelationKind, RelationRef, Rule, Table, PG_CATALOG};
use syntax::parser::{char_position, NodeEnum};
use types::{Datum, EvalContext, TypeId};

/// Expressions may be nested this deep; further is 54001. The thread's stack has room for it.
pub const EXPRESSION_DEPTH_MAX: usize = 5_000;

/// A name that PL/pgSQL knows and its place among the parameters.
pub trait Variables {
    /// The variable that a name, perhaps qualified by its block's label, means.
    ///
    /// # Errors
    /// 42703, 55000 for a field that a record does not have.
    fn find(&self, names: &[&str]) -> Result<Option<(usize, TypeId, i32)>>;

    /// The collation of the variable that was found there.
    fn collation(&self, _place: usize) -> Collated {
        Collated::default()
    }

    /// What a name means that is a column's too.
    fn conflict(&self) -> Conflict {
        Conflict::Error
    }

    /// What the arguments of a function in SQL may be qualified by.
    fn label(&self) -> Option<&str> {
        None
    }

    /// The names of the fields of a record of that name, once it has any.
    fn fields(&self, _record: &str) -> Option<Vec<String>> {
        None
    }

    /// The table whose rows a trigger may refer to by that name, and whether as they are, rather than
    /// as they were.
    fn rows_named(&self, _name: &str) -> Option<(Arc<Table>, bool)> {
        None
    }

    /// The body in standard SQL that the text at work is a statement of, as the catalog keeps it.
    fn sql_body(&self) -> Option<&SqlBody> {
        None
    }

    /// Whether they are the rows of a rule, which keeps their names as they are.
    fn are_rows_of_rule(&self) -> bool {
        false
    }

    /// The one of these rows that a column means which stands without it.
    fn row_unsaid(&self, _names: &[&str]) -> Option<&'static str> {
        None
    }

    /// Whether such a column may be of either.
    fn are_both_meant(&self) -> bool {
        false
    }
}

/// What a name means that is both a variable's and a column's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflict {
    /// Nothing: 42702.
    #[default]
    Error,
    /// The variable.
    Variable,
    /// The column.
    Column,
}

/// What binding needs besides the statement.
#[derive(Clone, Copy)]
pub struct BindContext<'a> {
    /// The catalog.
    pub catalog: &'a Arc<Catalog>,
    /// The schemas that are searched for names, in order.
    pub search_path: &'a [u32],
    /// Who gives the names: the role that must be allowed to look into the schemas that they name.
    pub role: u32,
    /// For the text of constants.
    pub eval: &'a EvalContext,
    /// The statement's text, which locations refer to.
    pub text: &'a str,
    /// The literals of the text, if its plan is to leave them open.
    pub literals: Option<&'a Literals>,
    /// PL/pgSQL's variables; parameters are theirs then.
    pub variables: Option<&'a dyn Variables>,
}

/// A column that a statement returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TypeId,
    /// The type's modifier.
    pub typmod: i32,
    /// The domain, or the array over one, that its values are of; none if 0.
    pub domain: TypeId,
    /// Its collation.
    pub collation: Collated,
    /// The table and the number of the column that it is, or zeros.
    pub origin: (u32, i16),
}

/// A bound statement.
#[derive(Debug)]
pub struct Bound {
    /// Its rows, for whoever may have them.
    pub plan: UncheckedPlan,
    /// Its columns.
    pub columns: Vec<OutputColumn>,
    /// The tables it names, and how they are to be locked.
    pub locks: Vec<(TreeId, TableLock)>,
    /// Whether it writes.
    pub writes: bool,
    /// What a transaction that only reads refuses it as, if it locks rows that others see.
    pub locks_rows: Option<&'static str>,
    /// A materialized view among what it reads that has no rows yet.
    pub unpopulated: Option<u32>,
    /// Of the query of a cursor, the tables whose rows its own are made of.
    pub cursor_tables: Vec<CursorTable>,
    /// Whether the plan rests on the time at which it was made (`'now'`).
    pub fleeting: bool,
}

/// Binds one statement.
pub struct Binder<'a> {
    cx: BindContext<'a>,
    /// The types of the parameters; [`TypeId::UNKNOWN`] where it is not yet known.
    params: Vec<TypeId>,
    /// Whether further parameters may be met.
    open_params: bool,
    locks: Vec<(TreeId, TableLock)>,
    ctes: Vec<with::Cte>,
    /// The names of those that cannot be named yet.
    ctes_ahead: Vec<String>,
    /// The statements of WITH that write.
    writing: Vec<(usize, Rc<Plan>)>,
    /// Whether a query of the WITH bound last looks at rows of enclosing queries.
    with_escapes: bool,
    /// Whether one of them is at work.
    inside_with: bool,
    /// How many subqueries in expressions stand around what is at work.
    sublinks: usize,
    /// Whether the query at work runs once, as far as is known, or becomes a part of one that does; and
    /// whether the subquery that is bound next may become one.
    runs_once: bool,
    joining: bool,
    depth: usize,
    query_depth: usize,
    /// The fields of rows that queries inside of the statement give as columns of type `record`; the
    /// column's modifier is the place among these.
    records: Vec<Vec<fields::Field>>,
    subqueries: usize,
    /// Whether the text at work comes from the catalog: relations stand in it by oid.
    stored: bool,
    /// The casts and operators of users that it may use, if it may not use all.
    noted: Option<Vec<u32>>,
    /// Whether columns of USING come before all others of the query, as in text that was kept so.
    using_first: bool,
    /// Whether the next alias names all columns by place, dropped ones included.
    positional: bool,
    /// How many outer joins around the item at work may leave its rows out.
    nullable: usize,
    /// The views that are being expanded.
    expanding: Vec<u32>,
    /// The trees by which rows may be looked for, if not by all.
    pub trees_seen: Option<Rc<BTreeSet<TreeId>>>,
    /// What the text names, if that is asked for.
    recorded: Option<fixed::Recorded>,
    /// The queries that are being laid out.
    shown_queries: Option<definition::Shown>,
    /// Who calls functions in the place of whoever runs the statement.
    acting: Option<u32>,
    requires: Vec<Required>,
    unpopulated: Option<u32>,
    /// What the owners of views are asked for on the tables that a write through them reaches.
    through_views: Privileges,
    /// Whose privileges and policies count for what is named now, if not those of whoever runs the
    /// statement: the owner of the view that names it.
    checked_as: Option<u32>,
    /// Whether the text at work is a part of a table that needs no privileges of its own.
    of_table: bool,
    /// The tables whose policies are being bound, the innermost last.
    policies: Vec<u32>,
    /// The rows that the rule at work looks at.
    frame: Option<Rc<rule::Frame<'a>>>,
    /// The relations whose rules are being applied, and to what.
    rewriting: Vec<(u32, Events)>,
    /// The rules whose conditions rows must not meet which the statement that is bound next writes.
    unless: Vec<(&'a Arc<Table>, &'a Rule)>,
    /// What the RETURNING that is bound next stands in the place of, innermost first.
    given_back: Vec<Rc<rule::GivenBack<'a>>>,
    /// Whether `session_replication_role` is `replica`, which decides on the rules that are applied.
    pub replica: bool,
    /// In what the statement stands, if rules can put one alone in its place.
    pub alone: Option<rule::Alone>,
    /// Whether policies are applied; otherwise a statement that they would affect is refused.
    pub row_security: bool,
    /// Whether a table was named that guards its rows.
    rests_on_role: bool,
    /// Whether the plan rests on the time at which it is made (`'now'`).
    fleeting: bool,
    /// Whether the text is not to be run, so that policies are no matter.
    pub names_only: bool,
    /// The locking clauses of the query at work.
    locked: Vec<LockingClause>,
    /// The conditions of items of its FROM that have become parts of it.
    lifted: Vec<Expr>,
    /// Whether the query that is bound next leaves it to INSERT which types its literals and its
    /// parameters are of.
    for_insert: bool,
    /// Whether the query that is bound next is a cursor's, whose rows tell of which rows of tables they
    /// are.
    pub for_cursor: bool,
    cursor_tables: Vec<CursorTable>,
    /// What is known of the data, if the plan is to rest on it.
    pub statistics: Option<&'a dyn Statistics>,
    /// By which ways rows are found and joined.
    pub methods: Methods,
    /// What the outermost of the locking clauses so far is called where rows that others see are
    /// locked.
    locks_rows: Option<&'static str>,
    /// Whether CALL is bound, which names a procedure.
    calling: bool,
    /// Whether the query that is bound next is an item of FROM, which may become a part of the query
    /// around it without reading anything itself.
    as_item: bool,
    /// Whether the query that is bound next is that of EXISTS, whose targets nobody computes.
    exists: bool,
    /// Whether the query that is bound next is to have the keys by which it is correlated as columns,
    /// and whether one around what is at work has.
    keying: bool,
    within_keys: bool,
    /// The keys that it was found to have.
    keys: Option<keys::Keys>,
}

impl<'a> Binder<'a> {
    /// A binder that knows these parameter types (0 or UNKNOWN: to be inferred).
    pub fn new(cx: BindContext<'a>, params: Vec<TypeId>, open_params: bool) -> Binder<'a> {
        let params = params
            .into_iter()
            .map(|ty| if ty.0 == 0 { TypeId::UNKNOWN } else { ty })
            .collect();
        let of_body = cx.variables.and_then(|known| known.sql_body()).is_some();
        let noted = of_body.then(|| cx.catalog.noted_in_text(cx.text)).flatten();
        let using_first = of_body && !has_using_in_place(cx.text);
        Binder {
            cx,
            params,
            open_params,
            locks: Vec::new(),
            ctes: Vec::new(),
            ctes_ahead: Vec::new(),
            writing: Vec::new(),
            with_escapes: false,
            inside_with: false,
            sublinks: 0,
            runs_once: true,
            joining: false,
            depth: 0,
            query_depth: 0,
            records: Vec::new(),
            subqueries: 0,
            stored: of_body,
            noted,
            using_first,
            positional: false,
            nullable: 0,
            expanding: Vec::new(),
            trees_seen: None,
            recorded: None,
            shown_queries: None,
            acting: None,
            requires: Vec::new(),
            unpopulated: None,
            through_views: Privileges::NONE,
            checked_as: None,
            of_table: false,
            policies: Vec::new(),
            frame: None,
            rewriting: Vec::new(),
            unless: Vec::new(),
            given_back: Vec::new(),
            replica: false,
            alone: None,
            row_security: true,
            rests_on_role: false,
            fleeting: false,
            names_only: false,
            lifted: Vec::new(),
            locked: Vec::new(),
            calling: false,
            for_insert: false,
            for_cursor: false,
            as_item: false,
            cursor_tables: Vec::new(),
            exists: false,
            keying: false,
            within_keys: false,
            keys: None,
            locks_rows: None,
            statistics: None,
            methods: Methods::default(),
        }
    }

    /// Who makes plans of what is bound.
    fn planner(&self) -> Planner<'a> {
        Planner {
            statistics: self.statistics,
            chooses: true,
            methods: self.methods,
        }
    }

    /// Binds SELECT, VALUES, INSERT, UPDATE, DELETE or MERGE.
    ///
    /// # Errors
    /// What is wrong with it, with a position.
    pub fn statement(&mut self, node: &NodeEnum) -> Result<Bound> {
        let (plan, columns, writes) = match node {
            NodeEnum::SelectStmt(select) => {
                let query = self.select(select, None)?;
                (self.plan_of(query.body)?, query.columns, false)
            }
            NodeEnum::InsertStmt(_) | NodeEnum::UpdateStmt(_) | NodeEnum::DeleteStmt(_) => {
                self.written_statement(node, self.alone)?
            }
            NodeEnum::MergeStmt(merge) => self.merge_statement(merge)?,
            _ => return Err(Error::internal("no statement with rows")),
        };
        let parts = std::mem::take(&mut self.writing);
        let (plan, writes) = match parts.is_empty() {
            true => (plan, writes),
            false => {
                let (body, counted) = (Rc::new(plan), !writes);
                let with = With {
                    parts,
                    body,
                    counted,
                };
                (Plan::With(Box::new(with)), true)
            }
        };
        Ok(self.bound(plan, columns, writes))
    }

    /// A plan with the locks and privileges that binding it has found to be needed.
    fn bound(&mut self, mut plan: Plan, columns: Vec<OutputColumn>, writes: bool) -> Bound {
        if !self.names_only {
            narrow_below(&mut plan);
        }
        // What was bound for its names alone is for nobody to run.
        const NOBODY: u32 = 0;
        let bound_for = (self.rests_on_role || self.names_only).then_some(BoundFor {
            role: match self.names_only {
                true => NOBODY,
                false => self.cx.role,
            },
            row_security: self.row_security,
            replica: self.replica,
        });
        Bound {
            plan: UncheckedPlan::new(plan, std::mem::take(&mut self.requires), bound_for),
            columns,
            locks: std::mem::take(&mut self.locks),
            writes,
            locks_rows: self.locks_rows.take(),
            unpopulated: self.unpopulated.take(),
            cursor_tables: std::mem::take(&mut self.cursor_tables),
            fleeting: self.fleeting,
        }
    }

    /// The types of the parameters, once the statement is bound.
    ///
    /// # Errors
    /// 42P18 for one whose type nothing says.
    pub fn finish_params(&self) -> Result<Vec<TypeId>> {
        match self.params.iter().position(|ty| *ty == TypeId::UNKNOWN) {
            None => Ok(self.params.clone()),
            Some(place) => Err(Error::new(
                SqlState::INDETERMINATE_DATATYPE,
                format!("could not determine data type of parameter ${}", place + 1),
            )),
        }
    }

    /// An error at a location of the statement.
    fn error(&self, state: SqlState, message: impl Into<String>, location: i32) -> Error {
        self.place(Error::new(state, message), location)
    }

    /// 42883 for what cannot be sorted by.
    fn check_sortable(&self, ty: TypeId, location: i32) -> Result<()> {
        match self.holds_of_parts(ty, TypeId::is_sortable) {
            true => Ok(()),
            false => {
                let message = format!("could not identify an ordering operator for type {ty}");
                let error = self.error(SqlState::UNDEFINED_FUNCTION, message, location);
                Err(error.with_hint("Use an explicit ordering operator or modify the query."))
            }
        }
    }

    /// The same error with a position, unless it has one.
    fn place(&self, error: Error, location: i32) -> Error {
        match char_position(self.cx.text, location) {
            Some(position) if error.fields().position.is_none() => error.at(position),
            _ => error,
        }
    }

    /// What is wrong with a choice among functions or operators: 42804, which has no position, where nothing
    /// says what a polymorphic type is.
    fn place_choice(&self, error: Error, location: i32) -> Error {
        match error.state() {
            SqlState::INDETERMINATE_DATATYPE => {
                Error::new(SqlState::DATATYPE_MISMATCH, error.message())
            }
            _ => self.place(error, location),
        }
    }

    fn unsupported(&self, feature: &str, location: i32) -> Error {
        self.place(Error::unsupported(feature), location)
    }

    /// Counts a level of nesting while `f` runs.
    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= EXPRESSION_DEPTH_MAX {
            return Err(Error::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                "stack depth limit exceeded",
            )
            .with_hint("Write the statement with less nesting."));
        }
        self.depth += 1;
        let outcome = f(self);
        self.depth -= 1;
        outcome
    }

    /// The table that a FROM item or the target of a statement names.
    fn table(&mut self, range: &RangeVar, lock: TableLock) -> Result<Arc<Table>> {
        let table = match self.by_oid(range)? {
            Some(table) => table,
            None => find_table(&self.cx, range).map_err(|error| self.ahead(range, error))?,
        };
        if table.kind != RelationKind::System {
            self.lock(table.tree, lock);
        }
        match lock {
            TableLock::AccessShare => self.require_of(&table, Privileges::SELECT, 0),
            TableLock::RowShare => {
                self.require_of(&table, Privileges::SELECT, 0);
                self.require_of(&table, Privileges::UPDATE, 0);
            }
            // What is written needs depends on how.
            _ => {}
        }
        Ok(table)
    }

    /// Notes that the statement needs a privilege on a column of a relation; on any, for 0.
    fn require_of(&mut self, table: &Table, privileges: Privileges, column: u32) {
        self.require(Guarded::Table, table.oid, privileges, column);
    }

    /// Notes that the statement looks at a column: its table's oid and its number there.
    fn looks_at(&mut self, origin: (u32, i16)) {
        if origin.0 != 0 && origin.1 != 0 {
            let column = column_in_address(origin.1);
            if let Some(recorded) = &mut self.recorded {
                recorded.looked_at.push(origin);
            }
            self.require(Guarded::Table, origin.0, Privileges::SELECT, column);
        }
    }

    fn require(&mut self, kind: Guarded, object: u32, privileges: Privileges, column: u32) {
        if self.of_table {
            // The statement needs a privilege on the table anyway.
            return;
        }
        let required = Required {
            kind,
            object,
            privileges,
            column,
            view_owner: self.checked_as,
            over: false,
        };
        self.note(required);
    }

    fn note(&mut self, required: Required) {
        if !self.requires.contains(&required) {
            self.requires.push(required);
        }
    }

    /// Notes that the statement calls a function, if something was said of who may. Whoever runs the
    /// statement must, below a view too.
    fn calls(&mut self, function: u32) {
        self.calls_over(function, false);
    }

    /// The same, which is an aggregate with OVER or not.
    fn calls_over(&mut self, function: u32, over: bool) {
        let address = Address::of(Address::PROC, function);
        if !self.cx.catalog.acls.contains_key(&address) {
            return;
        }
        let required = Required {
            kind: Guarded::Function,
            object: function,
            privileges: Privileges::EXECUTE,
            column: 0,
            view_owner: self.acting,
            over,
        };
        self.note(required);
    }

    fn lock(&mut self, tree: TreeId, mode: TableLock) {
        match self.locks.iter_mut().find(|lock| lock.0 == tree) {
            Some(lock) => lock.1 = lock.1.max(mode),
            None => self.locks.push((tree, mode)),
        }
    }
}

/// The table that a name means.
///
/// # Errors
/// 42P01, 3F000, 42809 with a position.
pub fn find_table(cx: &BindContext<'_>, range: &RangeVar) -> Result<Arc<Table>> {
    let place = |error: Error| match char_position(cx.text, range.location) {
        Some(position) => error.at(position),
        None => error,
    };
    match find_relation(cx, range)? {
        Some(RelationRef::Table(at)) => Ok(cx.catalog.tables[at].clone()),
        Some(RelationRef::Index(..)) => Err(place(
            Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot open relation \"{}\"", range.relname),
            )
            .with_detail("This operation is not supported for indexes."),
        )),
        None => Err(place(Error::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"{}\" does not exist", qualified(range)),
        ))),
    }
}

/// The name as error messages show it.
pub fn qualified(range: &RangeVar) -> String {
    match range.schemaname.as_str() {
        "" => range.relname.clone(),
        schema => format!("{schema}.{}", range.relname),
    }
}

/// What a name means, if anything.
///
/// # Errors
/// 0A000 for a name in another database, 42501 for one in a schema that the role may not look into.
pub fn find_relation(cx: &BindContext<'_>, range: &RangeVar) -> Result<Option<RelationRef>> {
    let place = |error: Error| match char_position(cx.text, range.location) {
        Some(position) => error.at(position),
        None => error,
    };
    if !range.catalogname.is_empty() && range.catalogname != cx.catalog.database.name {
        return Err(place(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "cross-database references are not implemented: \"{}.{}.{}\"",
                range.catalogname, range.schemaname, range.relname
            ),
        )));
    }
    if !range.schemaname.is_empty() {
        let Some(schema) = cx.catalog.schema(&range.schemaname) else {
            return Ok(None);
        };
        cx.catalog.check_look_into(cx.role, schema).map_err(place)?;
        return Ok(cx.catalog.relation(schema.oid, &range.relname));
    }
    let implicit = (!cx.search_path.contains(&PG_CATALOG)).then_some(PG_CATALOG);
    // What is temporary hides even what is of the system.
    let temporary = cx.search_path.first().copied();
    let temporary = temporary.filter(|schema| catalog::local::is_local(*schema));
    Ok(temporary
        .into_iter()
        .chain(implicit)
        .chain(cx.search_path.iter().copied())
        .find_map(|schema| cx.catalog.relation(schema, &range.relname)))
}

/// The node inside a node.
fn inner(node: &Node) -> Result<&NodeEnum> {
    node.node
        .as_ref()
        .ok_or_else(|| Error::internal("a parse tree with an empty node"))
}

/// The node inside an optional box.
fn boxed(node: &Option<Box<Node>>) -> Result<&NodeEnum> {
    inner(
        node.as_deref()
            .ok_or_else(|| Error::internal("a parse tree without an expected node"))?,
    )
}

/// The strings of a list of String nodes.
fn strings(nodes: &[Node]) -> Vec<&str> {
    nodes
        .iter()
        .filter_map(|node| match &node.node {
            Some(NodeEnum::String(string)) => Some(string.sval.as_str()),
            _ => None,
        })
        .collect()
}

impl Binder<'_> {
    /// Binds what EXECUTE gives for a parameter of a type: a plan of one row with one value.
    ///
    /// # Errors
    /// As [`Binder::statement`].
    pub fn execute_parameter(
        &mut self,
        node: &Node,
        number: usize,
        ty: TypeId,
    ) -> Result<UncheckedPlan> {
        let scope = scope::Scope::default();
        let expr = self.node(node, &scope, expr::Place::EXECUTE_PARAMETER)?;
        let (from, location) = (expr.ty, expr.location.0);
        let context = functions::CastContext::Assignment;
        let Ok(expr) = self.try_coerce(expr, ty, -1, context)? else {
            return Err(self
                .error(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                    "parameter ${number} of type {from} cannot be coerced to the expected type {ty}"
                ),
                    location,
                )
                .with_hint("You will need to rewrite or cast the expression."));
        };
        let row = Plan::Values(vec![Vec::new()]);
        let plan = Plan::Project(Rc::new(row), vec![compile(&expr)]);
        Ok(self.bound(plan, Vec::new(), false).plan)
    }

    /// Binds the default of a column as it is written; whether it says more than that there is none.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_default(&mut self, column: &catalog::Column, node: &Node) -> Result<bool> {
        let scope = scope::Scope::default();
        let bound = self.node(node, &scope, expr::Place::DEFAULT)?;
        let from = bound.ty;
        let context = functions::CastContext::Assignment;
        let (ty, typmod) = column.declared();
        match self.try_coerce(bound, ty, typmod, context)? {
            // One that must be fitted to a modifier or a domain is kept, as in PostgreSQL.
            Ok(value) => {
                let is_null = matches!(&value.kind, ExprKind::Const(Datum::Null, _));
                Ok(!is_null || typmod >= 0)
            }
            Err(_) => Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "column \"{}\" is of type {} but default expression is of type {from}",
                    column.name, ty
                ),
            )
            .with_hint("You will need to rewrite or cast the expression.")),
        }
    }

    /// Binds what a generated column is computed from, as it is written; returns the places of the
    /// columns that it names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_generated(
        &mut self,
        table: &Arc<Table>,
        place: usize,
        node: &Node,
    ) -> Result<Vec<usize>> {
        let scope = write::target_scope(table, &table.name);
        let column = &table.columns[place];
        let bound = self.node(node, &scope, expr::Place::GENERATED)?;
        let (from, location) = (bound.ty, bound.location.0);
        let context = functions::CastContext::Assignment;
        let (ty, typmod) = column.declared();
        let Ok(value) = self.try_coerce(bound, ty, typmod, context)? else {
            return Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "column \"{}\" is of type {} but generation expression is of type {from}",
                    column.name, ty
                ),
            )
            .with_hint("You will need to rewrite or cast the expression."));
        };
        let places = columns_of(&value);
        if let Some(generated) = places.iter().find(|at| table.columns[**at].generated) {
            let name = &table.columns[*generated].name;
            let mut location = location;
            value.visit(&mut |part| match part.kind {
                crate::plan::ExprKind::Column(at) if at == *generated => {
                    location = part.location.0;
                }
                _ => {}
            });
            let message =
                format!("cannot use generated column \"{name}\" in column generation expression");
            return Err(self
                .error(SqlState::of("42P17"), message, location)
                .with_detail("A generated column cannot reference another generated column."));
        }
        let changes = |part: &crate::plan::Expr| match &part.kind {
            crate::plan::ExprKind::Call(function, ..) => {
                function.0.volatility != functions::Volatility::Immutable
            }
            _ => part.is_routine_of(b"sv"),
        };
        match value.any(&changes) {
            false => Ok(places),
            true => Err(Error::new(
                SqlState::of("42P17"),
                "generation expression is not immutable",
            )),
        }
    }

    /// Binds a CHECK constraint of a table as it is written; returns the places of the columns
    /// that it names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_check(&mut self, table: &Arc<Table>, node: &Node) -> Result<Vec<usize>> {
        let scope = write::target_scope(table, &table.name);
        let bound = self.node(node, &scope, expr::Place::CHECK)?;
        let condition = self.condition(bound, "CHECK")?;
        Ok(columns_of(&condition))
    }
}
