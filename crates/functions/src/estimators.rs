//! What estimates how many rows an operator selects: functions that only operators of users name, since nothing
//! here calls them.
//!
//! ```text
//! create operator === (…, restrict = eqsel, join = eqjoinsel)
//! ```
//! They take arguments of type `internal`, so nobody can make one, and no expression can call one.

use types::TypeId;

/// Such a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimator {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// Whether it is for joins, rather than for conditions.
    pub of_joins: bool,
}

/// The arguments of those for conditions.
pub const OF_ROWS: [TypeId; 4] = [
    TypeId::INTERNAL,
    TypeId::OID,
    TypeId::INTERNAL,
    TypeId::INT4,
];
/// The arguments of those for joins.
pub const OF_JOINS: [TypeId; 5] = [
    TypeId::INTERNAL,
    TypeId::OID,
    TypeId::INTERNAL,
    TypeId::INT2,
    TypeId::INTERNAL,
];

/// By OID.
const ALL: &[Estimator] = &[
    of_rows(101, "eqsel"),
    of_rows(102, "neqsel"),
    of_rows(103, "scalarltsel"),
    of_rows(104, "scalargtsel"),
    of_joins(105, "eqjoinsel"),
    of_joins(106, "neqjoinsel"),
    of_joins(107, "scalarltjoinsel"),
    of_joins(108, "scalargtjoinsel"),
    of_rows(139, "areasel"),
    of_joins(140, "areajoinsel"),
    of_rows(336, "scalarlesel"),
    of_rows(337, "scalargesel"),
    of_joins(386, "scalarlejoinsel"),
    of_joins(398, "scalargejoinsel"),
    of_rows(1300, "positionsel"),
    of_joins(1301, "positionjoinsel"),
    of_rows(1302, "contsel"),
    of_joins(1303, "contjoinsel"),
    of_rows(1814, "iclikesel"),
    of_rows(1815, "icnlikesel"),
    of_joins(1816, "iclikejoinsel"),
    of_joins(1817, "icnlikejoinsel"),
    of_rows(1818, "regexeqsel"),
    of_rows(1819, "likesel"),
    of_rows(1820, "icregexeqsel"),
    of_rows(1821, "regexnesel"),
    of_rows(1822, "nlikesel"),
    of_rows(1823, "icregexnesel"),
    of_joins(1824, "regexeqjoinsel"),
    of_joins(1825, "likejoinsel"),
    of_joins(1826, "icregexeqjoinsel"),
    of_joins(1827, "regexnejoinsel"),
    of_joins(1828, "nlikejoinsel"),
    of_joins(1829, "icregexnejoinsel"),
    of_rows(3169, "rangesel"),
    of_rows(3437, "prefixsel"),
    of_joins(3438, "prefixjoinsel"),
    of_rows(3560, "networksel"),
    of_joins(3561, "networkjoinsel"),
    of_rows(3686, "tsmatchsel"),
    of_joins(3687, "tsmatchjoinsel"),
    of_rows(3817, "arraycontsel"),
    of_joins(3818, "arraycontjoinsel"),
    of_rows(4243, "multirangesel"),
    of_rows(5040, "matchingsel"),
    of_joins(5041, "matchingjoinsel"),
];

const fn of_rows(oid: u32, name: &'static str) -> Estimator {
    Estimator {
        oid,
        name,
        of_joins: false,
    }
}

const fn of_joins(oid: u32, name: &'static str) -> Estimator {
    Estimator {
        oid,
        name,
        of_joins: true,
    }
}

impl Estimator {
    /// The types of its arguments.
    pub fn arguments(&self) -> &'static [TypeId] {
        match self.of_joins {
            true => &OF_JOINS,
            false => &OF_ROWS,
        }
    }

    /// `eqsel(internal,oid,internal,integer)`.
    pub fn signature(&self) -> String {
        let types: Vec<_> = self.arguments().iter().map(TypeId::to_string).collect();
        format!("{}({})", self.name, types.join(","))
    }
}

/// The one of that name, for joins or not.
pub fn named(name: &str, of_joins: bool) -> Option<&'static Estimator> {
    let mut all = ALL.iter();
    all.find(|known| (known.name, known.of_joins) == (name, of_joins))
}

/// The one of that OID.
pub fn by_oid(oid: u32) -> Option<&'static Estimator> {
    let place = ALL.binary_search_by_key(&oid, |known| known.oid);
    place.ok().map(|place| &ALL[place])
}
