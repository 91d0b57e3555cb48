//! The values of a portal's parameters.

use types::Datum;

/// So many need no memory of their own.
const FEW: usize = 4;

/// Values of parameters, the first few in place.
#[derive(Debug)]
pub(super) struct Params {
    few: [Datum; FEW],
    count: usize,
    /// All of them, once there are more than a few.
    many: Vec<Datum>,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            few: [const { Datum::Null }; FEW],
            count: 0,
            many: Vec::new(),
        }
    }
}

impl Params {
    /// Appends a value.
    pub fn push(&mut self, value: Datum) {
        if self.count < FEW {
            self.few[self.count] = value;
        } else {
            if self.count == FEW {
                self.many.extend(self.few.iter().cloned());
            }
            self.many.push(value);
        }
        self.count += 1;
    }

    /// All values.
    pub fn as_slice(&self) -> &[Datum] {
        match self.count {
            0..=FEW => &self.few[..self.count],
            _ => &self.many,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_values_come_back() {
        let mut params = Params::default();
        for count in 0..10 {
            let wanted: Vec<_> = (0..count).map(Datum::Int4).collect();
            assert_eq!(params.as_slice(), wanted);
            params.push(Datum::Int4(count));
        }
    }
}
