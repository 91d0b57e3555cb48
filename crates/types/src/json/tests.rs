//! Random values: there and back, and their order beside one that is computed from a tree.

use std::cmp::Ordering;

use base::error::SqlState;
use base::jsonb::{Value, View};
use base::key::{put_key_column, ColumnOrder, KeyKind};

use super::{compare, hash_into, input_jsonb, parse::DEPTH_MAX, to_text};
use crate::Datum;

/// A value as a tree, the order of whose kinds is PostgreSQL's.
#[derive(Clone, Debug)]
enum Tree {
    Null,
    String(String),
    Number(i64),
    Bool(bool),
    Array(Vec<Tree>),
    /// Keys by length, then by bytes, each once.
    Object(Vec<(String, Tree)>),
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn text(&mut self) -> String {
        const ALL: [&str; 8] = ["", "a", "b", "ab", "B", "ä", "\"\\\n", "a\u{1}b"];
        ALL[self.below(8) as usize].to_owned()
    }

    fn tree(&mut self, depth: u64) -> Tree {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => Tree::Null,
            1 => Tree::String(self.text()),
            2 => Tree::Number(self.below(30) as i64 - 15),
            3 => Tree::Bool(self.below(2) == 1),
            4 => Tree::Array((0..self.below(4)).map(|_| self.tree(depth - 1)).collect()),
            _ => {
                let mut members: Vec<_> = (0..self.below(4))
                    .map(|_| (self.text(), self.tree(depth - 1)))
                    .collect();
                members.sort_by(|a, b| (a.0.len(), &a.0).cmp(&(b.0.len(), &b.0)));
                members.dedup_by(|a, b| a.0 == b.0);
                Tree::Object(members)
            }
        }
    }
}

impl Tree {
    fn text(&self, out: &mut String) {
        match self {
            Tree::Null => out.push_str("null"),
            Tree::String(text) => super::write_string(text, out),
            Tree::Number(number) => out.push_str(&number.to_string()),
            Tree::Bool(value) => out.push_str(&value.to_string()),
            Tree::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    element.text(out);
                }
                out.push(']');
            }
            Tree::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    super::write_string(key, out);
                    out.push_str(": ");
                    value.text(out);
                }
                out.push('}');
            }
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Tree::Null => 0,
            Tree::String(_) => 1,
            Tree::Number(_) => 2,
            Tree::Bool(_) => 3,
            Tree::Array(_) => 4,
            Tree::Object(_) => 5,
        }
    }

    fn order(&self, other: &Tree) -> Ordering {
        match (self, other) {
            (Tree::String(a), Tree::String(b)) => a.cmp(b),
            (Tree::Number(a), Tree::Number(b)) => a.cmp(b),
            (Tree::Bool(a), Tree::Bool(b)) => a.cmp(b),
            (Tree::Array(a), Tree::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
                let pairs = a.iter().zip(b).map(|(a, b)| a.order(b));
                pairs.fold(Ordering::Equal, Ordering::then)
            }),
            (Tree::Object(a), Tree::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
                let pairs = a.iter().zip(b);
                let pairs = pairs.map(|(a, b)| a.0.cmp(&b.0).then_with(|| a.1.order(&b.1)));
                pairs.fold(Ordering::Equal, Ordering::then)
            }),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// An empty array at the top is below all.
    fn order_at_top(&self, other: &Tree) -> Ordering {
        let empty = |tree: &Tree| matches!(tree, Tree::Array(elements) if elements.is_empty());
        empty(other)
            .cmp(&empty(self))
            .then_with(|| self.order(other))
    }
}

fn bytes(text: &str) -> std::sync::Arc<[u8]> {
    match input_jsonb(text) {
        Ok(Datum::Jsonb(bytes)) => bytes,
        other => panic!("{text}: {other:?}"),
    }
}

fn hash(bytes: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    hash_into(bytes, &mut hasher);
    hasher.finish()
}

#[test]
fn values_come_back_and_are_ordered_as_postgresql_orders_them() {
    let mut random = Random(7);
    let made: Vec<_> = (0..300)
        .map(|_| {
            let tree = random.tree(3);
            let mut text = String::new();
            tree.text(&mut text);
            let bytes = bytes(&text);
            assert_eq!(to_text(Value(&bytes)).unwrap(), text);
            (tree, bytes, text)
        })
        .collect();
    let key = |bytes: &[u8], order| {
        let mut key = Vec::new();
        put_key_column(&mut key, KeyKind::Jsonb, order, Some(bytes)).unwrap();
        key
    };
    for (a, a_bytes, a_text) in &made {
        for (b, b_bytes, b_text) in &made {
            let wanted = a.order_at_top(b);
            let of = || format!("{a_text} and {b_text}");
            assert_eq!(compare(a_bytes, b_bytes), wanted, "{}", of());
            assert_eq!(
                key(a_bytes, ColumnOrder::ASCENDING).cmp(&key(b_bytes, ColumnOrder::ASCENDING)),
                wanted,
                "{}",
                of()
            );
            assert_eq!(
                key(b_bytes, ColumnOrder::DESCENDING).cmp(&key(a_bytes, ColumnOrder::DESCENDING)),
                wanted,
                "{}",
                of()
            );
            if wanted.is_eq() {
                assert_eq!(hash(a_bytes), hash(b_bytes), "{}", of());
            }
        }
    }
}

#[test]
fn a_key_is_found_and_the_last_of_its_members_stays() {
    let value = bytes(r#"{"b": 1, "aa": [1, "x"], "c": null, "b": {"d": true}, "": 0}"#);
    let View::Object(object) = Value(&value).view() else {
        panic!("no object");
    };
    let keys: Vec<_> = object.iter().map(|member| member.0).collect();
    assert_eq!(keys, ["", "b", "c", "aa"]);
    let text = |key| object.get(key).map(|value| to_text(value).unwrap());
    assert_eq!(text("b").as_deref(), Some(r#"{"d": true}"#));
    assert_eq!(text("aa").as_deref(), Some(r#"[1, "x"]"#));
    assert_eq!(text("").as_deref(), Some("0"));
    assert_eq!(text("bb"), None);
}

#[test]
fn numbers_are_equal_whatever_their_scale_and_keep_it() {
    let (a, b) = (bytes("[1.50, 0]"), bytes("[1.5, 0.0]"));
    assert_eq!(to_text(Value(&a)).unwrap(), "[1.50, 0]");
    assert_eq!(compare(&a, &b), Ordering::Equal);
    assert_eq!(hash(&a), hash(&b));
}

#[test]
fn deep_values_are_read_and_written_and_deeper_ones_refused() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let value = bytes(&nested(DEPTH_MAX));
    assert_eq!(to_text(Value(&value)).unwrap(), nested(DEPTH_MAX));
    assert_eq!(
        compare(&value, &bytes(&nested(DEPTH_MAX - 1))),
        Ordering::Greater
    );
    for text in [nested(DEPTH_MAX + 1), "{\"a\":".repeat(DEPTH_MAX + 1)] {
        let error = input_jsonb(&text).unwrap_err();
        assert_eq!(error.state(), SqlState::STATEMENT_TOO_COMPLEX);
        assert!(super::input_json(&text).is_err());
    }
}

#[test]
fn bytes_that_are_no_value_are_read_without_a_panic() {
    let value = bytes(r#"{"a": [1, {"b": "c"}], "dd": null}"#);
    let mut random = Random(3);
    for _ in 0..2_000 {
        let mut broken = value.to_vec();
        let at = random.below(broken.len() as u64) as usize;
        broken[at] = random.below(256) as u8;
        broken.truncate(1 + random.below(broken.len() as u64) as usize);
        let steps = Value(&broken).walk().take(1_000).count();
        assert!(steps > 0);
        let mut key = Vec::new();
        let _ = base::jsonb::put_key(&mut key, &broken);
    }
}
