//! The hash by which rows are divided: PostgreSQL's, so that a row of a dump is in the same partition
//! there and here.
//!
//! It is Bob Jenkins' lookup3 with a seed (<http://burtleburtle.net/bob/c/lookup3.c>, public domain), and
//! the hashes of a key's parts put together as in PostgreSQL; the tests have values from there.

use types::{Datum, TypeId};

/// The seed of partition keys.
const SEED: u64 = 0x7A5B_2236_7996_DCFD;

/// Three words that are mixed.
struct State(u32, u32, u32);

impl State {
    fn new(bytes: usize, seed: u64) -> State {
        let start = 0x9e37_79b9_u32
            .wrapping_add(bytes as u32)
            .wrapping_add(3_923_095);
        let mut state = State(start, start, start);
        if seed != 0 {
            state.0 = state.0.wrapping_add((seed >> 32) as u32);
            state.1 = state.1.wrapping_add(seed as u32);
            state.mix();
        }
        state
    }

    fn add(&mut self, words: [u32; 3]) {
        self.0 = self.0.wrapping_add(words[0]);
        self.1 = self.1.wrapping_add(words[1]);
        self.2 = self.2.wrapping_add(words[2]);
    }

    fn mix(&mut self) {
        let State(mut a, mut b, mut c) = *self;
        for rotations in [[4, 6, 8], [16, 19, 4]] {
            a = a.wrapping_sub(c) ^ c.rotate_left(rotations[0]);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(rotations[1]);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(rotations[2]);
            b = b.wrapping_add(a);
        }
        *self = State(a, b, c);
    }

    fn finish(self) -> u64 {
        let State(mut a, mut b, mut c) = self;
        c = (c ^ b).wrapping_sub(b.rotate_left(14));
        a = (a ^ c).wrapping_sub(c.rotate_left(11));
        b = (b ^ a).wrapping_sub(a.rotate_left(25));
        c = (c ^ b).wrapping_sub(b.rotate_left(16));
        a = (a ^ c).wrapping_sub(c.rotate_left(4));
        b = (b ^ a).wrapping_sub(a.rotate_left(14));
        c = (c ^ b).wrapping_sub(b.rotate_left(24));
        u64::from(b) << 32 | u64::from(c)
    }
}

fn of_word(word: u32) -> u64 {
    let mut state = State::new(4, SEED);
    state.add([word, 0, 0]);
    state.finish()
}

fn of_long(value: i64) -> u64 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    of_word(low ^ if value >= 0 { high } else { !high })
}

fn of_bytes(bytes: &[u8]) -> u64 {
    let mut state = State::new(bytes.len(), SEED);
    let mut blocks = bytes.chunks_exact(12);
    let words_of = |block: &[u8]| {
        let mut words = [0; 3];
        for (at, byte) in block.iter().enumerate() {
            words[at / 4] |= u32::from(*byte) << (at % 4 * 8);
        }
        words
    };
    for block in &mut blocks {
        state.add(words_of(block));
        state.mix();
    }
    let [first, second, third] = words_of(blocks.remainder());
    // The lowest byte of the last word is left to the length.
    state.add([first, second, third << 8]);
    state.finish()
}

fn of_value(ty: TypeId, value: &Datum) -> Option<u64> {
    Some(match value {
        Datum::Bool(value) => of_word(u32::from(*value)),
        Datum::Int2(value) => of_word(i32::from(*value) as u32),
        Datum::Int4(value) | Datum::Date(value) => of_word(*value as u32),
        Datum::Int8(value) => of_long(*value),
        Datum::Timestamp(value) | Datum::TimestampTz(value) | Datum::Time(value) => of_long(*value),
        Datum::Oid(value) => of_word(*value),
        Datum::Char(value) => of_word(i32::from(*value as i8) as u32),
        Datum::Text(text) if ty == TypeId::BPCHAR => {
            of_bytes(text.trim_end_matches(' ').as_bytes())
        }
        Datum::Text(text) => of_bytes(text.as_bytes()),
        Datum::Bytea(bytes) => of_bytes(bytes),
        Datum::Uuid(bytes) => of_bytes(bytes),
        _ => return None,
    })
}

/// Whether values of a type have a hash to be divided by.
pub fn has_hash(ty: TypeId) -> bool {
    [
        TypeId::BOOL,
        TypeId::INT2,
        TypeId::INT4,
        TypeId::INT8,
        TypeId::DATE,
        TypeId::TIME,
        TypeId::TIMESTAMP,
        TypeId::TIMESTAMPTZ,
        TypeId::OID,
        TypeId::CHAR,
        TypeId::TEXT,
        TypeId::VARCHAR,
        TypeId::BPCHAR,
        TypeId::NAME,
        TypeId::BYTEA,
        TypeId::UUID,
    ]
    .contains(&ty)
}

/// The hash of a key.
pub fn row_hash(types: &[TypeId], key: &[Datum]) -> u64 {
    let mut whole = 0_u64;
    for (ty, value) in types.iter().zip(key) {
        if let Some(hash) = of_value(*ty, value) {
            whole ^= hash
                .wrapping_add(0x49a0_f4dd_15e5_a8e3)
                .wrapping_add(whole << 54)
                .wrapping_add(whole >> 7);
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `select hashint4extended(1, 8816678312871386365)` and the like, in PostgreSQL.
    #[test]
    fn hashes_are_those_of_postgresql() {
        let of = |ty, value| of_value(ty, &value).unwrap() as i64;
        let text = |text| of(TypeId::TEXT, Datum::text(text));
        assert_eq!(of(TypeId::INT4, Datum::Int4(1)), 5_968_994_663_651_403_477);
        assert_eq!(of(TypeId::INT8, Datum::Int8(-5)), 5_466_844_944_386_338_076);
        assert_eq!(text("abcdefghijklmnopqr"), -3_976_194_482_402_635_722);
        assert_eq!(text(""), -5_700_645_584_453_517_373);
        assert_eq!(text("abcdefghi"), -7_860_738_947_571_725_408);
        let uuid = u128::from_str_radix("00112233445566778899aabbccddeeff", 16);
        let uuid = Datum::Uuid(uuid.unwrap().to_be_bytes());
        assert_eq!(of(TypeId::UUID, uuid), -8_699_738_442_285_490_013);
    }
}
