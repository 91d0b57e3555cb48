//! PostgreSQL's binary format of COPY: a signature, tuples of sized fields, a trailer.
//!
//! Source: PostgreSQL 15 manual, "COPY", section "Binary Format".

use base::Result;

use super::bad_format;

/// What a file begins with.
pub(super) const SIGNATURE: [u8; 11] = *b"PGCOPY\n\xff\r\n\0";

/// The flags that a reader must know; none are.
const CRITICAL_FLAGS: u32 = 0xffff_0000;

/// The flag of a file with OIDs, which older versions wrote.
const WITH_OIDS: u32 = 1 << 16;

/// Appends what stands before the rows.
pub(super) fn put_header(out: &mut Vec<u8>) {
    out.extend_from_slice(&SIGNATURE);
    out.extend_from_slice(&[0; 8]);
}

/// Appends what stands behind the rows.
pub(super) fn put_trailer(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1i16).to_be_bytes());
}

/// Cuts data into fields.
#[derive(Default)]
pub(super) struct Fields {
    buffer: Vec<u8>,
    at: usize,
    ended: bool,
}

/// Appends data, and says whether it did or the data has ended.
pub(super) type More<'m> = dyn FnMut(&mut Vec<u8>) -> Result<bool> + 'm;

impl Fields {
    /// The next bytes, or as many as are left.
    fn take(&mut self, count: usize, more: &mut More<'_>) -> Result<&[u8]> {
        while self.buffer.len() - self.at < count && !self.ended {
            self.buffer.drain(..self.at);
            self.at = 0;
            self.ended = !more(&mut self.buffer)?;
        }
        let start = self.at;
        self.at = self.buffer.len().min(start + count);
        Ok(&self.buffer[start..self.at])
    }

    fn int32(&mut self, more: &mut More<'_>) -> Result<Option<i32>> {
        let bytes = self.take(4, more)?;
        Ok(bytes.try_into().ok().map(i32::from_be_bytes))
    }

    fn int16(&mut self, more: &mut More<'_>) -> Result<Option<i16>> {
        let bytes = self.take(2, more)?;
        Ok(bytes.try_into().ok().map(i16::from_be_bytes))
    }

    /// Reads what stands before the rows.
    ///
    /// # Errors
    /// 22P04 when it is something else.
    pub fn header(&mut self, more: &mut More<'_>) -> Result<()> {
        if self.take(SIGNATURE.len(), more)? != SIGNATURE {
            return Err(bad_format("COPY file signature not recognized"));
        }
        let invalid = |what: &str| bad_format(format!("invalid COPY file header ({what})"));
        let flags = self.int32(more)?.ok_or_else(|| invalid("missing flags"))? as u32;
        if flags & WITH_OIDS != 0 {
            return Err(invalid("WITH OIDS"));
        }
        if flags & CRITICAL_FLAGS != 0 {
            return Err(bad_format(
                "unrecognized critical flags in COPY file header",
            ));
        }
        let length = self.int32(more)?.and_then(|len| usize::try_from(len).ok());
        let length = length.ok_or_else(|| invalid("missing length"))?;
        if self.take(length, more)?.len() != length {
            return Err(invalid("wrong length"));
        }
        Ok(())
    }

    /// Begins a row of so many fields; false at the end.
    ///
    /// # Errors
    /// 22P04.
    pub fn begin_row(&mut self, wanted: usize, more: &mut More<'_>) -> Result<bool> {
        match self.int16(more)? {
            None => Ok(false),
            Some(-1) => match self.take(1, more)? {
                [] => Ok(false),
                _ => Err(bad_format("received copy data after EOF marker")),
            },
            Some(count) if usize::try_from(count) == Ok(wanted) => Ok(true),
            Some(count) => Err(bad_format(format!(
                "row field count is {count}, expected {wanted}"
            ))),
        }
    }

    /// The next field of a row; none is NULL.
    ///
    /// # Errors
    /// 22P04.
    pub fn field(&mut self, more: &mut More<'_>) -> Result<Option<&[u8]>> {
        let ended = || bad_format("unexpected EOF in COPY data");
        let length = match self.int32(more)?.ok_or_else(ended)? {
            -1 => return Ok(None),
            length => usize::try_from(length).map_err(|_| bad_format("invalid field size"))?,
        };
        let bytes = self.take(length, more)?;
        match bytes.len() == length {
            true => Ok(Some(bytes)),
            false => Err(ended()),
        }
    }
}
