//! Expressions.

use std::rc::Rc;

use base::{coro, Error, Result, SqlState};
use pg_query::protobuf::a_const::Val;
use pg_query::protobuf::{
    AConst, AExpr, AExprKind, BoolExpr, BoolExprType, BoolTestType, CaseExpr, Node, NullTestType,
    SqlValueFunction, SqlValueFunctionOp,
};

use super::coerce::{one_typmod, part_typmod};
use super::domain::one_domain;
use super::scope::Scope;
use super::{boxed, inner, strings, type_names, Binder};
use crate::logical::truth;
use crate::plan::{Expr, ExprKind, Func, Literal};
use functions::{check_sortable, CastContext};
use syntax::parser::NodeEnum;
use types::{Datum, TypeId, NO_TYPMOD};

/// What binding an expression counts for, in the units of [`coro::work`].
const EXPRESSION_WORK: usize = 400;

/// Whether set-returning functions may stand somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// Nowhere in the clause.
    Refused,
    /// Anywhere in an expression, also in the arguments of each other.
    Anywhere,
    /// As the whole of an item of FROM.
    Whole,
    /// Not below the whole of an item of FROM.
    Below,
    /// Not within this, in a clause where they may stand otherwise.
    Within(&'static str),
}

/// Where an expression stands, which says what it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the clause in error messages.
    pub clause: &'static str,
    /// Whether aggregates may stand there.
    pub aggregates: bool,
    /// Whether window functions may stand there.
    pub windows: bool,
    /// Whether set-returning functions may stand there.
    pub sets: Sets,
    /// Whether columns may be named there.
    pub columns: bool,
    /// Whether subqueries may stand there; if not, what the clause is called in the error.
    pub no_subquery: Option<&'static str>,
}

impl Place {
    /// A clause without aggregates and sets.
    pub const fn plain(clause: &'static str) -> Place {
        Place {
            clause,
            aggregates: false,
            windows: false,
            sets: Sets::Refused,
            columns: true,
            no_subquery: None,
        }
    }

    /// A clause of a query over groups.
    pub const fn grouped(clause: &'static str) -> Place {
        Place {
            aggregates: true,
            ..Place::plain(clause)
        }
    }

    /// A clause over the rows of a query, after grouping.
    pub const fn output(clause: &'static str) -> Place {
        Place {
            windows: true,
            sets: Sets::Anywhere,
            ..Place::grouped(clause)
        }
    }

    /// What stands inside an expression there.
    pub fn inside(self) -> Place {
        match self.sets {
            Sets::Whole => Place {
                sets: Sets::Below,
                ..self
            },
            _ => self,
        }
    }

    /// What stands inside a construct that computes only some of its parts, where rows cannot be made.
    pub fn without_sets(self, construct: &'static str) -> Place {
        match self.sets {
            Sets::Anywhere | Sets::Within(_) => Place {
                sets: Sets::Within(construct),
                ..self
            },
            _ => self.inside(),
        }
    }

    /// The target list of a query.
    pub const TARGETS: Place = Place::output("SELECT");

    /// FROM, where a subquery may look at its neighbours.
    pub const FROM: Place = Place::plain("FROM clause of their own query level");

    /// WHERE of COPY FROM.
    pub const COPY_FROM: Place = Place {
        no_subquery: Some("COPY FROM WHERE condition"),
        ..Place::plain("COPY FROM WHERE conditions")
    };

    /// What EXECUTE gives for a parameter.
    pub const EXECUTE_PARAMETER: Place = Place {
        no_subquery: Some("EXECUTE parameter"),
        ..Place::plain("EXECUTE parameters")
    };

    /// The default of a column.
    pub const DEFAULT: Place = Place {
        columns: false,
        no_subquery: Some("DEFAULT expression"),
        ..Place::plain("DEFAULT expressions")
    };

    /// What a generated column is computed from.
    pub const GENERATED: Place = Place {
        no_subquery: Some("column generation expression"),
        ..Place::plain("column generation expressions")
    };

    /// What an index is on.
    pub const INDEX_KEY: Place = Place {
        no_subquery: Some("index expression"),
        ..Place::plain("index expressions")
    };

    /// What extended statistics are about.
    pub const STATISTICS: Place = Place {
        no_subquery: Some("statistics expression"),
        ..Place::plain("statistics expressions")
    };

    /// The condition of an index.
    pub const INDEX_CONDITION: Place = Place {
        no_subquery: Some("index predicate"),
        ..Place::plain("index predicates")
    };

    /// The condition of a policy.
    pub const POLICY: Place = Place::plain("policy expressions");

    /// WHEN of a trigger.
    pub const TRIGGER: Place = Place {
        no_subquery: Some("trigger WHEN condition"),
        ..Place::plain("trigger WHEN conditions")
    };

    /// A CHECK constraint.
    pub const CHECK: Place = Place {
        no_subquery: Some("check constraint"),
        ..Place::plain("check constraints")
    };
}

impl Binder<'_> {
    /// Binds an expression.
    pub(super) fn expr(
        &mut self,
        node: &NodeEnum,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        coro::work(EXPRESSION_WORK)?;
        self.deeper(|binder| binder.expr_inner(node, scope, place))
    }

    /// Binds the expression in a node.
    pub(super) fn node(&mut self, node: &Node, scope: &Scope<'_>, place: Place) -> Result<Expr> {
        self.expr(inner(node)?, scope, place)
    }

    fn expr_inner(&mut self, node: &NodeEnum, scope: &Scope<'_>, place: Place) -> Result<Expr> {
        let below = place.inside();
        match node {
            NodeEnum::AConst(constant) => self.constant(constant),
            NodeEnum::ColumnRef(column) if !place.columns => Err(self.error(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use column reference in DEFAULT expression",
                column.location,
            )),
            NodeEnum::ColumnRef(column) => {
                let names = strings(&column.fields);
                if names.len() != column.fields.len() {
                    return match self.whole_row(node, scope)? {
                        Some(row) => Ok(row),
                        None => Err(self.unsupported("a whole row as a value", column.location)),
                    };
                }
                self.column_or_row(&names, scope, column.location)
            }
            NodeEnum::ParamRef(param) => self.param(param.number, param.location),
            NodeEnum::AExpr(operator) => self.operator_expr(operator, scope, below),
            NodeEnum::BoolExpr(logic) => self.logic(logic, scope, below),
            NodeEnum::FuncCall(call) => self.function_call(call, scope, place),
            NodeEnum::TypeCast(cast) => {
                let name = cast
                    .type_name
                    .as_ref()
                    .ok_or_else(|| Error::internal("a cast without a type"))?;
                let (ty, typmod) = type_names::resolve(&self.cx, name)?;
                if let Some(recorded) = &mut self.recorded {
                    recorded.type_named(name.location, ty);
                }
                let (base, _) = self.cx.catalog.base_type(ty);
                let arg = self.cast_argument(boxed(&cast.arg)?, base, typmod, scope, below)?;
                self.cast(arg, ty, typmod, cast.location)
            }
            NodeEnum::NullTest(test) => {
                let arg = match self.whole_row(boxed(&test.arg)?, scope)? {
                    Some(row) => row,
                    None => self.expr(boxed(&test.arg)?, scope, below)?,
                };
                let wanted = test.nulltesttype == NullTestType::IsNull as i32;
                let arg = self.settle(arg)?;
                Ok(truth(
                    ExprKind::IsNull(Box::new(arg), wanted),
                    test.location,
                ))
            }
            NodeEnum::BooleanTest(test) => {
                let arg = self.expr(boxed(&test.arg)?, scope, below)?;
                let (name, value, negate) = match BoolTestType::try_from(test.booltesttype) {
                    Ok(BoolTestType::IsTrue) => ("IS TRUE", Some(true), false),
                    Ok(BoolTestType::IsNotTrue) => ("IS NOT TRUE", Some(true), true),
                    Ok(BoolTestType::IsFalse) => ("IS FALSE", Some(false), false),
                    Ok(BoolTestType::IsNotFalse) => ("IS NOT FALSE", Some(false), true),
                    Ok(BoolTestType::IsUnknown) => ("IS UNKNOWN", None, false),
                    _ => ("IS NOT UNKNOWN", None, true),
                };
                let arg = self.condition(arg, name)?;
                Ok(truth(
                    ExprKind::IsTruth(Box::new(arg), value, negate),
                    test.location,
                ))
            }
            NodeEnum::CaseExpr(case) => self.case(case, scope, place.without_sets("CASE")),
            NodeEnum::CoalesceExpr(coalesce) => {
                let inside = place.without_sets("COALESCE");
                let args = self.nodes(&coalesce.args, scope, inside)?;
                let (args, ty) = self.unify(args, "COALESCE")?;
                let (domain, typmod) = (one_domain(&args), one_typmod(&args));
                let made = Expr::new(ExprKind::Coalesce(args), ty, coalesce.location);
                Ok(Expr {
                    domain,
                    typmod,
                    ..made
                })
            }
            NodeEnum::MinMaxExpr(extreme) => {
                let greatest = extreme.op == pg_query::protobuf::MinMaxOp::IsGreatest as i32;
                let what = if greatest { "GREATEST" } else { "LEAST" };
                let args = self.nodes(&extreme.args, scope, below)?;
                let (args, ty) = self.unify(args, what)?;
                check_sortable(ty)?;
                let (domain, typmod) = (one_domain(&args), one_typmod(&args));
                let made = self.extreme_of(args, |_, args| {
                    let ty = args.first().map_or(ty, |arg| arg.ty);
                    let kind = ExprKind::Extreme(args, greatest);
                    Ok(Expr::new(kind, ty, extreme.location))
                })?;
                Ok(Expr {
                    domain,
                    typmod,
                    ..made
                })
            }
            NodeEnum::SqlvalueFunction(function) => self.value_function(function),
            NodeEnum::SubLink(link) => match place.no_subquery {
                None => self.sublink(link, scope, below),
                Some(clause) => Err(self.error(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("cannot use subquery in {clause}"),
                    link.location,
                )),
            },
            NodeEnum::AArrayExpr(array) => {
                let elements = self.nodes(&array.elements, scope, below)?;
                self.array(elements, array.location)
            }
            NodeEnum::RowExpr(row) => {
                let fields = self.row_fields(&row.args, scope, below)?;
                Ok(Expr::new(
                    ExprKind::Record(fields, None),
                    TypeId::RECORD,
                    row.location,
                ))
            }
            NodeEnum::CollateClause(collate) => {
                let arg = self.expr(boxed(&collate.arg)?, scope, below)?;
                self.collate(arg, collate)
            }
            NodeEnum::AIndirection(indirection) => self.indirection(indirection, scope, below),
            NodeEnum::SetToDefault(default) => Err(self.error(
                SqlState::SYNTAX_ERROR,
                "DEFAULT is not allowed in this context",
                default.location,
            )),
            NodeEnum::GroupingFunc(call) => self.grouping_call(call, scope, below),
            NodeEnum::CurrentOfExpr(_) => Err(Error::unsupported("WHERE CURRENT OF")),
            _ => Err(Error::unsupported("this kind of expression")),
        }
    }

    pub(super) fn nodes(
        &mut self,
        nodes: &[Node],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Vec<Expr>> {
        nodes
            .iter()
            .map(|node| self.node(node, scope, place))
            .collect()
    }

    fn constant(&mut self, constant: &AConst) -> Result<Expr> {
        let location = constant.location;
        let literal = self.cx.literals.and_then(|literals| literals.at(location));
        if constant.isnull {
            return Ok(Expr::constant(Datum::Null, TypeId::UNKNOWN, location));
        }
        let (value, ty) = match &constant.val {
            Some(Val::Ival(integer)) => (Datum::Int4(integer.ival), TypeId::INT4),
            Some(Val::Fval(number)) => return self.number(&number.fval, literal, location),
            Some(Val::Boolval(value)) => (Datum::Bool(value.boolval), TypeId::BOOL),
            Some(Val::Sval(text)) => (Datum::text(&text.sval), TypeId::UNKNOWN),
            Some(Val::Bsval(bits)) => {
                let bits = types::bits::parse(&bits.bsval);
                let bits = bits.map_err(|error| self.place(error, location))?;
                let value = types::bits::datum(bits);
                return Ok(Expr::constant(value, TypeId::BIT, location));
            }
            // libpg_query leaves out the value of the integer 0.
            None => (Datum::Int4(0), TypeId::INT4),
        };
        Ok(Expr::new(ExprKind::Const(value, literal), ty, location))
    }

    /// A number that is no int4: int8 if it fits, else numeric.
    fn number(&mut self, text: &str, literal: Option<Rc<Literal>>, location: i32) -> Result<Expr> {
        let digits = text.replace('_', "");
        // The grammar makes one number of a minus sign and a number: it may be the least int4.
        if let Ok(value) = digits.parse::<i32>() {
            let kind = ExprKind::Const(Datum::Int4(value), literal);
            return Ok(Expr::new(kind, TypeId::INT4, location));
        }
        if let Ok(value) = digits.parse::<i64>() {
            let kind = ExprKind::Const(Datum::Int8(value), literal);
            return Ok(Expr::new(kind, TypeId::INT8, location));
        }
        let kind = ExprKind::Const(Datum::text(&digits), literal);
        self.cast(
            Expr::new(kind, TypeId::UNKNOWN, location),
            TypeId::NUMERIC,
            -1,
            location,
        )
    }

    fn param(&mut self, number: i32, location: i32) -> Result<Expr> {
        if let Some(known) = self.cx.variables {
            let name = format!("${number}");
            if let Some((place, ty, typmod)) = known.find(&[&name])? {
                return Ok(self.variable(place, ty, typmod, location));
            }
        }
        let place = usize::try_from(number - 1).unwrap_or(usize::MAX);
        const PARAMS_MAX: usize = 65_535;
        let allowed = if self.open_params {
            PARAMS_MAX
        } else {
            self.params.len()
        };
        if place >= allowed {
            return Err(self.error(
                SqlState::UNDEFINED_PARAMETER,
                format!("there is no parameter ${number}"),
                location,
            ));
        }
        if place >= self.params.len() {
            self.params.resize(place + 1, TypeId::UNKNOWN);
        }
        let ty = self.params[place];
        if ty.is_of_domain() {
            let (base, _) = self.cx.catalog.base_type(ty);
            let value = Expr::new(ExprKind::Param(place), base, location);
            let tested = self.coerce_to_domain(value, ty, CastContext::Implicit)?;
            return tested.map_err(|_| Error::internal("a parameter of another type"));
        }
        Ok(Expr::new(ExprKind::Param(place), ty, location))
    }

    /// The argument of a cast: an array constructor takes the elements' type from it, and so do those
    /// inside it (`ARRAY['a', 1]::text[]`).
    fn cast_argument(
        &mut self,
        node: &NodeEnum,
        ty: TypeId,
        typmod: i32,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let vector = match ty {
            TypeId::INT2VECTOR => TypeId::INT2.array_of(),
            TypeId::OIDVECTOR => TypeId::OID.array_of(),
            _ => None,
        };
        if let (NodeEnum::AArrayExpr(array), Some(plain)) = (node, vector) {
            // The vectors of the catalog begin at 0, as what is read from their text does.
            let array_of = self.cast_argument(node, plain, typmod, scope, place)?;
            let between = Expr::constant(Datum::text(" "), TypeId::TEXT, array.location);
            let args = vec![array_of, between];
            return self.call_by_name("array_to_string", args, array.location);
        }
        let (NodeEnum::AArrayExpr(array), Some(element)) = (node, ty.array_element()) else {
            return self.expr(node, scope, place);
        };
        coro::work(EXPRESSION_WORK)?;
        let mut values = Vec::with_capacity(array.elements.len());
        for node in &array.elements {
            let node = inner(node)?;
            values.push(self.deeper(|binder| {
                let within = matches!(node, NodeEnum::AArrayExpr(_)).then_some(ty);
                binder.cast_argument(node, within.unwrap_or(element), typmod, scope, place)
            })?);
        }
        let is_array = |value: &Expr| value.ty.array_element().is_some();
        let (target, typmod) = match values.iter().any(is_array) {
            true => (ty, typmod),
            false if element.is_own() => (element, NO_TYPMOD),
            false => (element, typmod),
        };
        let cast = |value: Expr| {
            let location = value.location.0;
            self.cast(value, target, typmod, location)
        };
        let elements = values.into_iter().map(cast).collect::<Result<Vec<_>>>()?;
        let typmod = one_typmod(&elements);
        let kind = ExprKind::Array(elements, element);
        Ok(Expr {
            typmod,
            ..Expr::new(kind, ty, array.location)
        })
    }

    fn array(&mut self, elements: Vec<Expr>, location: i32) -> Result<Expr> {
        if elements.is_empty() {
            return Err(self
                .error(
                    SqlState::INDETERMINATE_DATATYPE,
                    "cannot determine type of empty array",
                    location,
                )
                .with_hint(
                    "Explicitly cast to the desired type, for example ARRAY[]::integer[].",
                ));
        }
        let (elements, ty) = self.unify(elements, "ARRAY")?;
        let (array, element) = match ty.array_element() {
            Some(element) => (Some(ty), element),
            None => (ty.array_of(), ty),
        };
        let array = array.ok_or_else(|| {
            self.error(
                SqlState::UNDEFINED_OBJECT,
                format!("could not find array type for data type {ty}"),
                location,
            )
        })?;
        let typmod = part_typmod(element, one_typmod(&elements));
        let kind = ExprKind::Array(elements, element);
        Ok(Expr {
            typmod,
            ..Expr::new(kind, array, location)
        })
    }

    fn logic(&mut self, logic: &BoolExpr, scope: &Scope<'_>, place: Place) -> Result<Expr> {
        let kind = BoolExprType::try_from(logic.boolop).unwrap_or(BoolExprType::Undefined);
        let name = match kind {
            BoolExprType::AndExpr => "AND",
            BoolExprType::OrExpr => "OR",
            _ => "NOT",
        };
        let mut args = Vec::with_capacity(logic.args.len());
        for arg in &logic.args {
            let arg = self.node(arg, scope, place)?;
            args.push(self.condition(arg, name)?);
        }
        let kind = match (kind, args.pop()) {
            (BoolExprType::NotExpr, Some(arg)) => ExprKind::Not(Box::new(arg)),
            (BoolExprType::AndExpr, Some(last)) => {
                args.push(last);
                ExprKind::And(args)
            }
            (_, Some(last)) => {
                args.push(last);
                ExprKind::Or(args)
            }
            (_, None) => return Err(Error::internal("logic without operands")),
        };
        Ok(truth(kind, logic.location))
    }

    fn case(&mut self, case: &CaseExpr, scope: &Scope<'_>, place: Place) -> Result<Expr> {
        let value = match &case.arg {
            Some(arg) => {
                let value = self.expr(inner(arg)?, scope, place)?;
                Some(self.settle(value)?)
            }
            None => None,
        };
        let mut conditions = Vec::new();
        let mut results = Vec::new();
        for arm in &case.args {
            let NodeEnum::CaseWhen(when) = inner(arm)? else {
                return Err(Error::internal("an arm of CASE is no WHEN"));
            };
            let condition = self.expr(boxed(&when.expr)?, scope, place)?;
            conditions.push(match &value {
                None => self.condition(condition, "CASE/WHEN")?,
                Some(value) => {
                    let input = Expr {
                        domain: value.domain,
                        ..Expr::new(ExprKind::CaseInput, value.ty, when.location)
                    };
                    self.binary("=", input, condition, when.location)?
                }
            });
            results.push(self.expr(boxed(&when.result)?, scope, place)?);
        }
        // The default comes first when types are matched, as in PostgreSQL.
        let default = match &case.defresult {
            Some(node) => self.expr(inner(node)?, scope, place)?,
            None => Expr::constant(Datum::Null, TypeId::UNKNOWN, case.location),
        };
        let mut all = vec![default];
        all.extend(results);
        let (all, ty) = self.unify(all, "CASE")?;
        let (domain, typmod) = (one_domain(&all), one_typmod(&all));
        let mut all = all.into_iter();
        let default = all
            .next()
            .ok_or_else(|| Error::internal("CASE without a default"))?;
        let whens = conditions.into_iter().zip(all).collect();
        let whole = Expr::new(ExprKind::Case(whens, Box::new(default)), ty, case.location);
        let whole = match value {
            None => whole,
            Some(value) => {
                let kind = ExprKind::CaseValue(Box::new(value), Box::new(whole));
                Expr::new(kind, ty, case.location)
            }
        };
        Ok(Expr {
            domain,
            typmod,
            ..whole
        })
    }

    fn operator_expr(&mut self, operator: &AExpr, scope: &Scope<'_>, place: Place) -> Result<Expr> {
        let location = operator.location;
        let names = strings(&operator.name);
        let name = names.last().copied().unwrap_or_default();
        let kind = AExprKind::try_from(operator.kind).unwrap_or(AExprKind::Undefined);
        match kind {
            AExprKind::AexprOp => self.plain_operator(operator, &names, scope, place),
            AExprKind::AexprOpAny | AExprKind::AexprOpAll => {
                let left = self.expr(boxed(&operator.lexpr)?, scope, place)?;
                let right = self.expr(boxed(&operator.rexpr)?, scope, place)?;
                let all = kind == AExprKind::AexprOpAll;
                self.any_array(&names, left, right, all, location)
            }
            AExprKind::AexprDistinct | AExprKind::AexprNotDistinct => {
                let left = self.expr(boxed(&operator.lexpr)?, scope, place)?;
                let right = self.expr(boxed(&operator.rexpr)?, scope, place)?;
                let wanted = kind == AExprKind::AexprDistinct;
                if left.is_row() && right.is_row() {
                    return self.distinct_rows(left, right, wanted, location);
                }
                let (left, right, function, types) = self.equality(left, right, location)?;
                let (left, right) = (Box::new(left), Box::new(right));
                Ok(truth(
                    ExprKind::Distinct(left, right, function, types, wanted),
                    location,
                ))
            }
            AExprKind::AexprNullif => {
                let left = self.expr(boxed(&operator.lexpr)?, scope, place)?;
                let right = self.expr(boxed(&operator.rexpr)?, scope, place)?;
                let (left, right, function, types) = self.equality(left, right, location)?;
                // What is compared may be its key.
                let first = left.without_key().0.clone();
                let ty = first.ty;
                let kind = ExprKind::NullIf(Box::new(first), function, vec![left, right], types);
                Ok(Expr::new(kind, ty, location))
            }
            AExprKind::AexprIn => self.in_list(operator, name, scope, place),
            AExprKind::AexprLike | AExprKind::AexprIlike | AExprKind::AexprSimilar => {
                let left = self.expr(boxed(&operator.lexpr)?, scope, place)?;
                let right = self.expr(boxed(&operator.rexpr)?, scope, place)?;
                self.binary(name, left, right, location)
            }
            AExprKind::AexprBetween
            | AExprKind::AexprNotBetween
            | AExprKind::AexprBetweenSym
            | AExprKind::AexprNotBetweenSym => self.between(operator, kind, scope, place),
            AExprKind::Undefined => Err(Error::internal("an operator of no kind")),
        }
    }

    /// `x IN (a, b, c)`: one array when all are of one type, else a chain of OR.
    fn in_list(
        &mut self,
        operator: &AExpr,
        name: &str,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let location = operator.location;
        let left = self.expr(boxed(&operator.lexpr)?, scope, place)?;
        let NodeEnum::List(list) = boxed(&operator.rexpr)? else {
            return Err(Error::internal("IN without a list"));
        };
        let negated = name == "<>";
        let rights = self.nodes(&list.items, scope, place)?;
        let row = left.is_row();
        let constant = |expr: &Expr| !expr.any(&|part| matches!(part.kind, ExprKind::Column(_)));
        if !row && rights.len() > 1 && rights.iter().all(constant) {
            let mut all = vec![left.clone()];
            all.extend(rights.iter().cloned());
            if let Ok((mut all, ty)) = self.unify(all, "IN") {
                if ty.array_of().is_some() && ty.array_element().is_none() {
                    let left = all.remove(0);
                    let array = self.array(all, location)?;
                    return self.any_array(&[name], left, array, negated, location);
                }
            }
        }
        let mut parts = Vec::with_capacity(rights.len());
        for right in rights {
            let part = self.binary(name, left.clone(), right, location)?;
            parts.push(self.condition(part, "IN")?);
        }
        match (parts.len(), negated) {
            (1, _) => parts.pop().ok_or_else(|| Error::internal("an empty IN")),
            (_, true) => Ok(truth(ExprKind::And(parts), location)),
            (_, false) => Ok(truth(ExprKind::Or(parts), location)),
        }
    }

    /// `x BETWEEN a AND b`, which is `x >= a AND x <= b`; with NOT it is `x < a OR x > b`, which is something else
    /// for values of which neither is less.
    fn between(
        &mut self,
        operator: &AExpr,
        kind: AExprKind,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let location = operator.location;
        let value = self.expr(boxed(&operator.lexpr)?, scope, place)?;
        let NodeEnum::List(list) = boxed(&operator.rexpr)? else {
            return Err(Error::internal("BETWEEN without bounds"));
        };
        let [low, high] = list.items.as_slice() else {
            return Err(Error::internal("BETWEEN without two bounds"));
        };
        let low = self.node(low, scope, place)?;
        let high = self.node(high, scope, place)?;
        let (symmetric, negated) = match kind {
            AExprKind::AexprNotBetween => (false, true),
            AExprKind::AexprBetweenSym => (true, false),
            AExprKind::AexprNotBetweenSym => (true, true),
            _ => (false, false),
        };
        let mut between = |low: Expr, high: Expr| {
            let (first, second, clause) = match negated {
                true => ("<", ">", "OR"),
                false => (">=", "<=", "AND"),
            };
            let first = self.binary(first, value.clone(), low, location)?;
            let second = self.binary(second, value.clone(), high, location)?;
            let both = vec![
                self.condition(first, clause)?,
                self.condition(second, clause)?,
            ];
            let both = match negated {
                true => ExprKind::Or(both),
                false => ExprKind::And(both),
            };
            Ok::<_, Error>(truth(both, location))
        };
        let whole = between(low.clone(), high.clone())?;
        if !symmetric {
            return Ok(whole);
        }
        let either = vec![whole, between(high, low)?];
        let either = match negated {
            true => ExprKind::And(either),
            false => ExprKind::Or(either),
        };
        Ok(truth(either, location))
    }

    fn value_function(&mut self, function: &SqlValueFunction) -> Result<Expr> {
        use SqlValueFunctionOp as Op;
        let location = function.location;
        let op = Op::try_from(function.op).unwrap_or(Op::SqlvalueFunctionOpUndefined);
        let typmod = match op {
            Op::SvfopCurrentTimeN
            | Op::SvfopCurrentTimestampN
            | Op::SvfopLocaltimeN
            | Op::SvfopLocaltimestampN => function.typmod,
            _ => -1,
        };
        let (name, ty) = match op {
            Op::SvfopCurrentDate => ("now", TypeId::DATE),
            Op::SvfopCurrentTime | Op::SvfopCurrentTimeN => ("now", TypeId::TIMETZ),
            Op::SvfopCurrentTimestamp | Op::SvfopCurrentTimestampN => ("now", TypeId::TIMESTAMPTZ),
            Op::SvfopLocaltime | Op::SvfopLocaltimeN => ("now", TypeId::TIME),
            Op::SvfopLocaltimestamp | Op::SvfopLocaltimestampN => ("now", TypeId::TIMESTAMP),
            Op::SvfopSessionUser => ("session_user", TypeId::NAME),
            Op::SvfopCurrentCatalog => ("current_database", TypeId::NAME),
            Op::SvfopCurrentSchema => ("current_schema", TypeId::NAME),
            _ => ("current_user", TypeId::NAME),
        };
        let mut call = self.call_by_name(name, Vec::new(), location)?;
        if let (ExprKind::Call(function, ..), Some(keyword)) = (&mut call.kind, keyword(op)) {
            *function = Func(functions::under_keyword(function.0, keyword));
        }
        self.cast(call, ty, typmod, location)
    }
}

/// How a function that stands for an instant was written.
fn keyword(op: SqlValueFunctionOp) -> Option<&'static str> {
    use SqlValueFunctionOp as Op;
    Some(match op {
        Op::SvfopCurrentDate => "CURRENT_DATE",
        Op::SvfopCurrentTime | Op::SvfopCurrentTimeN => "CURRENT_TIME",
        Op::SvfopCurrentTimestamp | Op::SvfopCurrentTimestampN => "CURRENT_TIMESTAMP",
        Op::SvfopLocaltime | Op::SvfopLocaltimeN => "LOCALTIME",
        Op::SvfopLocaltimestamp | Op::SvfopLocaltimestampN => "LOCALTIMESTAMP",
        _ => return None,
    })
}
