//! Expressions as flat code for a machine with a stack of values.
//!
//! A parse tree may be thousands of levels deep while a coroutine has a megabyte of stack, so
//! expressions are compiled on the thread's own stack and run without recursion. `a + b` becomes
//! `Column 0, Column 1, Call +`; AND, OR, CASE and COALESCE become jumps.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result};

use super::members::Members;
use super::{DomainTest, Expr, ExprKind, How, OwnTest, RoutineCall, SubQuery, UsedCollation};
use functions::collator::Collating;
use functions::{Coercion, Function};
use types::{Datum, TypeId};

/// An expression, compiled.
#[derive(Clone, Debug, Default)]
pub struct Program {
    ops: Vec<Op>,
    /// Whether it is computed for each of many rows.
    over_rows: bool,
}

/// One step.
#[derive(Clone, Debug)]
pub enum Op {
    /// Pushes a value.
    Const(Datum),
    /// Pushes a column of the row.
    Column(usize),
    /// Pushes a column of the row of an enclosing query, so many levels up.
    Outer(usize, usize),
    /// Pushes a parameter.
    Param(usize),
    /// Pushes the value of a literal of the statement's text.
    Literal(usize),
    /// Pushes a value that is the same for all rows, computed for the first.
    Once(Rc<Program>),
    /// Pops the arguments of a function and pushes its result.
    Call {
        /// Which.
        function: &'static Function,
        /// How many arguments it is given.
        count: usize,
        /// Their types.
        types: Rc<[TypeId]>,
        /// The type of the result.
        result: TypeId,
    },
    /// Turns the top from one type into another with a modifier, by way of its text.
    InOut(TypeId, TypeId, i32),
    /// Turns the elements of an array into another type.
    ArrayCoerce(&'static Coercion, TypeId, TypeId),
    /// Makes the top fit a modifier; whether explicitly.
    Fit(TypeId, i32, bool),
    /// Tests whether the top is a value of a domain.
    Domain(Rc<DomainTest>),
    /// What a collation makes of the top.
    Collating(Collating, Rc<UsedCollation>),
    /// The top is false: keep it and jump. Else go on.
    IfFalse(usize),
    /// The top is true: keep it and jump.
    IfTrue(usize),
    /// Pops a condition; jumps unless it is true.
    Unless(usize),
    /// The top is not NULL: keep it and jump; else pop it.
    IfNotNull(usize),
    /// Goes on elsewhere.
    Jump(usize),
    /// Pops two truth values and pushes whether both hold.
    And,
    /// Pops two truth values and pushes whether one holds.
    Or,
    /// Negates a truth value.
    Not,
    /// Whether the top is NULL (true) or is not.
    IsNull(bool),
    /// Whether the top is that truth value (none: unknown); the flag negates.
    IsTruth(Option<bool>, bool),
    /// IS DISTINCT FROM (true) or NOT, by an equality.
    Distinct(&'static Function, Rc<[TypeId]>, bool),
    /// The greatest (true) or least of so many values of a type.
    Extreme(usize, TypeId, bool),
    /// NULL when the comparison of the upper two holds, else the value below.
    NullIf(&'static Function, Rc<[TypeId]>),
    /// Whether a value compares so with any (false) or all elements of an array.
    AnyArray(&'static Function, Rc<[TypeId]>, bool),
    /// The same by an operator of a user's.
    AnyOwn(Rc<OwnTest>),
    /// Whether the top is in a list.
    Member(Rc<Members>),
    /// Makes an array of so many values of a type, or of so many arrays of them.
    Array {
        /// How many.
        count: usize,
        /// The type of the innermost elements.
        element: TypeId,
        /// Whether each value is an array, and what is made has one more dimension.
        nested: bool,
    },
    /// Makes a row value of values of these types, perhaps with names.
    Record(Vec<TypeId>, Option<Arc<[String]>>),
    /// What a subquery gives; whether there is a value it compares with, and which columns of the
    /// row it looks at.
    Sub(Rc<SubQuery>, bool, Rc<[usize]>),
    /// An element of an array.
    Subscript,
    /// Pushes the value of the innermost CASE.
    CaseInput,
    /// Pops so many arguments and pushes what a routine gives.
    Routine(Rc<RoutineCall>, usize),
    /// Moves the top to the stack of CASE values.
    CasePush,
    /// Forgets the value of the innermost CASE.
    CasePop,
}

/// Compiles an expression.
///
/// # Panics
/// On an aggregate or a set, whose places are elsewhere.
pub fn compile(expr: &Expr) -> Program {
    let mut program = Program {
        over_rows: expr.any(&|part| matches!(part.kind, ExprKind::Column(_))),
        ..Program::default()
    };
    program.add(expr);
    program
}

/// Whether it has the same value for all rows of a statement and takes some computing.
fn is_fixed(expr: &Expr) -> bool {
    let computed = match &expr.kind {
        ExprKind::Call(..) | ExprKind::Coerce(..) | ExprKind::Fit(..) => true,
        ExprKind::Collating(..) => true,
        ExprKind::Array(elements, _) => !elements.is_empty(),
        _ => false,
    };
    computed
        && !expr.any(&|part| match &part.kind {
            ExprKind::Call(..) => part.is_volatile_call(),
            ExprKind::Coerce(inner, How(Coercion::Binary, _)) => inner.is_untyped(),
            ExprKind::Const(..)
            | ExprKind::Param(_)
            | ExprKind::Coerce(..)
            | ExprKind::Fit(..)
            | ExprKind::Collate(..)
            | ExprKind::Collating(..)
            | ExprKind::Array(..) => false,
            _ => true,
        })
}

impl Program {
    /// Whether it calls a routine whose value is not known before the program runs, or a function that
    /// looks at rows.
    pub fn calls_late(&self) -> bool {
        let is_late = |op: &Op| match op {
            Op::Call { function, .. } => function.reads_rows(),
            Op::Routine(call, _) => call.routine.volatility != b'i',
            Op::AnyOwn(test) => test.call.routine.volatility != b'i',
            Op::Domain(test) => test.calls_late(),
            _ => false,
        };
        self.ops.iter().any(is_late)
    }

    /// Whether something in it may look at rows, or has a query that may.
    pub fn may_look_at_rows(&self) -> bool {
        self.calls_late() || self.ops.iter().any(|op| matches!(op, Op::Sub(..)))
    }

    /// Its steps.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The conditions that all must hold, one after the other: the steps of each, which leave its
    /// truth value. A condition that is no AND is the only one.
    pub fn conjuncts(&self) -> Vec<Range<usize>> {
        let end = self.ops.len();
        // Only those of the outermost AND leave the program.
        let is_exit = |op: &Op| matches!(op, Op::IfFalse(target) if *target == end);
        let exits = (0..end).filter(|at| is_exit(&self.ops[*at]));
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        for exit in exits.chain([end]) {
            // Behind each but the first stands the AND with what came before.
            let and = usize::from(!parts.is_empty());
            parts.push(start..exit - and);
            start = exit + 1;
        }
        parts
    }

    /// A column as it is.
    pub fn column(place: usize) -> Program {
        Program {
            ops: vec![Op::Column(place)],
            over_rows: true,
        }
    }

    /// The columns of the row that it looks at.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.ops.iter().filter_map(|op| match op {
            Op::Column(place) => Some(*place),
            _ => None,
        })
    }

    /// Gives the columns of the row their new places.
    pub(super) fn move_columns(&mut self, new: &dyn Fn(usize) -> usize) {
        for op in &mut self.ops {
            if let Op::Column(place) = op {
                *place = new(*place);
            }
        }
    }

    /// The columns of the innermost enclosing query's row that it looks at.
    pub(super) fn outer_columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.ops.iter().filter_map(|op| match op {
            Op::Outer(1, place) => Some(*place),
            _ => None,
        })
    }

    /// Gives the columns of the innermost enclosing query's row their new places.
    pub(super) fn move_outer_columns(&mut self, new: &dyn Fn(usize) -> usize) {
        for op in &mut self.ops {
            if let Op::Outer(1, place) = op {
                *place = new(*place);
            }
        }
    }

    /// The column that the whole expression is, if it is one.
    pub fn as_column(&self) -> Option<usize> {
        match self.ops.as_slice() {
            [Op::Column(index)] => Some(*index),
            _ => None,
        }
    }

    /// What it computes the keys of, and under which collation, if keys are what it computes.
    pub fn without_key(&self) -> Option<(Program, &UsedCollation)> {
        match self.ops.split_last()? {
            (Op::Collating(Collating::Key, used), before) => {
                let program = Program {
                    ops: before.to_vec(),
                    over_rows: self.over_rows,
                };
                Some((program, used))
            }
            _ => None,
        }
    }

    /// Whether its value is there before anything runs.
    pub fn is_given(&self) -> bool {
        matches!(
            self.ops.as_slice(),
            [Op::Const(_) | Op::Param(_) | Op::Literal(_)]
        )
    }

    /// The value that is there before anything runs.
    ///
    /// # Errors
    /// XX000 when there is none.
    pub fn given<'a>(&'a self, params: &'a [Datum], literals: &'a [Datum]) -> Result<&'a Datum> {
        let value = match self.ops.as_slice() {
            [Op::Const(value)] => Some(value),
            [Op::Param(index)] => params.get(*index),
            [Op::Literal(number)] => literals.get(*number),
            _ => None,
        };
        value.ok_or_else(|| Error::internal("a value that is not given"))
    }

    fn with(mut self, expr: &Expr) -> Program {
        self.add(expr);
        self
    }

    fn list(&mut self, exprs: &[Expr]) {
        for expr in exprs {
            self.add(expr);
        }
    }

    fn add(&mut self, expr: &Expr) {
        if self.over_rows && is_fixed(expr) {
            let once = Program::default().with(expr);
            // A value that only changes its name takes no computing.
            match once.is_given() {
                true => self.ops.extend(once.ops),
                false => self.ops.push(Op::Once(Rc::new(once))),
            }
            return;
        }
        match &expr.kind {
            ExprKind::Const(value, literal) => {
                let literal = literal.as_ref();
                let number = literal.and_then(|literal| literal.instead_of(value, expr.ty));
                self.ops.push(match number {
                    Some(number) => Op::Literal(number),
                    None => Op::Const(value.clone()),
                });
            }
            ExprKind::Column(index) => self.ops.push(Op::Column(*index)),
            ExprKind::Outer(depth, index) => self.ops.push(Op::Outer(*depth, *index)),
            ExprKind::Param(index) => self.ops.push(Op::Param(*index)),
            ExprKind::Call(function, args, types) => {
                self.list(args);
                self.ops.push(Op::Call {
                    function: function.0,
                    count: args.len(),
                    types: types.clone(),
                    result: expr.ty,
                });
            }
            ExprKind::Coerce(arg, how) => self.add_coercion(arg, how.0, expr),
            ExprKind::Fit(arg, explicit) => {
                self.add(arg);
                self.ops.push(Op::Fit(expr.ty, expr.typmod, *explicit));
            }
            ExprKind::Domain(arg, test, _) => self.add_unary(arg, Op::Domain(test.clone())),
            ExprKind::Collate(arg, _) => self.add(arg),
            ExprKind::Collating(arg, what, used) => {
                self.add_unary(arg, Op::Collating(*what, used.clone()));
            }
            ExprKind::And(parts) => self.add_logic(parts, true),
            ExprKind::Or(parts) => self.add_logic(parts, false),
            ExprKind::Not(arg) => self.add_unary(arg, Op::Not),
            ExprKind::IsNull(arg, wanted) => self.add_unary(arg, Op::IsNull(*wanted)),
            ExprKind::IsTruth(arg, truth, negate) => {
                self.add_unary(arg, Op::IsTruth(*truth, *negate));
            }
            ExprKind::Case(whens, otherwise) => self.add_case(whens, otherwise),
            ExprKind::CaseValue(value, case) => {
                self.add_unary(value, Op::CasePush);
                self.add_unary(case, Op::CasePop);
            }
            ExprKind::CaseInput => self.ops.push(Op::CaseInput),
            ExprKind::Coalesce(args) => self.add_coalesce(args),
            ExprKind::Subscript(array, index) => {
                self.add(array);
                self.add_unary(index, Op::Subscript);
            }
            ExprKind::Extreme(args, greatest) => {
                self.list(args);
                self.ops.push(Op::Extreme(args.len(), expr.ty, *greatest));
            }
            ExprKind::NullIf(first, function, args, types) => {
                self.add(first);
                self.list(args);
                self.ops.push(Op::NullIf(function.0, types.clone()));
            }
            ExprKind::Distinct(left, right, function, types, wanted) => {
                self.add(left);
                self.add_unary(right, Op::Distinct(function.0, types.clone(), *wanted));
            }
            ExprKind::AnyArray(left, right, function, types, all) => {
                self.add(left);
                if let Some(members) = Members::of(right, *function, types, *all) {
                    self.ops.push(Op::Member(Rc::new(members)));
                    return;
                }
                self.add_unary(right, Op::AnyArray(function.0, types.clone(), *all));
            }
            ExprKind::AnyOwn(left, right, test) => {
                self.add(left);
                self.add_unary(right, Op::AnyOwn(test.clone()));
            }
            ExprKind::Routine(call, args) => {
                self.list(args);
                self.ops.push(match call.function() {
                    Some(function) => Op::Call {
                        function,
                        count: args.len(),
                        types: call.types.as_slice().into(),
                        result: call.result,
                    },
                    None => Op::Routine(call.clone(), args.len()),
                });
            }
            ExprKind::Array(elements, element) => {
                self.list(elements);
                let is_array =
                    |value: &Expr| value.ty != *element && value.ty.array_element().is_some();
                self.ops.push(Op::Array {
                    count: elements.len(),
                    element: *element,
                    nested: elements.iter().any(is_array),
                });
            }
            ExprKind::Record(fields, names) => {
                self.list(fields);
                let types = fields.iter().map(|field| field.ty).collect();
                self.ops.push(Op::Record(types, names.clone()));
            }
            ExprKind::Sub(query, test, seen) => {
                seen.iter().for_each(|column| self.add(&column.1));
                if let Some(test) = test {
                    self.add(test);
                }
                let places = seen.iter().map(|column| column.0).collect();
                self.ops
                    .push(Op::Sub(query.clone(), test.is_some(), places));
            }
            ExprKind::Aggregate(_)
            | ExprKind::Grouping(_)
            | ExprKind::Window(_)
            | ExprKind::SetCall(..) => {
                unreachable!("aggregates and sets are taken out before expressions are compiled")
            }
        }
    }

    fn add_unary(&mut self, arg: &Expr, op: Op) {
        self.add(arg);
        self.ops.push(op);
    }

    fn add_coercion(&mut self, arg: &Expr, how: Coercion, expr: &Expr) {
        self.add(arg);
        match how {
            Coercion::Binary => {}
            Coercion::Function(function) => self.ops.push(Op::Call {
                function,
                count: 1,
                types: Rc::from([arg.ty]),
                result: expr.ty,
            }),
            Coercion::InOut => self.ops.push(Op::InOut(arg.ty, expr.ty, expr.typmod)),
            Coercion::Array(inner) => self.ops.push(Op::ArrayCoerce(inner, arg.ty, expr.ty)),
        }
    }

    /// AND (`all`) or OR: after each part, a value that decides everything leaves at once.
    fn add_logic(&mut self, parts: &[Expr], all: bool) {
        let mut exits = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            self.add(part);
            if number > 0 {
                self.ops.push(if all { Op::And } else { Op::Or });
            }
            if number + 1 < parts.len() {
                exits.push(self.ops.len());
                self.ops.push(Op::Jump(0));
            }
        }
        let end = self.ops.len();
        for exit in exits {
            self.ops[exit] = if all {
                Op::IfFalse(end)
            } else {
                Op::IfTrue(end)
            };
        }
    }

    fn add_case(&mut self, whens: &[(Expr, Expr)], otherwise: &Expr) {
        let mut exits = Vec::new();
        for (condition, result) in whens {
            self.add(condition);
            let test = self.ops.len();
            self.ops.push(Op::Jump(0));
            self.add(result);
            exits.push(self.ops.len());
            self.ops.push(Op::Jump(0));
            self.ops[test] = Op::Unless(self.ops.len());
        }
        self.add(otherwise);
        let end = self.ops.len();
        for exit in exits {
            self.ops[exit] = Op::Jump(end);
        }
    }

    fn add_coalesce(&mut self, args: &[Expr]) {
        let mut exits = Vec::new();
        for (number, arg) in args.iter().enumerate() {
            self.add(arg);
            if number + 1 < args.len() {
                exits.push(self.ops.len());
                self.ops.push(Op::Jump(0));
            }
        }
        let end = self.ops.len();
        for exit in exits {
            self.ops[exit] = Op::IfNotNull(end);
        }
    }
}
