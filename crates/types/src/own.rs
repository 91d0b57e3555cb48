//! OIDs of types of one's own, which say by themselves what they are.
//!
//! Most of the system asks a type for its category, its array or its element without a catalog at
//! hand, so these follow from the OID. Only what a user has said of the type (labels, constraints,
//! its name) is a row of the catalog.
//!
//! ```text
//!  31 30 29 28 ... 26 25 24 ............. 0
//!   0  1  0   kind     A      number            a type that CREATE TYPE or CREATE DOMAIN makes
//!   0  1  1  A         oid of the table         the type of a table's rows
//!   0  1  0  1 M S  A  which one                a range, or a multirange where M is set
//! ```
//! The kinds are enums, domains, composite types and, 3, what extensions bring, whose numbers are
//! given here ([`BASE_TYPES`]).
//!
//! Of a range, what it is over must follow from its OID too. Where that is a built-in type, its OID
//! stands in the number, before one of [`RANGES_MAX`] places. Where it is a type of one's own (`S`),
//! its kind and its number do, before one of [`RANGES_OVER_OWN_MAX`].
//!
//! `A` is set in the type of arrays over it. The number is counted, as OIDs are, and never given
//! again. Bit 31 is never set: some clients read OIDs as signed numbers.
//!
//! An enum's value is a *place*, a number that only has to lie between those of its neighbours
//! (`Datum::Unsigned8`): so values are compared, hashed and put into keys as any number, a label can
//! get another name for free, and one can be added between two others ([`between`]) without touching
//! a row.
//!
//! Without a catalog such a type has no name: what [`TypeId`]'s `Display` writes stands for it, until
//! [`super::EvalContext::name_types`] puts the name in its place, where a text leaves for somebody
//! who reads it.
//!
//! # What it leaves out
//! Places have 64 bits, of which 40 lie between two labels at first: more than 40 labels added one
//! after the other between the newest two are refused ([`between`] gives none), where PostgreSQL
//! would count its labels anew.
//!
//! Ranges over domains, over tables' rows, over other ranges of one's own and over arrays of one's own
//! types have no OID, and neither have those over types whose number has more than
//! [`OVER_OWN_BITS`] bits.

use super::{Category, TypeId};

/// Set in the OIDs of all types of one's own.
const OWN: u32 = 1 << 30;
/// Set in those of tables' rows.
const ROW: u32 = 1 << 29;
const ROW_ARRAY: u32 = 1 << 28;
const KIND_SHIFT: u32 = 26;
const ARRAY: u32 = 1 << 25;
/// The highest number of a type, and the highest OID of a table whose rows have a type.
pub const NUMBER_MAX: u32 = ARRAY - 1;
const ROW_MAX: u32 = ROW_ARRAY - 1;

/// What a type of one's own is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnKind {
    /// A list of labels.
    Enum,
    /// Another type, with constraints.
    Domain,
    /// Several columns.
    Composite,
    /// The rows of a table.
    Row,
    /// A type that an extension brings: its number says which of [`BASE_TYPES`].
    Base,
    /// What lies between two values of another type.
    Range,
    /// A list of such.
    Multirange,
}

/// Set in the OIDs of ranges and multiranges.
const OF_RANGES: u32 = 1 << 28;
/// Set in those of multiranges.
const LIST: u32 = 1 << 27;
/// Set where the values are of a type of one's own.
const OVER_OWN: u32 = 1 << 26;
/// So many ranges there can be over a built-in type.
pub const RANGES_MAX: u32 = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 12;
/// So many there can be over a type of one's own.
pub const RANGES_OVER_OWN_MAX: u32 = 2;
/// So many bits a type's number may have.
const OVER_OWN_BITS: u32 = 22;

/// A type that an extension brings. What it is like is built in; that it is there, in which schema
/// and under which name, a row of the catalog says, as of any type of one's own.
#[derive(Clone, Copy, Debug)]
pub struct BaseType {
    /// Its OID, which is the same in all databases.
    pub id: TypeId,
    /// How its extension calls it.
    pub name: &'static str,
    /// `typcategory`.
    pub category: Category,
}

/// All of them, in the order of their numbers.
pub const BASE_TYPES: &[BaseType] = &[
    BaseType {
        id: TypeId::CITEXT,
        name: "citext",
        category: Category::String,
    },
    BaseType {
        id: TypeId::HSTORE,
        name: "hstore",
        category: Category::User,
    },
    BaseType {
        id: TypeId::VECTOR,
        name: "vector",
        category: Category::User,
    },
    BaseType {
        id: TypeId::HALFVEC,
        name: "halfvec",
        category: Category::User,
    },
    BaseType {
        id: TypeId::SPARSEVEC,
        name: "sparsevec",
        category: Category::User,
    },
    BaseType {
        id: TypeId::LTREE,
        name: "ltree",
        category: Category::User,
    },
    BaseType {
        id: TypeId::LQUERY,
        name: "lquery",
        category: Category::User,
    },
    BaseType {
        id: TypeId::LTXTQUERY,
        name: "ltxtquery",
        category: Category::User,
    },
];

const BASE: u32 = OWN | 3 << KIND_SHIFT;

impl TypeId {
    /// `citext`: text that is compared without regard to case.
    pub const CITEXT: TypeId = TypeId(BASE | 1);
    /// `hstore`: keys with values, all of them texts.
    pub const HSTORE: TypeId = TypeId(BASE | 2);
    /// `vector`: numbers of 32 bits.
    pub const VECTOR: TypeId = TypeId(BASE | 3);
    /// `halfvec`: numbers of 16 bits.
    pub const HALFVEC: TypeId = TypeId(BASE | 4);
    /// `sparsevec`: numbers of 32 bits, most of which are zero.
    pub const SPARSEVEC: TypeId = TypeId(BASE | 5);
    /// `ltree`: a path of labels.
    pub const LTREE: TypeId = TypeId(BASE | 6);
    /// `ltree[]`.
    pub const LTREE_ARRAY: TypeId = TypeId(BASE | 6 | ARRAY);
    /// `lquery`: what such a path is to look like.
    pub const LQUERY: TypeId = TypeId(BASE | 7);
    /// `lquery[]`.
    pub const LQUERY_ARRAY: TypeId = TypeId(BASE | 7 | ARRAY);
    /// `ltxtquery`: which labels are to be in it.
    pub const LTXTQUERY: TypeId = TypeId(BASE | 8);

    /// What is known of a type that an extension brings.
    pub fn base_type(self) -> Option<&'static BaseType> {
        BASE_TYPES.iter().find(|known| known.id == self)
    }

    /// Whether it is a type that an extension brings, or an array over one.
    pub fn is_of_extension(self) -> bool {
        let own = self.own_element().unwrap_or(self);
        own.own_kind() == Some(OwnKind::Base)
    }

    /// What it is called where no catalog is at hand and the name must stay what it is.
    pub fn fixed_name(self) -> String {
        self.base_type()
            .map_or_else(|| self.to_string(), |base| base.name.to_owned())
    }

    /// The type of that kind and number; none if there are no more numbers.
    pub fn own(kind: OwnKind, number: u32) -> Option<TypeId> {
        let (bits, max) = match kind {
            OwnKind::Enum => (0, NUMBER_MAX),
            OwnKind::Domain => (1 << KIND_SHIFT, NUMBER_MAX),
            OwnKind::Composite => (2 << KIND_SHIFT, NUMBER_MAX),
            OwnKind::Row => (ROW, ROW_MAX),
            OwnKind::Base => (3 << KIND_SHIFT, NUMBER_MAX),
            // They are made of what they are over.
            OwnKind::Range | OwnKind::Multirange => return None,
        };
        (number <= max).then_some(TypeId(OWN | bits | number))
    }

    /// The range over that type with that place among them; none if there can be none.
    pub fn own_range(element: TypeId, place: u32) -> Option<TypeId> {
        let head = OWN | OF_RANGES;
        if !element.is_own() {
            let fits = element.0 <= NUMBER_MAX >> PLACE_BITS && place < RANGES_MAX;
            return fits.then_some(TypeId(head | element.0 << PLACE_BITS | place));
        }
        let kind = match element.own_kind()? {
            OwnKind::Enum => 0,
            OwnKind::Composite => 2,
            OwnKind::Base => 3,
            OwnKind::Domain | OwnKind::Row | OwnKind::Range | OwnKind::Multirange => return None,
        };
        let number = element.own_number();
        let fits = number >> OVER_OWN_BITS == 0 && place < RANGES_OVER_OWN_MAX;
        let said = (kind << OVER_OWN_BITS | number) * RANGES_OVER_OWN_MAX + place;
        fits.then_some(TypeId(head | OVER_OWN | said))
    }

    /// How many ranges there can be over that type.
    pub const fn ranges_max(self) -> u32 {
        match self.is_own() {
            true => RANGES_OVER_OWN_MAX,
            false => RANGES_MAX,
        }
    }

    /// What a range of one's own, or a multirange, is over.
    pub(crate) fn own_range_element(self) -> Option<TypeId> {
        let kind = self.own_kind()?;
        if !matches!(kind, OwnKind::Range | OwnKind::Multirange) {
            return None;
        }
        let said = self.0 & NUMBER_MAX;
        if self.0 & OVER_OWN == 0 {
            return Some(TypeId(said >> PLACE_BITS));
        }
        let of = said / RANGES_OVER_OWN_MAX;
        let number = of & ((1 << OVER_OWN_BITS) - 1);
        Some(TypeId(OWN | of >> OVER_OWN_BITS << KIND_SHIFT | number))
    }

    /// The multirange of a range of one's own.
    pub(crate) fn own_multirange(self) -> Option<TypeId> {
        let is_range = self.own_kind() == Some(OwnKind::Range);
        is_range.then_some(TypeId(self.0 | LIST))
    }

    /// The range of a multirange of one's own.
    pub(crate) fn own_range_of_multirange(self) -> Option<TypeId> {
        let is_list = self.own_kind() == Some(OwnKind::Multirange);
        is_list.then_some(TypeId(self.0 & !LIST))
    }

    /// Whether it is a type of one's own, or an array over one.
    pub const fn is_own(self) -> bool {
        self.0 >> 30 == 1
    }

    const fn array_bit(self) -> u32 {
        match self.0 & ROW {
            0 => ARRAY,
            _ => ROW_ARRAY,
        }
    }

    const fn is_own_array(self) -> bool {
        self.is_own() && self.0 & self.array_bit() != 0
    }

    /// What it is, if it is a type of one's own; an array over one is none.
    pub fn own_kind(self) -> Option<OwnKind> {
        if !self.is_own() || self.is_own_array() {
            return None;
        }
        match self.0 & ROW {
            0 => match self.0 >> KIND_SHIFT & 7 {
                0 => Some(OwnKind::Enum),
                1 => Some(OwnKind::Domain),
                2 => Some(OwnKind::Composite),
                3 => Some(OwnKind::Base),
                4 | 5 => Some(OwnKind::Range),
                _ => Some(OwnKind::Multirange),
            },
            _ => Some(OwnKind::Row),
        }
    }

    /// The array over a type of one's own.
    pub(crate) fn own_array(self) -> Option<TypeId> {
        self.own_kind().map(|_| TypeId(self.0 | self.array_bit()))
    }

    /// What an array over a type of one's own has as elements.
    pub(crate) fn own_element(self) -> Option<TypeId> {
        self.is_own_array()
            .then(|| TypeId(self.0 & !self.array_bit()))
    }

    /// Its number, or the oid of its table; of an array that of its elements.
    pub const fn own_number(self) -> u32 {
        match self.0 & ROW {
            0 => self.0 & NUMBER_MAX,
            _ => self.0 & ROW_MAX,
        }
    }

    /// Whether it is a domain, or an array over one.
    pub fn is_of_domain(self) -> bool {
        let own = self.own_element().unwrap_or(self);
        own.own_kind() == Some(OwnKind::Domain)
    }

    /// Whether its values are rows of columns that the catalog knows.
    pub fn is_composite(self) -> bool {
        matches!(self.own_kind(), Some(OwnKind::Composite | OwnKind::Row))
    }

    /// Whether its values are labels of an enum.
    pub fn is_enum(self) -> bool {
        self.own_kind() == Some(OwnKind::Enum)
    }
}

/// How far places of labels are from one another when an enum is made.
const STEP: u64 = 1 << 40;
/// The place of the first label: as many may come before as after.
const FIRST: u64 = 1 << 63;

/// The places of so many labels.
pub fn places(count: usize) -> Vec<u64> {
    (0..count as u64).map(|at| FIRST + at * STEP).collect()
}

/// A place between two others, of which either may be missing; none if there is no room.
pub fn between(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    match (before, after) {
        (None, None) => Some(FIRST),
        (Some(before), None) => before.checked_add(STEP),
        (None, Some(after)) => after.checked_sub(STEP),
        (Some(before), Some(after)) => {
            let middle = before + (after.checked_sub(before)?) / 2;
            (middle > before).then_some(middle)
        }
    }
}

/// A label as text that is kept has it, which goes on meaning the same when the label gets another
/// name: longer than any label can be, so that it is none.
pub fn kept_label(kind: TypeId, place: u64) -> String {
    format!("{:#<64}", format!("#{}:{place}:", kind.0))
}

/// The enum and the place that kept text names so.
pub fn parse_kept_label(text: &str) -> Option<(TypeId, u64)> {
    let (kind, rest) = text.strip_prefix('#')?.split_once(':')?;
    let (place, _) = rest.split_once(':')?;
    let found = (TypeId(kind.parse().ok()?), place.parse().ok()?);
    (kept_label(found.0, found.1) == text).then_some(found)
}

/// What stands before and behind the number of a type whose name is not known yet. No name has such
/// a character, and no other text that a message is made of.
pub(crate) const MARK: char = '\u{1}';

/// The text with names in the places of types; `???` for one that is gone.
pub(crate) fn name_types(text: &str, name_of: impl Fn(u32) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for (place, part) in text.split(MARK).enumerate() {
        match part.parse() {
            Ok(oid) if place % 2 == 1 => {
                out.push_str(&name_of(oid).unwrap_or_else(|| "???".to_owned()));
            }
            _ => out.push_str(part),
        }
    }
    out
}

/// Whether a text has places for names of types.
pub(crate) fn has_types(text: &str) -> bool {
    text.contains(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Category;

    #[test]
    fn oids_say_what_they_are() {
        let kinds = [
            (OwnKind::Enum, Category::Enum),
            (OwnKind::Composite, Category::Composite),
            (OwnKind::Row, Category::Composite),
            (OwnKind::Base, Category::User),
        ];
        for (kind, category) in kinds {
            for number in [0, 1, 16_384, NUMBER_MAX] {
                let own = TypeId::own(kind, number).unwrap();
                assert!(own.0 < 1 << 31);
                assert_eq!(own.own_kind(), Some(kind));
                if own.base_type().is_none() {
                    assert_eq!(own.category(), category);
                }
                assert_eq!(own.array_element(), None);
                let array = own.array_of().unwrap();
                assert_eq!(array.array_element(), Some(own));
                assert_eq!(array.category(), Category::Array);
                assert_eq!((array.array_of(), array.own_kind()), (None, None));
            }
        }
        assert_eq!(TypeId::own(OwnKind::Enum, NUMBER_MAX + 1), None);
        assert!(!TypeId::INT4.is_own() && !TypeId::INT4_ARRAY.is_own());
    }

    #[test]
    fn ranges_say_what_they_are_over() {
        let enumerated = TypeId::own(OwnKind::Enum, (1 << OVER_OWN_BITS) - 1).unwrap();
        let rows = TypeId::own(OwnKind::Composite, 16_384).unwrap();
        for element in [
            TypeId::FLOAT8,
            TypeId::INT4_ARRAY,
            enumerated,
            rows,
            TypeId::CITEXT,
        ] {
            for place in [0, 1, element.ranges_max() - 1] {
                let range = TypeId::own_range(element, place).unwrap();
                let multirange = range.range_multirange().unwrap();
                assert_eq!(range.own_kind(), Some(OwnKind::Range));
                assert_eq!(multirange.own_kind(), Some(OwnKind::Multirange));
                assert_eq!(range.range_element(), Some(element));
                assert_eq!(multirange.multirange_range(), Some(range));
                assert_eq!(multirange.multirange_element(), Some(element));
                for own in [range, multirange] {
                    assert_eq!(own.category(), Category::Range);
                    let array = own.array_of().unwrap();
                    assert_eq!(array.array_element(), Some(own));
                    assert!(!array.is_range() && !array.is_multirange());
                }
            }
            assert_eq!(TypeId::own_range(element, element.ranges_max()), None);
        }
        let later = TypeId::own(OwnKind::Enum, 1 << OVER_OWN_BITS).unwrap();
        let range = TypeId::own_range(TypeId::FLOAT8, 0).unwrap();
        let domain = TypeId::own(OwnKind::Domain, 1).unwrap();
        for none in [later, range, domain, rows.array_of().unwrap()] {
            assert_eq!(TypeId::own_range(none, 0), None);
        }
    }

    #[test]
    fn types_of_extensions_are_known_by_their_numbers() {
        for (base, number) in BASE_TYPES.iter().zip(1..) {
            assert_eq!(TypeId::own(OwnKind::Base, number), Some(base.id));
            assert_eq!(base.id.category(), base.category);
            assert_eq!(base.id.fixed_name(), base.name);
            assert!(base.id.array_of().unwrap().is_of_extension());
        }
        assert!(!TypeId::TEXT.is_of_extension());
    }

    #[test]
    fn there_is_room_between_labels() {
        let first = places(2);
        let (mut low, high) = (first[0], first[1]);
        for _ in 0..40 {
            let middle = between(Some(low), Some(high)).unwrap();
            assert!(low < middle && middle < high);
            low = middle;
        }
        assert_eq!(between(Some(low), Some(high)), None);
        assert!(between(None, Some(first[0])).unwrap() < first[0]);
        assert!(between(Some(high), None).unwrap() > high);
    }

    #[test]
    fn kept_labels_are_none() {
        let kind = TypeId::own(OwnKind::Enum, 7).unwrap();
        for place in places(3).into_iter().chain([0, u64::MAX]) {
            let kept = kept_label(kind, place);
            assert!(kept.len() > crate::text::NAME_BYTES_MAX);
            assert_eq!(parse_kept_label(&kept), Some((kind, place)));
            assert_eq!(parse_kept_label(&kept[..63]), None);
        }
    }

    #[test]
    fn names_take_their_places() {
        let text = format!("type {} and {}", TypeId(1 << 30), TypeId(1 << 30 | 1));
        let named = name_types(&text, |oid| (oid == 1 << 30).then(|| "mood".to_owned()));
        assert_eq!(named, "type mood and ???");
    }
}
