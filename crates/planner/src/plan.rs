//! What a statement means, bound to names and types: plans of rows and expressions over them.
//!
//! The binder makes [`Expr`] trees, which are easy to look into (keys, groups,
//! types), and compiles each to a flat [`Program`] when its place is settled; the executor runs a tree of [`Plan`] nodes. A row is a vector of values; expressions name
//! columns by their place in it.

mod access;
mod adjacent;
mod aggregate;
mod collated;
mod domain;
mod entries;
pub mod foreign;
mod inverted;
pub mod keyed;
mod literal;
mod members;
mod narrow;
pub mod partition;
pub mod permit;
pub mod program;
mod routine;
mod same;
mod settled;
mod together;
pub mod trigger;
mod uses;
mod window;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::engine::{LockWait, RowLock};

use catalog::{Catalog, Index, Table};
use functions::collator::Collating;
use functions::{Coercion, Function, Volatility};
use types::{Datum, TypeId};

pub use access::{Access, SlowerWay, Way};
pub use aggregate::{Agg, Finish, OwnAggregate};
pub use collated::{Collated, Derivation, UsedCollation};
pub use domain::DomainTest;
pub use entries::{EntryRule, ExclusionRule, KeyValue, Search};
pub use foreign::Rules;
pub use inverted::{Asked, InvertedAccess, Term};
pub use literal::{Literal, Taken};
pub use narrow::narrow_below;
pub use program::{compile, Program};
pub use routine::{OwnTest, RoutineCall};
pub use together::KnownTogether;
pub use uses::Uses;
pub use window::{
    Bound, Exclusion, Frame, FrameMode, WindowCall, WindowFunctionPlan, WindowName, WindowPlan,
    WindowSpec, Windowed,
};

/// A row in memory.
pub type Row = Vec<Datum>;

/// A location in the statement's text, in bytes. Negative: unknown.
#[derive(Clone, Copy, Debug)]
pub struct Location(pub i32);

/// A function, compared by identity.
#[derive(Clone, Copy, Debug)]
pub struct Func(pub &'static Function);

impl PartialEq for Func {
    fn eq(&self, other: &Func) -> bool {
        self.0.oid == other.0.oid && self.0.variadic == other.0.variadic
    }
}

/// How a value changes its type, and whether someone wrote that it should.
#[derive(Clone, Copy, Debug)]
pub struct How(pub Coercion, pub bool);

/// An expression with its type.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type.
    pub ty: TypeId,
    /// The type's modifier, or -1.
    pub typmod: i32,
    /// Where it stands.
    pub location: Location,
    /// The domain, or the array over one, that its value is known to be of; none if 0. Its type is
    /// the base type of that.
    pub domain: TypeId,
    /// Its collation, if it is a text.
    pub collation: Collated,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A value, and the literal of the statement's text that it is, if it is one.
    Const(Datum, Option<Rc<Literal>>),
    /// A column of the row.
    Column(usize),
    /// A column of the row of an enclosing query, so many levels up (from 1).
    Outer(usize, usize),
    /// A parameter, from 0.
    Param(usize),
    /// A function's result. The types are those of the arguments as passed.
    Call(Func, Vec<Expr>, Rc<[TypeId]>),
    /// A set-returning function's rows; in a target list, in ORDER BY and in GROUP BY.
    SetCall(Func, Vec<Expr>, Rc<[TypeId]>),
    /// A value of another type.
    Coerce(Box<Expr>, How),
    /// The same value, made to fit the modifier; whether explicitly.
    Fit(Box<Expr>, bool),
    /// The same value under a collation, explicitly.
    Collate(Box<Expr>, Rc<UsedCollation>),
    /// What a collation makes of a text.
    Collating(Box<Expr>, Collating, Rc<UsedCollation>),
    /// The same value, tested to be one of a domain; whether explicitly.
    Domain(Box<Expr>, Rc<DomainTest>, bool),
    /// All are true.
    And(Vec<Expr>),
    /// One is true.
    Or(Vec<Expr>),
    /// It is false.
    Not(Box<Expr>),
    /// The first result whose condition is true, or the last.
    Case(Vec<(Expr, Expr)>, Box<Expr>),
    /// What `CASE x` compares with, inside its conditions.
    CaseValue(Box<Expr>, Box<Expr>),
    /// The value of the innermost `CaseValue`.
    CaseInput,
    /// The first that is not NULL.
    Coalesce(Vec<Expr>),
    /// The greatest (true) or the least.
    Extreme(Vec<Expr>, bool),
    /// NULL when the comparison holds, else the first operand.
    NullIf(Box<Expr>, Func, Vec<Expr>, Rc<[TypeId]>),
    /// Is it NULL (true), or is it not?
    IsNull(Box<Expr>, bool),
    /// Is it that truth value (none: unknown)? The second flag negates.
    IsTruth(Box<Expr>, Option<bool>, bool),
    /// IS DISTINCT FROM (true) or NOT; the function is the equality.
    Distinct(Box<Expr>, Box<Expr>, Func, Rc<[TypeId]>, bool),
    /// ANY (false) or ALL (true) elements of an array compare so with the value.
    AnyArray(Box<Expr>, Box<Expr>, Func, Rc<[TypeId]>, bool),
    /// The same by an operator of a user's.
    AnyOwn(Box<Expr>, Box<Expr>, Rc<OwnTest>),
    /// An array of these elements.
    Array(Vec<Expr>, TypeId),
    /// A row value, and the names of its fields, if it is the row of an item of FROM.
    Record(Vec<Expr>, Option<Arc<[String]>>),
    /// A subquery, what it compares with, and the columns of this query's rows that it looks at,
    /// each with its place in the row that the subquery sees.
    Sub(Rc<SubQuery>, Option<Box<Expr>>, Vec<(usize, Expr)>),
    /// An aggregate, before its place in the aggregation's row is known.
    Aggregate(Box<AggregateCall>),
    /// GROUPING of expressions that are grouped by, before its place in the aggregation's row is
    /// known.
    Grouping(Vec<Expr>),
    /// A window function, before its place in the rows of its window is known.
    Window(Box<WindowCall>),
    /// An element of an array.
    Subscript(Box<Expr>, Box<Expr>),
    /// What a routine gives; one that gives rows stands where [`ExprKind::SetCall`] does.
    Routine(Rc<RoutineCall>, Vec<Expr>),
}

/// A call of an aggregate.
#[derive(Clone, Debug)]
pub struct AggregateCall {
    /// Which.
    pub aggregate: Agg,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// Their types.
    pub types: Vec<TypeId>,
    /// Whether equal arguments count once.
    pub distinct: bool,
    /// FILTER.
    pub filter: Option<Expr>,
    /// ORDER BY: expression, descending, NULLs first.
    pub order: Vec<(Expr, bool, bool)>,
}

/// What a subquery in an expression gives.
#[derive(Clone, Debug)]
pub enum SubKind {
    /// Its only value.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// Whether the value compares so with any of its rows (true: with all).
    Any(Func, bool),
    /// Whether the row equals one of its rows, column by column.
    AnyRow(Rc<[(Func, Rc<[TypeId]>)]>),
    /// Its rows as an array.
    Array(TypeId),
    /// Its only row, as a record of these types.
    Row(Rc<[TypeId]>),
    /// Whether a condition holds for the row followed by any of its rows (true: by all); if the condition is
    /// an operator, how that is shown.
    Compare(Rc<Program>, bool, Option<String>),
}

/// A subquery in an expression.
#[derive(Debug)]
pub struct SubQuery {
    /// What it gives.
    pub kind: SubKind,
    /// Its rows.
    pub plan: Rc<Plan>,
    /// The types of the comparison's operands.
    pub types: Rc<[TypeId]>,
    /// Whether it looks at rows of enclosing queries; if not, its value is computed once.
    pub correlated: bool,
    /// Whether it looks further out than at the row of the query that it stands in.
    pub deep: bool,
    /// Its number within the statement.
    pub number: usize,
    /// Its rows for all rows around it, if they can be had without looking at one.
    pub keyed: Option<keyed::Keyed>,
}

/// Which columns of a table a plan looks at; shared with the binder, which finds out.
pub type Needed = Rc<RefCell<Vec<bool>>>;

/// A scan of a table, by its own order or through an index.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The table.
    pub table: Arc<Table>,
    /// The place of the secondary index among the table's indexes; none: the table itself.
    pub index: Option<usize>,
    /// Where to look.
    pub access: Access,
    /// The inverted index by which to look instead.
    pub inverted: Option<Rc<InvertedAccess>>,
    /// Ways of which each may lead to rows that are wanted, to be gone instead; none where there is one.
    pub alternatives: Vec<Way>,
    /// Ways for whoever wants few rows in the order of one; forgotten once the order is known.
    pub slower: Option<Rc<[SlowerWay]>>,
    /// The columns that are decoded.
    pub needed: Needed,
    /// The columns that its rows have, in ascending order; none: all of the table's. What it tests itself
    /// is over these.
    pub kept: Option<Box<[usize]>>,
    /// What a row must meet.
    pub filter: Option<Program>,
    /// Whether the row's key follows its columns.
    pub with_key: bool,
    /// Whether the oid of the table follows, behind the key.
    pub with_oid: bool,
    /// What is below it, if it is a partitioned table; the planner puts their scans in its place.
    pub partitions: Option<Rc<partition::Partitions>>,
    /// The cursor on whose row it is, if that alone is wanted.
    pub current_of: Option<CurrentOf>,
    /// Whether it goes from large keys to small ones.
    pub backward: bool,
    /// The computed indexes of the table; once its conditions are known, those that have every row
    /// which meets them.
    pub computed: Option<Rc<[ComputedAccess]>>,
    /// What is known of several of the table's columns together.
    pub together: Option<Rc<[KnownTogether]>>,
    /// What was expected of it when it was planned.
    pub expected: Option<Box<Expected>>,
    /// What the statement calls the table, if not by its name.
    pub alias: Option<Rc<str>>,
}

/// What is expected of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// How many rows it gives.
    pub rows: f64,
    /// What all of them cost; one is a page that is read in sequence.
    pub cost: f64,
}

/// A computed index as the planner sees it.
#[derive(Clone, Debug)]
pub struct ComputedAccess {
    /// Its place among the table's indexes.
    pub index: usize,
    /// Its keys, over the columns of the table.
    pub keys: Vec<Expr>,
    /// What a row must meet to have an entry.
    pub condition: Vec<Expr>,
}

impl Scan {
    /// The column of the table that a column of its rows is; none for its key and the oid.
    pub fn table_column(&self, place: usize) -> Option<usize> {
        match &self.kept {
            Some(kept) => kept.get(place).copied(),
            None => (place < self.table.columns.len()).then_some(place),
        }
    }

    /// The index that it goes by: the primary key, a secondary index, or none.
    pub fn by_index(&self) -> Option<&Index> {
        match self.index {
            Some(place) => self.table.indexes.get(place),
            None => self.table.primary_key(),
        }
    }
}

/// How two inputs are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    /// The left rows that have a pair.
    Semi,
    /// The left rows that have none.
    Anti,
}

/// A join.
#[derive(Debug)]
pub struct Join {
    /// How.
    pub kind: JoinKind,
    /// The left input.
    pub left: Rc<Plan>,
    /// How many columns it has.
    pub left_width: usize,
    /// The right input.
    pub right: Rc<Plan>,
    /// How many columns it has.
    pub right_width: usize,
    /// Values of the left and the right row that must be equal, with their type.
    pub hash: Vec<(Program, Program, TypeId)>,
    /// What a pair must meet, equalities included.
    pub condition: Option<Program>,
    /// What a pair whose values in `hash` are equal must meet besides.
    pub rest: Option<Program>,
    /// The right rows for one left row, which it sees as the innermost enclosing query's: instead
    /// of all right rows, as long as few left rows have come.
    pub lookup: Option<Rc<Plan>>,
    /// How many left rows do that before the right input is read after all.
    pub lookups: usize,
    /// Whether the right input looks at the left row, and then how many columns come before it in the
    /// row that it sees.
    pub lateral: Option<usize>,
    /// The columns of a pair that are handed on, in ascending order; none: all. Of a semi-join they are
    /// those of the left row.
    pub kept: Option<Box<[usize]>>,
    /// What was expected of it when it was planned.
    pub expected: Option<Expected>,
}

impl Join {
    /// The place in the pair of a column of its rows.
    pub fn pair_column(&self, place: usize) -> Option<usize> {
        match &self.kept {
            Some(kept) => kept.get(place).copied(),
            None => Some(place),
        }
    }
}

/// One aggregate of an aggregation.
#[derive(Debug)]
pub struct AggregatePlan {
    /// Which.
    pub aggregate: Agg,
    /// Its arguments.
    pub args: Vec<Program>,
    /// Their types.
    pub types: Vec<TypeId>,
    /// Whether equal arguments count once.
    pub distinct: bool,
    /// FILTER.
    pub filter: Option<Program>,
    /// ORDER BY.
    pub order: Vec<SortKey>,
}

/// A set of columns that rows are grouped by; the others are NULL in its groups. Without columns
/// there is one group, even without rows.
#[derive(Debug)]
pub struct GroupingSet {
    /// The places of the columns among all that are grouped by.
    pub columns: Vec<usize>,
    /// What GROUPING gives.
    pub answers: Vec<i32>,
}

/// One key of a sort.
#[derive(Debug)]
pub struct SortKey {
    /// The value.
    pub value: Program,
    /// Its type.
    pub ty: TypeId,
    /// Whether large values come first.
    pub descending: bool,
    /// Whether NULLs come first.
    pub nulls_first: bool,
}

/// How two inputs with the same columns are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SetOperation {
    Union,
    Intersect,
    Except,
}

/// Rows, and how they come about.
#[derive(Debug)]
pub enum Plan {
    /// Rows that are computed.
    Values(Vec<Vec<Program>>),
    /// Rows of a table.
    Scan(Scan),
    /// Rows of a table of `pg_catalog`; with a column and its value, only those that have it.
    System(Arc<Table>, Arc<Catalog>, Option<(usize, Program)>),
    /// Rows of a set-returning function.
    Function {
        /// Which.
        function: Func,
        /// Its arguments.
        args: Vec<Program>,
        /// Their types.
        types: Rc<[TypeId]>,
        /// The type of its rows.
        result: TypeId,
        /// How many columns a row has that is NULL as a whole.
        width: usize,
        /// WITH ORDINALITY.
        ordinality: bool,
    },
    /// Rows of several plans side by side, each of so many columns, NULL where it has ended; and their
    /// number, if that is asked for.
    Beside(Vec<(Rc<Plan>, usize)>, bool),
    /// Rows of a routine.
    Routine {
        /// Which.
        call: Rc<RoutineCall>,
        /// Its arguments.
        args: Vec<Program>,
        /// WITH ORDINALITY.
        ordinality: bool,
    },
    /// The rows that meet a condition.
    Filter(Rc<Plan>, Program),
    /// All rows if a condition holds, which is the same for all of them; else none.
    Once(Rc<Plan>, Program),
    /// Other columns.
    Project(Rc<Plan>, Vec<Program>),
    /// Other columns, some of which are sets.
    ProjectSet(Rc<Plan>, Vec<SetColumn>),
    /// Pairs of rows.
    Join(Box<Join>),
    /// The same rows, each followed by what window functions make of it.
    Window(Box<WindowPlan>),
    /// One row a group: the groups' values, then the aggregates, then what GROUPING gives.
    Aggregate {
        /// What is grouped.
        input: Rc<Plan>,
        /// The groups' values and their types.
        groups: Vec<(Program, TypeId)>,
        /// The aggregates.
        aggregates: Vec<AggregatePlan>,
        /// The sets by which each row is grouped, one after the other.
        sets: Vec<GroupingSet>,
    },
    /// In order.
    Sort(Rc<Plan>, Vec<SortKey>),
    /// Only the first row of those that agree in these columns. The input need not be sorted.
    Distinct(Rc<Plan>, Vec<(usize, TypeId)>),
    /// The first columns only.
    Trim(Rc<Plan>, usize),
    /// At most so many rows, after skipping some, and those behind the last one that are equal to it in
    /// these values.
    Limit(
        Rc<Plan>,
        Option<Program>,
        Option<Program>,
        Vec<(Program, TypeId)>,
    ),
    /// UNION of two or more, INTERSECT, EXCEPT of two; whether ALL.
    SetOperation(SetOperation, bool, Vec<Plan>, Vec<TypeId>),
    /// Rows of a WITH query, which runs once.
    Shared(usize, Rc<Plan>),
    /// Rows of a query that names itself, of which a [`Plan::Shared`] is made.
    Recursive(Box<Recursive>),
    /// The rows that the last step of a recursion gave.
    Working(usize),
    /// The rows that the statement has written which set off the trigger at work: as they are, or as
    /// they were.
    Transition(bool),
    /// A query whose WITH looks at rows of enclosing queries: the subqueries with these numbers are
    /// computed anew each time.
    Anew(std::ops::Range<usize>, Rc<Plan>),
    /// A statement with statements in WITH that write.
    With(Box<With>),
    /// FOR UPDATE and its kin: locks the row whose key stands in that column.
    Lock(Rc<Plan>, Vec<LockRows>),
    /// INSERT.
    Insert(Box<Insert>),
    /// UPDATE.
    Update(Box<Update>),
    /// DELETE.
    Delete(Box<Delete>),
    /// A MERGE.
    Merge(Box<Merge>),
    /// What rules make of a statement.
    Rewritten(Box<Rewritten>),
}

impl Plan {
    /// The input whose columns are this node's own, each at its place: a node that only leaves out rows,
    /// puts them in order, or drops the last columns.
    pub fn same_columns(&self) -> Option<&Plan> {
        match self {
            Plan::Filter(input, _)
            | Plan::Once(input, _)
            | Plan::Sort(input, _)
            | Plan::Distinct(input, _)
            | Plan::Trim(input, _)
            | Plan::Limit(input, ..)
            | Plan::Lock(input, _)
            | Plan::Anew(_, input)
            | Plan::Shared(_, input) => Some(input),
            _ => None,
        }
    }
}

/// WITH RECURSIVE: the rows of `first`, then those of `step` over them, and so on until a step gives
/// none.
#[derive(Debug)]
pub struct Recursive {
    /// Its number within the statement.
    pub number: usize,
    /// UNION ALL; otherwise rows that were there before are left out.
    pub all: bool,
    /// Where it begins.
    pub first: Rc<Plan>,
    /// What it does with the rows of the step before, which are a [`Plan::Working`].
    pub step: Rc<Plan>,
    /// The numbers of the subqueries of the step, whose values change from step to step.
    pub inside: std::ops::Range<usize>,
    /// The types of its columns.
    pub types: Vec<TypeId>,
}

/// A statement with statements in WITH that write.
#[derive(Debug)]
pub struct With {
    /// Those, with their numbers.
    pub parts: Vec<(usize, Rc<Plan>)>,
    /// The statement.
    pub body: Rc<Plan>,
    /// Whether the rows it gives are counted, rather than those that it writes.
    pub counted: bool,
}

/// The statements that rules make of one. Each sees what those before it have done.
#[derive(Debug)]
pub struct Rewritten {
    /// They, in their order.
    pub statements: Vec<Rc<Plan>>,
    /// The place of the one whose rows are counted.
    pub tagged: Option<usize>,
    /// The place of the one whose rows are given.
    pub giving: Option<usize>,
}

/// A column of a [`Plan::ProjectSet`].
#[derive(Debug)]
pub enum SetColumn {
    /// One value a row.
    One(Program),
    /// A set-returning function with its arguments, their types, its result.
    Set(Func, Vec<Program>, Rc<[TypeId]>, TypeId),
    /// A routine that gives rows.
    Routine(Rc<RoutineCall>, Vec<Program>),
}

/// The cursor that WHERE CURRENT OF names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CurrentOf {
    /// By its name.
    Named(Rc<str>),
    /// By a variable of type `refcursor`: its parameter, and what it is called.
    Variable(usize, Rc<str>),
}

/// A table whose rows a cursor is on: behind its columns, and those of the tables before, a row has the key of
/// the table's row and the oid of the table, or of the partition, that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorTable {
    /// The oid of what the query names.
    pub table: u32,
}

/// What a [`Plan::Lock`] does for one table.
#[derive(Debug)]
pub struct LockRows {
    /// The table.
    pub table: Arc<Table>,
    /// Where its columns begin in the row; the key stands after them.
    pub start: usize,
    /// How strongly.
    pub strength: RowLock,
    /// When it is held by another.
    pub wait: LockWait,
    /// The condition to check again.
    pub recheck: Option<Program>,
    /// What is below it, if it is a partitioned table.
    pub partitions: Option<Rc<partition::Partitions>>,
}

/// What writing a table must see to.
#[derive(Debug, Default)]
pub struct Target {
    /// The table.
    pub table: Arc<Table>,
    /// Its generated columns: place and value over the new row.
    pub generated: Vec<(usize, Program)>,
    /// What policies ask of new rows, as INSERT or UPDATE writes them.
    pub policy_checks: Vec<PolicyCheck>,
    /// The conditions of views with CHECK OPTION: name and condition over the new row.
    pub view_checks: Vec<(String, Program)>,
    /// Its CHECK constraints: name and condition over the new row.
    pub checks: Vec<(String, Program)>,
    /// How entries of its computed indexes are made.
    pub entries: Rc<[EntryRule]>,
    /// The foreign keys that may be touched, if any.
    pub rules: Option<Rc<Rules>>,
    /// The triggers that may be set off, if any.
    pub triggers: Option<Rc<trigger::Triggers>>,
    /// What is returned of each row.
    pub returning: Option<Vec<Program>>,
    /// What it asks of its rows for being a partition, if it is one.
    pub partition_check: Option<Rc<partition::PartitionCheck>>,
    /// What is done with each partition, if it is a partitioned table.
    pub routes: Option<Rc<partition::Routes>>,
    /// The partitioned table through which it is written: policies, ON CONFLICT and messages are about rows
    /// of that.
    pub through: Option<partition::Through>,
}

/// What policies ask of a row that is written.
#[derive(Clone, Debug)]
pub struct PolicyCheck {
    /// The name of the policy, if it is one that holds rows back.
    pub policy: Option<String>,
    /// The condition over the row; NULL is as bad as false.
    pub condition: Program,
}

/// INSERT.
#[derive(Debug)]
pub struct Insert {
    /// The table.
    pub target: Target,
    /// The rows, as wide as the table's own.
    pub input: Rc<Plan>,
    /// ON CONFLICT.
    pub conflict: Option<Conflict>,
}

/// ON CONFLICT.
#[derive(Debug, Default)]
pub struct Conflict {
    /// The indexes that may conflict, by their places; none: any.
    pub indexes: Option<Vec<usize>>,
    /// DO UPDATE, over the old row followed by the excluded one; none: DO NOTHING.
    pub set: Option<Assignments>,
    /// Its WHERE.
    pub condition: Option<Program>,
    /// Whether DO UPDATE sets columns of a key.
    pub sets_keys: bool,
    /// What policies ask of the row in the way before it may be changed.
    pub old_checks: Vec<PolicyCheck>,
    /// What they ask of what becomes of it.
    pub new_checks: Vec<PolicyCheck>,
}

/// SET.
#[derive(Clone, Debug, Default)]
pub struct Assignments {
    /// Rows that several columns are set from: each is computed once, and stands as a value behind
    /// the columns of the row that the others look at.
    pub rows: Vec<Program>,
    /// How many columns come before those.
    pub width: usize,
    /// Column and value.
    pub columns: Vec<(usize, Program)>,
}

/// MERGE.
#[derive(Debug)]
pub struct Merge {
    /// The table.
    pub table: Arc<Table>,
    /// Rows: those of the source, then the table's columns and its key, all NULL if none matches.
    pub input: Rc<Plan>,
    /// How many columns they have of the table. All that follows is over rows in which these come first.
    pub width: usize,
    /// What makes a row match, checked again on one that was changed meanwhile.
    pub recheck: Option<Program>,
    /// What is done for rows that match: the first whose condition is met.
    pub matched: Vec<MergeAction>,
    /// What is done for the others.
    pub others: Vec<MergeAction>,
}

/// A WHEN clause of MERGE.
#[derive(Debug)]
pub struct MergeAction {
    /// Its AND.
    pub condition: Option<Program>,
    /// What policies ask of the row before it may be changed.
    pub old_checks: Vec<PolicyCheck>,
    /// What it does.
    pub kind: MergeKind,
}

/// What a WHEN clause does. The plans have no input of their own.
#[derive(Debug)]
pub enum MergeKind {
    /// DO NOTHING.
    Nothing,
    /// It inserts this row.
    Insert(Box<Insert>, Vec<Program>),
    /// It updates the row that matches.
    Update(Box<Update>),
    /// It deletes it.
    Delete(Box<Delete>),
}

/// UPDATE.
#[derive(Debug)]
pub struct Update {
    /// The table.
    pub target: Target,
    /// Rows: the table's columns, the key, then those of FROM.
    pub input: Rc<Plan>,
    /// What is set.
    pub set: Assignments,
    /// The condition, checked again on a row that was changed meanwhile.
    pub recheck: Option<Program>,
    /// Whether columns of a key are set, to the values that they have perhaps.
    pub sets_keys: bool,
}

/// DELETE.
#[derive(Debug)]
pub struct Delete {
    /// The table.
    pub target: Target,
    /// Rows: the table's columns, the key, then those of USING.
    pub input: Rc<Plan>,
    /// The condition, checked again on a row that was changed meanwhile.
    pub recheck: Option<Program>,
}

impl AggregateCall {
    /// The expressions it is made of.
    pub fn parts(&self) -> Vec<&Expr> {
        let order = self.order.iter().map(|key| &key.0);
        self.args.iter().chain(&self.filter).chain(order).collect()
    }
}

impl AggregateCall {
    /// The expressions it is made of, to be changed.
    pub fn parts_mut(&mut self) -> Vec<&mut Expr> {
        let order = self.order.iter_mut().map(|key| &mut key.0);
        self.args
            .iter_mut()
            .chain(&mut self.filter)
            .chain(order)
            .collect()
    }
}

impl Expr {
    /// The expressions it is made of.
    pub fn parts(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Const(..)
            | ExprKind::Column(_)
            | ExprKind::Outer(..)
            | ExprKind::Param(_)
            | ExprKind::CaseInput => Vec::new(),
            ExprKind::Call(_, args, _)
            | ExprKind::SetCall(_, args, _)
            | ExprKind::And(args)
            | ExprKind::Or(args)
            | ExprKind::Coalesce(args)
            | ExprKind::Extreme(args, _)
            | ExprKind::Array(args, _)
            | ExprKind::Grouping(args)
            | ExprKind::Routine(_, args)
            | ExprKind::Record(args, _) => args.iter().collect(),
            ExprKind::Coerce(arg, _)
            | ExprKind::Fit(arg, _)
            | ExprKind::Domain(arg, _, _)
            | ExprKind::Collate(arg, _)
            | ExprKind::Collating(arg, ..)
            | ExprKind::Not(arg)
            | ExprKind::IsNull(arg, _)
            | ExprKind::IsTruth(arg, _, _) => vec![arg],
            ExprKind::Case(whens, otherwise) => whens
                .iter()
                .flat_map(|(condition, result)| [condition, result])
                .chain([&**otherwise])
                .collect(),
            ExprKind::CaseValue(a, b)
            | ExprKind::Distinct(a, b, _, _, _)
            | ExprKind::AnyArray(a, b, _, _, _)
            | ExprKind::AnyOwn(a, b, _)
            | ExprKind::Subscript(a, b) => vec![a, b],
            ExprKind::NullIf(first, _, args, _) => std::iter::once(&**first).chain(args).collect(),
            ExprKind::Sub(_, test, seen) => {
                let test = test.iter().map(|test| &**test);
                test.chain(seen.iter().map(|column| &column.1)).collect()
            }
            ExprKind::Aggregate(call) => call.parts(),
            ExprKind::Window(call) => call.parts(),
        }
    }

    /// The expressions it is made of, to be changed.
    pub fn parts_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.kind {
            ExprKind::Const(..)
            | ExprKind::Column(_)
            | ExprKind::Outer(..)
            | ExprKind::Param(_)
            | ExprKind::CaseInput => Vec::new(),
            ExprKind::Call(_, args, _)
            | ExprKind::SetCall(_, args, _)
            | ExprKind::And(args)
            | ExprKind::Or(args)
            | ExprKind::Coalesce(args)
            | ExprKind::Extreme(args, _)
            | ExprKind::Array(args, _)
            | ExprKind::Grouping(args)
            | ExprKind::Routine(_, args)
            | ExprKind::Record(args, _) => args.iter_mut().collect(),
            ExprKind::Coerce(arg, _)
            | ExprKind::Fit(arg, _)
            | ExprKind::Domain(arg, _, _)
            | ExprKind::Collate(arg, _)
            | ExprKind::Collating(arg, ..)
            | ExprKind::Not(arg)
            | ExprKind::IsNull(arg, _)
            | ExprKind::IsTruth(arg, _, _) => vec![arg],
            ExprKind::Case(whens, otherwise) => whens
                .iter_mut()
                .flat_map(|(condition, result)| [condition, result])
                .chain([&mut **otherwise])
                .collect(),
            ExprKind::CaseValue(a, b)
            | ExprKind::Distinct(a, b, _, _, _)
            | ExprKind::AnyArray(a, b, _, _, _)
            | ExprKind::AnyOwn(a, b, _)
            | ExprKind::Subscript(a, b) => vec![a, b],
            ExprKind::NullIf(first, _, args, _) => {
                std::iter::once(&mut **first).chain(args).collect()
            }
            ExprKind::Sub(_, test, seen) => {
                let test = test.iter_mut().map(|test| &mut **test);
                test.chain(seen.iter_mut().map(|column| &mut column.1))
                    .collect()
            }
            ExprKind::Aggregate(call) => call.parts_mut(),
            ExprKind::Window(call) => call.parts_mut(),
        }
    }

    /// Where it begins in the text, or -1.
    pub fn leftmost(&self) -> i32 {
        let mut least = self.location.0;
        self.visit(&mut |part| {
            let location = part.location.0;
            if location >= 0 && (least < 0 || location < least) {
                least = location;
            }
        });
        least
    }

    /// Shows `f` the expression and all its parts.
    pub fn visit(&self, f: &mut dyn FnMut(&Expr)) {
        f(self);
        for part in self.parts() {
            part.visit(f);
        }
    }

    /// Whether it is itself a call whose value may be another each time.
    pub fn is_volatile_call(&self) -> bool {
        match &self.kind {
            ExprKind::Call(function, ..) => function.0.volatility == Volatility::Volatile,
            _ => self.is_routine_of(b"v"),
        }
    }

    /// Whether the expression or one of its parts is so.
    pub fn any(&self, f: &dyn Fn(&Expr) -> bool) -> bool {
        f(self) || self.parts().into_iter().any(|part| part.any(f))
    }

    /// Moves the columns it names by so many places to the left.
    pub fn shift(&mut self, by: usize) {
        if let ExprKind::Column(place) = &mut self.kind {
            *place -= by;
        }
        for part in self.parts_mut() {
            part.shift(by);
        }
    }

    /// Without the conversions around it that change nothing, and without COLLATE, which asks for another
    /// order and for no other value. A conversion between `citext` and `text` keeps the value and changes
    /// what it equals.
    pub fn bare(&self) -> &Expr {
        let folds = |expr: &Expr| expr.ty == TypeId::CITEXT;
        match &self.kind {
            ExprKind::Coerce(inner, How(Coercion::Binary, _)) if folds(self) == folds(inner) => {
                inner.bare()
            }
            ExprKind::Collate(inner, _) => inner.bare(),
            _ => self,
        }
    }
}
