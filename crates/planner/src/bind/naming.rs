//! Where statements name others, and how often.
//!
//! Who counts what is named decides by it whether a query of WITH is read where it is named
//! (`inline.rs`); one that is missed is bound twice, and no more.

use pg_query::protobuf::{Node, SelectStmt};
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
