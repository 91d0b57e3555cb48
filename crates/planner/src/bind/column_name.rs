//! The names of a query's columns that were not given one.
//!
//! `select a, lower(b), 1 + 1` has the columns `a`, `lower` and `?column?`; a cast around
//! something that has a name of its own keeps that one (`lower(b)::varchar` is `lower`), and
//! otherwise gives its type's (`'1'::int` is `int4`).
//!
//! Source: PostgreSQL 15 manual, section 7.3.2.

use pg_query::protobuf::{AExprKind, MinMaxOp, Node, SelectStmt, SqlValueFunctionOp, SubLinkType};

use super::strings;
use syntax::parser::NodeEnum;

/// The name that PostgreSQL gives to a column without one.
pub(super) fn column_name(node: &NodeEnum) -> String {
    figure_name(node).map_or_else(|| "?column?".to_owned(), |name| name.0)
}

/// The name of an index's column that holds an expression.
pub(super) fn index_column_name(node: &NodeEnum) -> String {
    figure_name(node).map_or_else(|| "expr".to_owned(), |name| name.0)
}

/// A name for an expression's column, and whether it is better than that of a cast around it.
fn figure_name(node: &NodeEnum) -> Option<(String, bool)> {
    let of = |node: &Option<Box<Node>>| figure_name(node.as_ref()?.node.as_ref()?);
    let fixed = |name: &str| Some((name.to_owned(), true));
    let last = |names: &[Node]| strings(names).last().map(|name| ((*name).to_owned(), true));
    match node {
        NodeEnum::ColumnRef(column) => last(&column.fields),
        NodeEnum::FuncCall(call) => last(&call.funcname),
        NodeEnum::AIndirection(indirection) => {
            let field = strings(&indirection.indirection).last().copied();
            field.map_or_else(|| of(&indirection.arg), fixed)
        }
        NodeEnum::TypeCast(cast) => of(&cast.arg).filter(|name| name.1).or_else(|| {
            let name = cast.type_name.as_ref()?;
            last(&name.names).map(|name| (name.0, false))
        }),
        NodeEnum::CollateClause(collate) => of(&collate.arg),
        NodeEnum::CaseExpr(case) => of(&case.defresult)
            .filter(|name| name.1)
            .or_else(|| Some(("case".to_owned(), false))),
        NodeEnum::AArrayExpr(_) => fixed("array"),
        NodeEnum::RowExpr(_) => fixed("row"),
        NodeEnum::GroupingFunc(_) => fixed("grouping"),
        NodeEnum::CoalesceExpr(_) => fixed("coalesce"),
        NodeEnum::MinMaxExpr(extreme) => match extreme.op {
            op if op == MinMaxOp::IsGreatest as i32 => fixed("greatest"),
            _ => fixed("least"),
        },
        NodeEnum::AExpr(expr) if expr.kind == AExprKind::AexprNullif as i32 => fixed("nullif"),
        NodeEnum::SqlvalueFunction(function) => fixed(value_function_name(function.op)),
        NodeEnum::SubLink(link) => match SubLinkType::try_from(link.sub_link_type) {
            Ok(SubLinkType::ExistsSublink) => fixed("exists"),
            Ok(SubLinkType::ArraySublink) => fixed("array"),
            Ok(SubLinkType::ExprSublink) => match link.subselect.as_ref()?.node.as_ref()? {
                NodeEnum::SelectStmt(select) => first_column(select),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The name of a subquery's only column, which a cast around it does not change.
fn first_column(select: &SelectStmt) -> Option<(String, bool)> {
    // A set operation has the names of its first query.
    let select = leftmost(select);
    if !select.values_lists.is_empty() {
        return Some(("column1".to_owned(), true));
    }
    let NodeEnum::ResTarget(target) = select.target_list.first()?.node.as_ref()? else {
        return None;
    };
    let name = match target.name.as_str() {
        "" => column_name(target.val.as_ref()?.node.as_ref()?),
        name => name.to_owned(),
    };
    Some((name, true))
}

fn leftmost(mut select: &SelectStmt) -> &SelectStmt {
    while let Some(left) = &select.larg {
        select = left;
    }
    select
}

fn value_function_name(op: i32) -> &'static str {
    use SqlValueFunctionOp as Op;
    match Op::try_from(op).unwrap_or(Op::SqlvalueFunctionOpUndefined) {
        Op::SvfopCurrentDate => "current_date",
        Op::SvfopCurrentTime | Op::SvfopCurrentTimeN => "current_time",
        Op::SvfopCurrentTimestamp | Op::SvfopCurrentTimestampN => "current_timestamp",
        Op::SvfopLocaltime | Op::SvfopLocaltimeN => "localtime",
        Op::SvfopLocaltimestamp | Op::SvfopLocaltimestampN => "localtimestamp",
        Op::SvfopCurrentRole => "current_role",
        Op::SvfopUser => "user",
        Op::SvfopSessionUser => "session_user",
        Op::SvfopCurrentCatalog => "current_catalog",
        Op::SvfopCurrentSchema => "current_schema",
        _ => "current_user",
    }
}
