//! Exclusion constraints: no two rows of which all these operators hold.
//!
//! ```text
//! exclude using gist (during with &&, room with =)
//!
//!   keys as they are given:   during │ room          operators:  && │ =
//!   keys of its entries:      room │ during          5 │ [1,4) │ row 7
//!                                                    5 │ [4,6) │ row 9
//! ```
//! Such an index is a computed one that is not unique. In its entries the keys whose operator is `=`
//! come first ([`Index::stored_order`]): what a row may conflict with has one beginning, and only there
//! is it looked for (`execution::exec::exclusion`).
//!
//! # Invariants
//! - There is an operator for each key. It is its own commutator, and of the operator class's family.
//! - Equal keys have equal bytes, so `=` holds of two rows whose entries begin with the same keys.
//! - A row with a NULL among its keys conflicts with none.
//!
//! # What it leaves out
//! Operators other than those of the classes that a tree serves ([`super::operator_class`]).

use base::codec::{put_varint, Reader};
use base::Result;

use super::lists::read_list;
use super::operator_class::{
    OperatorClass, BTREE_GIST_FAMILIES, GIST, HASH, NETWORK_OPS_GIST, NETWORK_OPS_SPGIST, SPGIST,
};
use super::Index;
use crate::layout::BTREE;
use functions::Operator;

/// What the index of an exclusion constraint has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusion {
    /// The oid of the operator of each key, in the order of the keys.
    pub operators: Vec<u32>,
    /// Whether it can be looked at later than when a row is written.
    pub deferrable: bool,
    /// Whether it is deferred until SET CONSTRAINTS says otherwise.
    pub initially_deferred: bool,
}

impl Exclusion {
    /// The operator of a key.
    pub fn operator(&self, key: usize) -> Option<&'static Operator> {
        functions::any_operator_by_oid(*self.operators.get(key)?)
    }

    /// Whether the operator of a key is equality.
    pub fn is_equality(&self, key: usize) -> bool {
        self.operator(key).is_some_and(|own| own.name == "=")
    }
}

impl Index {
    /// The places of its keys in the order in which its entries have them.
    pub fn stored_order(&self) -> Vec<usize> {
        let mut places: Vec<_> = (0..self.key_count()).collect();
        if let Some(exclusion) = &self.exclusion {
            places.sort_by_key(|place| !exclusion.is_equality(*place));
        }
        places
    }

    /// Whether its entries have its keys in another order than it.
    pub fn is_reordered(&self) -> bool {
        self.exclusion.is_some() && !self.stored_order().is_sorted()
    }

    /// Whether its constraint can be looked at later than when a row is written.
    pub fn is_deferrable(&self) -> bool {
        let exclusion = self.exclusion.as_ref();
        self.checked.is_some() || exclusion.is_some_and(|exclusion| exclusion.deferrable)
    }
}

/// Whether an operator that commutes with itself is of the family of a class.
pub fn is_of_family(operator: &Operator, class: &OperatorClass) -> bool {
    let with_order = class.name == "range_ops" || class.name == "multirange_ops";
    match (operator.name, class.method) {
        ("=", BTREE | HASH) => true,
        ("=", SPGIST) => true,
        ("=", GIST) => is_of_scalars(class) || with_order || class.family == NETWORK_OPS_GIST,
        ("<>", GIST) if is_of_scalars(class) => true,
        ("<>" | "&&", GIST | SPGIST) if is_of_network(class) => true,
        ("&&" | "-|-", GIST | SPGIST) => with_order,
        _ => false,
    }
}

fn is_of_scalars(class: &OperatorClass) -> bool {
    BTREE_GIST_FAMILIES.contains(&class.family)
}

fn is_of_network(class: &OperatorClass) -> bool {
    matches!(class.family, NETWORK_OPS_GIST | NETWORK_OPS_SPGIST)
}

/// Appends the stored form: the operators, then 1 for what is deferrable and 2 for what is deferred at
/// first.
pub fn encode(exclusion: &Exclusion, out: &mut Vec<u8>) {
    put_varint(out, exclusion.operators.len() as u64);
    for operator in &exclusion.operators {
        put_varint(out, u64::from(*operator));
    }
    out.push(u8::from(exclusion.deferrable) | u8::from(exclusion.initially_deferred) << 1);
}

/// Reads what [`encode`] made.
///
/// # Errors
/// XX001 when nothing is left.
pub fn decode(reader: &mut Reader<'_>) -> Result<Exclusion> {
    let operators = read_list(reader, |reader| reader.varint_as())?;
    let flags = reader.u8()?;
    Ok(Exclusion {
        operators,
        deferrable: flags & 1 != 0,
        initially_deferred: flags & 2 != 0,
    })
}
