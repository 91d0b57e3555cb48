//! What CREATE INDEX says of an index beside its keys: the method, operator classes, parameters.

use base::codec::{put_bytes, put_varint, Reader};
use base::Result;

use crate::layout::BTREE;
use crate::lists::read_list;
use crate::operator_class::{is_inverted_gist, OperatorClass};
use types::TypeId;

/// How an index was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexForm {
    /// The oid of its access method.
    pub method: u32,
    /// The operator class of each key, 0 for the default; nothing if all are.
    pub classes: Vec<u32>,
    /// The collation of each key, 0 for that of what it is on; nothing if all are. The entries are in the
    /// order of bytes under any.
    pub collations: Vec<u32>,
    /// Its storage parameters, which mean nothing here.
    pub options: Vec<(String, String)>,
}

impl Default for IndexForm {
    fn default() -> Self {
        IndexForm {
            method: BTREE,
            classes: Vec::new(),
            collations: Vec::new(),
            options: Vec::new(),
        }
    }
}

impl IndexForm {
    /// The operator class that was given for a key, or 0 for the default.
    pub fn class(&self, key: usize) -> u32 {
        self.classes.get(key).copied().unwrap_or(0)
    }

    /// The collation that was given for a key, or 0 for that of what it is on.
    pub fn collation(&self, key: usize) -> u32 {
        self.collations.get(key).copied().unwrap_or(0)
    }

    /// The oid of the operator class of a key of that type.
    pub fn class_for(&self, key: usize, ty: TypeId) -> u32 {
        match self.class(key) {
            0 => OperatorClass::default_of(self.method, ty).map_or(0, |class| class.oid),
            given => given,
        }
    }

    /// The operator class of a key, if it is not the default of its type.
    pub fn shown_class(&self, key: usize) -> Option<&'static OperatorClass> {
        let class = Some(self.class(key)).filter(|class| !is_inverted_gist(*class));
        OperatorClass::by_oid(class?)
    }
}

/// Appends the stored form, without collations.
pub fn encode(form: &IndexForm, out: &mut Vec<u8>) {
    put_varint(out, u64::from(form.method));
    put_varint(out, form.classes.len() as u64);
    for class in &form.classes {
        put_varint(out, u64::from(*class));
    }
    put_varint(out, form.options.len() as u64);
    for (name, value) in &form.options {
        put_bytes(out, name.as_bytes());
        put_bytes(out, value.as_bytes());
    }
}

/// Reads what [`encode`] made.
///
/// # Errors
/// XX001 when it is something else.
pub fn decode(reader: &mut Reader<'_>) -> Result<IndexForm> {
    Ok(IndexForm {
        method: reader.varint_as()?,
        classes: read_list(reader, |reader| reader.varint_as())?,
        collations: Vec::new(),
        options: read_list(reader, |reader| {
            Ok((reader.str()?.to_owned(), reader.str()?.to_owned()))
        })?,
    })
}
