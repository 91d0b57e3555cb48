//! What PostgreSQL's catalog says of built-in functions, operators and types, and nothing else here
//! needs to know: sources, costs, how arguments are written, descriptions. `facts.txt` lists it.

use std::sync::OnceLock;

use base::hash::HashMap;

use crate::cluster::Address;

const LISTED: &str = include_str!("facts.txt");

/// The oid of `pg_operator`.
pub const OPERATOR: u32 = 2_617;

/// What is known of a function.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// `prosrc`.
    pub source: &'static str,
    /// `proparallel`.
    pub parallel: u8,
    /// `proleakproof`.
    pub leakproof: bool,
    /// `procost`.
    pub cost: f32,
    /// `prorows`.
    pub rows: f32,
    /// What `pg_get_function_arguments` says.
    pub arguments: &'static str,
    /// What `pg_get_function_result` says.
    pub result: &'static str,
    /// `proargnames`, separated by commas; empty where there are none.
    pub names: &'static str,
}

#[derive(Default)]
struct Facts {
    functions: HashMap<u32, Fact>,
    descriptions: HashMap<Address, &'static str>,
    /// In the order of the list.
    described: Vec<(Address, &'static str)>,
}

fn facts() -> &'static Facts {
    static READ: OnceLock<Facts> = OnceLock::new();
    READ.get_or_init(|| {
        let mut facts = Facts::default();
        for line in LISTED.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<_> = line.split('\t').collect();
            read(&mut facts, &fields);
        }
        facts
    })
}

fn read(facts: &mut Facts, fields: &[&'static str]) {
    let [kind, oid, .., description] = fields else {
        panic!("not a fact: {fields:?}");
    };
    let oid: u32 = oid.parse().expect("an oid");
    if let ["f", _, source, parallel, leakproof, cost, rows, arguments, result, names, _] = fields {
        let fact = Fact {
            source,
            parallel: parallel.as_bytes()[0],
            leakproof: *leakproof == "t",
            cost: cost.parse().expect("a cost"),
            rows: rows.parse().expect("a number of rows"),
            arguments,
            result,
            names,
        };
        facts.functions.insert(oid, fact);
    }
    if *description == "\\N" {
        return;
    }
    let class = match *kind {
        "f" => Address::PROC,
        "o" => OPERATOR,
        _ => Address::TYPE,
    };
    let address = Address::of(class, oid);
    facts.descriptions.insert(address, description);
    facts.described.push((address, description));
}

/// What is known of a function.
pub fn of_function(oid: u32) -> Option<&'static Fact> {
    facts().functions.get(&oid)
}

/// The comment on a built-in object.
pub fn description(address: Address) -> Option<&'static str> {
    facts().descriptions.get(&address).copied()
}

/// All comments.
pub fn descriptions() -> impl Iterator<Item = (Address, &'static str)> {
    facts().described.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_listed() {
        let functions = functions::all_functions().map(|function| (function.oid, function.name));
        let aggregates = functions::all_aggregates().map(|known| (known.oid, known.name));
        let unlisted: Vec<_> = functions
            .chain(aggregates)
            .chain(functions::all_windows().map(|known| (known.oid, known.name)))
            .filter(|(oid, _)| of_function(*oid).is_none())
            // PostgreSQL has none of these.
            .filter(|(_, name)| !name.starts_with("quorate."))
            .collect();
        assert!(unlisted.is_empty(), "not in facts.txt: {unlisted:?}");
    }
}
