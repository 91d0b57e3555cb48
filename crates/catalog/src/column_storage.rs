//! How the values of a column are kept, and by which method they are compressed: what ALTER COLUMN … SET
//! STORAGE and SET COMPRESSION say.
//!
//! | storage | a value that is too long for its row as it is |
//! |---|---|
//! | `PLAIN`, `EXTERNAL` | goes out of the row, as it is |
//! | `MAIN`, `EXTENDED` | is compressed, and goes out of the row if it is still too long |
//!
//! A value is too long as `base::limits` says, whatever else is in its row.
//!
//! # What it leaves out
//! A `PLAIN` value goes out of its row where PostgreSQL refuses the row. There is one method, LZ4: a column
//! that is to have `pglz` is shown so, and compressed by LZ4.

use types::TypeId;

/// How the values of a column are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Storage {
    Plain,
    External,
    Extended,
    Main,
}

/// By which method the values of a column are to be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Compression {
    Pglz,
    Lz4,
}

impl Storage {
    const ALL: &'static [(Storage, u8, &'static str)] = &[
        (Storage::Plain, b'p', "PLAIN"),
        (Storage::External, b'e', "EXTERNAL"),
        (Storage::Extended, b'x', "EXTENDED"),
        (Storage::Main, b'm', "MAIN"),
    ];

    /// How values of a type are kept unless something else is said: its `typstorage` in PostgreSQL.
    pub fn of_type(ty: TypeId) -> Storage {
        match ty {
            TypeId::NUMERIC | TypeId::INET | TypeId::CIDR => Storage::Main,
            TypeId::INT2VECTOR | TypeId::OIDVECTOR | TypeId::TSQUERY => Storage::Plain,
            ty if ty.len() == -1 => Storage::Extended,
            _ => Storage::Plain,
        }
    }

    /// That of a name, in letters of either case.
    pub fn named(name: &str) -> Option<Storage> {
        let known = Storage::ALL.iter();
        let mut known = known.filter(|known| known.2.eq_ignore_ascii_case(name));
        known.next().map(|known| known.0)
    }

    /// That of a letter.
    pub fn of_letter(letter: u8) -> Option<Storage> {
        let known = Storage::ALL.iter().find(|known| known.1 == letter);
        known.map(|known| known.0)
    }

    fn row(self) -> &'static (Storage, u8, &'static str) {
        let known = Storage::ALL.iter().find(|known| known.0 == self);
        known.unwrap_or(&Storage::ALL[0])
    }

    /// Its letter, as in `attstorage`.
    pub fn letter(self) -> u8 {
        self.row().1
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// Whether values are compressed.
    pub fn compresses(self) -> bool {
        matches!(self, Storage::Main | Storage::Extended)
    }
}

impl Compression {
    /// That of a name.
    pub fn named(name: &str) -> Option<Compression> {
        match name {
            "pglz" => Some(Compression::Pglz),
            "lz4" => Some(Compression::Lz4),
            _ => None,
        }
    }

    /// That of a letter.
    pub fn of_letter(letter: u8) -> Option<Compression> {
        match letter {
            b'p' => Some(Compression::Pglz),
            b'l' => Some(Compression::Lz4),
            _ => None,
        }
    }

    /// Its letter, as in `attcompression`.
    pub fn letter(self) -> u8 {
        match self {
            Compression::Pglz => b'p',
            Compression::Lz4 => b'l',
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Compression::Pglz => "pglz",
            Compression::Lz4 => "lz4",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_names_lead_back() {
        for &(storage, letter, name) in Storage::ALL {
            assert_eq!(Storage::named(&name.to_lowercase()), Some(storage));
            assert_eq!(Storage::of_letter(letter), Some(storage));
            assert_eq!((storage.letter(), storage.name()), (letter, name));
        }
        for method in [Compression::Pglz, Compression::Lz4] {
            assert_eq!(Compression::named(method.name()), Some(method));
            assert_eq!(Compression::of_letter(method.letter()), Some(method));
        }
        assert_eq!(Storage::of_letter(0), None);
        assert_eq!(Compression::of_letter(0), None);
    }
}
