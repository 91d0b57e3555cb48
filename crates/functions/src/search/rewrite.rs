//! Functions that put queries together, and `ts_rewrite`.
//!
//! ```text
//! ts_rewrite('a & b & c', 'b & a', 'd')      'c' & 'd'
//! ```
//! To be replaced, a part is looked for in a tree in which `&` and `|` have all their operands side by
//! side, in order.

use std::cmp::Ordering;

use base::{coro, Result};

use super::query;
use crate::arguments::Arguments;
use crate::Call;
use types::search::query::{checksum, too_distant};
use types::search::{Node, Query, POSITION_END};
use types::Datum;

/// An operator over two queries; of an empty one nothing is left.
fn join(node: Node, left: &Query, right: &Query) -> Result<Datum> {
    if left.is_empty() {
        return Ok(right.clone().into_datum());
    }
    if right.is_empty() {
        return Ok(left.clone().into_datum());
    }
    let mut nodes = vec![node];
    nodes.extend_from_slice(right.nodes());
    nodes.extend_from_slice(left.nodes());
    coro::work(32 * nodes.len())?;
    Query::of(nodes).map(Query::into_datum)
}

pub(crate) fn and(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    join(Node::And, &query(args, 0)?, &query(args, 1)?)
}

pub(crate) fn or(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    join(Node::Or, &query(args, 0)?, &query(args, 1)?)
}

pub(crate) fn not(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let own = query(args, 0)?;
    if own.is_empty() {
        return Ok(own.into_datum());
    }
    let mut nodes = vec![Node::Not];
    nodes.extend_from_slice(own.nodes());
    Query::of(nodes).map(Query::into_datum)
}

pub(crate) fn phrase(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    join(Node::Phrase(1), &query(args, 0)?, &query(args, 1)?)
}

pub(crate) fn phrase_distance(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let distance = u16::try_from(args.int(2)?).ok();
    let distance = distance.filter(|distance| *distance <= POSITION_END);
    let distance = distance.ok_or_else(too_distant)?;
    join(Node::Phrase(distance), &query(args, 0)?, &query(args, 1)?)
}

pub(crate) fn numnode(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(query(args, 0)?.nodes().len() as i32))
}

pub(crate) fn querytree(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let own = query(args, 0)?;
    if own.is_empty() {
        return Ok(Datum::text(""));
    }
    let Some(needed) = own.without_not() else {
        return Ok(Datum::text("T"));
    };
    let mut out = String::new();
    needed.write(&mut out);
    Ok(Datum::text(out))
}

/// Whether all lexemes of the second are among those of the first.
fn has_all(whole: &Query, part: &Query) -> bool {
    let texts = |query: &Query| -> Vec<String> {
        let texts = query.operands().map(|(_, operand)| operand.text.clone());
        let mut texts: Vec<String> = texts.collect();
        texts.sort_unstable();
        texts.dedup();
        texts
    };
    let whole = texts(whole);
    texts(part)
        .iter()
        .all(|text| whole.binary_search(text).is_ok())
}

pub(crate) fn contains(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(has_all(&query(args, 0)?, &query(args, 1)?)))
}

pub(crate) fn contained(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(has_all(&query(args, 1)?, &query(args, 0)?)))
}

/// A query as a tree.
#[derive(Clone, Debug)]
struct Tree {
    node: Node,
    /// The right operand first; of `&` and `|` any number.
    children: Vec<Tree>,
    /// It came in and is not looked into.
    fixed: bool,
}

fn compare(a: &Tree, b: &Tree) -> Result<Ordering> {
    coro::check_depth()?;
    coro::work(8)?;
    let code = |node: &Node| match node {
        Node::Operand(_) => 0,
        Node::Not => 1,
        Node::And => 2,
        Node::Or => 3,
        Node::Phrase(_) => 4,
    };
    let order = match (&a.node, &b.node) {
        (Node::Operand(x), Node::Operand(y)) => {
            let sums = checksum(&y.text).cmp(&checksum(&x.text));
            sums.then_with(|| x.text.cmp(&y.text))
        }
        (Node::Operand(_), _) => Ordering::Greater,
        (_, Node::Operand(_)) => Ordering::Less,
        (x, y) => {
            let codes = code(y).cmp(&code(x));
            codes.then(b.children.len().cmp(&a.children.len()))
        }
    };
    if order.is_ne() {
        return Ok(order);
    }
    for (x, y) in a.children.iter().zip(&b.children) {
        let order = compare(x, y)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(match (&a.node, &b.node) {
        (Node::Phrase(x), Node::Phrase(y)) => y.cmp(x),
        _ => Ordering::Equal,
    })
}

impl Tree {
    fn of(query: &Query, at: usize) -> Result<Tree> {
        coro::check_depth()?;
        let node = query.nodes()[at].clone();
        let children = match node {
            Node::Operand(_) => Vec::new(),
            Node::Not => vec![Tree::of(query, at + 1)?],
            _ => vec![Tree::of(query, at + 1)?, Tree::of(query, query.left(at))?],
        };
        Ok(Tree {
            node,
            children,
            fixed: false,
        })
    }

    /// Puts operands of the same operator side by side.
    fn flatten(&mut self) -> Result<()> {
        coro::check_depth()?;
        for child in &mut self.children {
            child.flatten()?;
        }
        if !matches!(self.node, Node::And | Node::Or) {
            return Ok(());
        }
        coro::work(8 * self.children.len())?;
        let mut all = Vec::with_capacity(self.children.len());
        for child in std::mem::take(&mut self.children) {
            match child.node == self.node {
                true => all.extend(child.children),
                false => all.push(child),
            }
        }
        self.children = all;
        Ok(())
    }

    fn sort(&mut self) -> Result<()> {
        coro::check_depth()?;
        for child in &mut self.children {
            child.sort()?;
        }
        if matches!(self.node, Node::Phrase(_)) {
            return Ok(());
        }
        let mut failed = None;
        self.children.sort_by(|a, b| {
            compare(a, b).unwrap_or_else(|error| {
                failed = Some(error);
                Ordering::Equal
            })
        });
        failed.map_or(Ok(()), Err)
    }

    /// It with the operands of each operator in pairs.
    fn append_to(mut self, nodes: &mut Vec<Node>) -> Result<()> {
        coro::check_depth()?;
        while self.children.len() > 2 {
            // The first two become one operand, behind which the last one stands.
            let last = self.children.pop();
            let rest = self.children.split_off(2);
            let pair = Tree {
                node: self.node.clone(),
                children: std::mem::take(&mut self.children),
                fixed: false,
            };
            self.children.push(pair);
            self.children.extend(last);
            self.children.extend(rest);
        }
        nodes.push(self.node);
        for child in self.children {
            child.append_to(nodes)?;
        }
        Ok(())
    }
}

/// What is replaced by what.
struct Rule<'a> {
    target: &'a Tree,
    substitute: Option<&'a Tree>,
}

impl Rule<'_> {
    fn new_part(&self) -> Option<Tree> {
        self.substitute.map(|tree| Tree {
            fixed: true,
            ..tree.clone()
        })
    }

    /// Replaces a tree, or some of its operands.
    fn replace(&self, mut tree: Tree) -> Result<Option<Tree>> {
        let is_operand = |tree: &Tree| matches!(tree.node, Node::Operand(_));
        if tree.fixed || is_operand(&tree) != is_operand(self.target) {
            return Ok(Some(tree));
        }
        let same = std::mem::discriminant(&tree.node) == std::mem::discriminant(&self.target.node);
        if !same {
            return Ok(Some(tree));
        }
        let (own, wanted) = (tree.children.len(), self.target.children.len());
        if own == wanted {
            return Ok(match compare(&tree, self.target)? {
                Ordering::Equal => self.new_part(),
                _ => Some(tree),
            });
        }
        if own < wanted || wanted == 0 {
            return Ok(Some(tree));
        }
        let mut matched = vec![false; own];
        let (mut at, mut found) = (0, 0);
        while at < own && found < wanted {
            match compare(&tree.children[at], &self.target.children[found])? {
                Ordering::Equal => {
                    matched[at] = true;
                    at += 1;
                    found += 1;
                }
                Ordering::Less => at += 1,
                Ordering::Greater => break,
            }
        }
        if found == wanted {
            let mut matched = matched.into_iter();
            tree.children
                .retain(|_| !matched.next().unwrap_or_default());
            tree.children.extend(self.new_part());
            tree.sort()?;
        }
        Ok(Some(tree))
    }

    fn apply(&self, tree: Tree) -> Result<Option<Tree>> {
        coro::check_depth()?;
        coro::work(16)?;
        let Some(mut tree) = self.replace(tree)? else {
            return Ok(None);
        };
        if tree.fixed || matches!(tree.node, Node::Operand(_)) {
            return Ok(Some(tree));
        }
        let mut children = Vec::with_capacity(tree.children.len());
        for child in std::mem::take(&mut tree.children) {
            children.extend(self.apply(child)?);
        }
        if children.len() == 1 && tree.node != Node::Not {
            return Ok(children.pop());
        }
        tree.children = children;
        Ok((!tree.children.is_empty()).then_some(tree))
    }
}

/// `ts_rewrite(query, target, substitute)`.
pub(crate) fn rewrite(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (own, target, substitute) = (query(args, 0)?, query(args, 1)?, query(args, 2)?);
    if own.is_empty() || target.is_empty() {
        return Ok(own.into_datum());
    }
    let tree = |query: &Query| -> Result<Tree> {
        let mut tree = Tree::of(query, 0)?;
        tree.flatten()?;
        tree.sort()?;
        Ok(tree)
    };
    let substitute = match substitute.is_empty() {
        true => None,
        false => Some(Tree::of(&substitute, 0)?),
    };
    let target = tree(&target)?;
    let rule = Rule {
        target: &target,
        substitute: substitute.as_ref(),
    };
    let mut nodes = Vec::new();
    if let Some(tree) = rule.apply(tree(&own)?)? {
        tree.append_to(&mut nodes)?;
    }
    Query::of(nodes).map(Query::into_datum)
}
