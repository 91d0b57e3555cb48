//! Binary forms of the extended protocol.

use base::error::{Error, Result};

use super::{Datum, TypeId};

/// Appends the binary form of a value that is not NULL.
pub fn send(kind: TypeId, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let _ = (value, out);
    Err(Error::unsupported(format!("binary output of {kind}")))
}

/// Reads the binary form of a value.
pub fn receive(kind: TypeId, typmod: i32, bytes: &[u8]) -> Result<Datum> {
    let _ = (typmod, bytes);
    Err(Error::unsupported(format!("binary input of {kind}")))
}
