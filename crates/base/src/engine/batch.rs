//! What a scan returns.

/// Rows that a scan returned: keys and rows in one buffer that is used again.
#[derive(Debug, Default)]
pub struct RowBatch {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl RowBatch {
    /// Empties the batch, keeping its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Appends a row.
    #[inline]
    pub fn push(&mut self, key: &[u8], row: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(row);
        self.ends.push((key_end, self.bytes.len()));
    }

    /// How many rows there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The key and the row at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> (&[u8], &[u8]) {
        let start = if index == 0 {
            0
        } else {
            self.ends[index - 1].1
        };
        let (key_end, row_end) = self.ends[index];
        (&self.bytes[start..key_end], &self.bytes[key_end..row_end])
    }

    /// All keys and rows, in the scan's order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.len()).map(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_gives_back_its_rows() {
        let mut batch = RowBatch::default();
        batch.push(b"a", b"1");
        batch.push(b"bb", b"");
        let rows: Vec<_> = batch.iter().collect();
        assert_eq!(rows, [(&b"a"[..], &b"1"[..]), (&b"bb"[..], &b""[..])]);
    }
}
