//! Places of lexemes, and their weights.

use super::POSITION_END;

/// A place in a document, from 1 on, and its weight, 0 (`D`) to 3 (`A`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u16);

impl Position {
    /// A place with a weight; of either as many bits as count.
    pub fn new(place: u16, weight: u16) -> Position {
        Position((weight & 3) << 14 | (place & (POSITION_END - 1)))
    }

    /// The place.
    pub fn place(self) -> u16 {
        self.0 & (POSITION_END - 1)
    }

    /// The weight.
    pub fn weight(self) -> u16 {
        self.0 >> 14
    }

    /// The letter of the weight; none for `D`.
    pub fn letter(self) -> &'static str {
        ["", "C", "B", "A"][usize::from(self.weight())]
    }
}
