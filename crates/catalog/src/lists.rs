//! Lists in rows of the catalog: how many, then one after the other.

use base::codec::Reader;
use base::Result;

/// Reads a list whose members are read so.
pub(super) fn read_list<T>(
    reader: &mut Reader<'_>,
    mut read: impl FnMut(&mut Reader<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count: usize = reader.varint_as()?;
    (0..count).map(|_| read(reader)).collect()
}
