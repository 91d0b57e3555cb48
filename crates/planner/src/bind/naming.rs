//! Where statements name others, and how often.
//!
//! Who counts what is named decides by it whether a query of WITH is read where it is named
//! (`inline.rs`); one that is missed is bound twice, and no more.

use pg_query::protobuf::{CommonTableExpr, Node, SelectStmt};
use pg_query::NodeRef;

/// The parts of a query in which others may be named.
pub(super) fn parts_of(select: &SelectStmt) -> Vec<&Node> {
    let mut parts: Vec<&Node> = Vec::new();
    let mut queries = vec![select];
    while let Some(query) = queries.pop() {
        let with = query.with_clause.iter().flat_map(|with| &with.ctes);
        parts.extend(with);
        let lists = [
            &query.from_clause,
            &query.target_list,
            &query.group_clause,
            &query.sort_clause,
            &query.values_lists,
            &query.distinct_clause,
        ];
        parts.extend(lists.into_iter().flatten());
        let singles = [
            &query.where_clause,
            &query.having_clause,
            &query.limit_count,
            &query.limit_offset,
        ];
        parts.extend(singles.into_iter().flatten().map(|node| &**node));
        queries.extend(query.larg.iter().chain(&query.rarg).map(|query| &**query));
    }
    parts
}

/// The names in FROM in parts of a statement that may be those of queries of WITH.
pub(super) fn names_in(parts: &[&Node]) -> Vec<String> {
    let nodes = parts.iter().filter_map(|part| part.node.as_ref());
    let name = |node| match node {
        NodeRef::RangeVar(range) if range.schemaname.is_empty() => Some(range.relname.clone()),
        _ => None,
    };
    let nodes = nodes.flat_map(|node| node.nodes());
    nodes.filter_map(|node| name(node.0)).collect()
}

/// Queries of WITH RECURSIVE in an order in which each comes after those that it names, itself not
/// counted; the first of those that name one another is an error.
///
/// What a WITH inside of a query defines is not taken for another.
pub(super) fn in_order(
    queries: Vec<&CommonTableExpr>,
) -> std::result::Result<Vec<&CommonTableExpr>, &CommonTableExpr> {
    let inside = |cte: &CommonTableExpr| {
        let node = cte.ctequery.iter().filter_map(|query| query.node.as_ref());
        let nodes = node.flat_map(|node| node.nodes());
        let named = nodes.filter_map(|node| match node.0 {
            NodeRef::CommonTableExpr(inner) => Some(inner.ctename.clone()),
            _ => None,
        });
        named.collect::<Vec<_>>()
    };
    let needs = |cte: &CommonTableExpr| {
        let own = inside(cte);
        let query = cte.ctequery.as_deref();
        let mut names = names_in(&query.into_iter().collect::<Vec<_>>());
        names.retain(|name| *name != cte.ctename && !own.contains(name));
        names
    };
    let mut left: Vec<_> = queries.into_iter().map(|cte| (cte, needs(cte))).collect();
    for place in 0..left.len() {
        let later = |name: &String| left[place..].iter().any(|(cte, _)| cte.ctename == *name);
        let ready = |(_, needs): &(&CommonTableExpr, Vec<String>)| !needs.iter().any(later);
        match left[place..].iter().position(ready) {
            Some(ready) => left.swap(place, place + ready),
            None => return Err(left[place].0),
        }
    }
    Ok(left.into_iter().map(|(cte, _)| cte).collect())
}
