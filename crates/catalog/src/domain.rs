//! Domains: another type, with a default and with conditions that its values meet.
//!
//! ```text
//! create domain positive as int check (value > 0)      over int4, one check: (value > 0)
//! create domain small as positive check (value < 9)    over positive, whose checks hold as well
//! ```
//! A domain's value is kept as its *base type*'s: what it is over, or what that is over. A column of
//! a domain has that base type, and the domain beside it ([`super::Column::domain`]): so rows, keys
//! and comparisons know nothing of domains, and who binds a statement puts tests in where values
//! become a domain's. An array over a domain is kept as an array over the domain's base type.
//!
//! A check is an expression over `value`. As all stored text it names relations by their oids.

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::{Error, Result};

use super::descriptor::{put_text, read_text};
use super::lists::read_list;
use super::{Catalog, TypeBody, UserType};
use types::{OwnKind, TypeId, NO_TYPMOD};

/// What a domain is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Domain {
    /// The type that it is over, perhaps a domain as well.
    pub over: TypeId,
    /// That type's modifier.
    pub typmod: i32,
    /// The oid of its collation, or 0 for that of its type.
    pub collation: u32,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// The default of columns that have none of their own, as stored text.
    pub default: Option<String>,
    /// The default as it was printed when it was given.
    pub default_shown: String,
    /// The relations, routines and types that the default names, by oid.
    pub default_uses: Vec<u32>,
    /// Its checks, in the order in which they were made.
    pub checks: Vec<DomainCheck>,
}

/// A check of a domain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DomainCheck {
    /// The constraint's oid.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The condition over `value`, as stored text.
    pub condition: String,
    /// Whether values that were there before it are known to meet it.
    pub validated: bool,
}

pub(super) fn put(out: &mut Vec<u8>, domain: &Domain) {
    put_varint(out, u64::from(domain.over.0));
    put_signed(out, i64::from(domain.typmod));
    put_varint(out, u64::from(domain.collation));
    out.push(u8::from(domain.not_null));
    put_text(out, domain.default.as_deref());
    put_bytes(out, domain.default_shown.as_bytes());
    put_varint(out, domain.default_uses.len() as u64);
    for oid in &domain.default_uses {
        put_varint(out, u64::from(*oid));
    }
    put_varint(out, domain.checks.len() as u64);
    for check in &domain.checks {
        put_varint(out, u64::from(check.oid));
        put_bytes(out, check.name.as_bytes());
        put_bytes(out, check.condition.as_bytes());
        out.push(u8::from(check.validated));
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Domain> {
    Ok(Domain {
        over: TypeId(reader.varint_as()?),
        typmod: i32::try_from(reader.signed()?)
            .map_err(|_| Error::corrupted("a type modifier of more than 32 bits"))?,
        collation: reader.varint_as()?,
        not_null: reader.u8()? != 0,
        default: read_text(reader)?,
        default_shown: reader.str()?.to_owned(),
        default_uses: read_list(reader, |reader| reader.varint_as())?,
        checks: read_list(reader, |reader| {
            Ok(DomainCheck {
                oid: reader.varint_as()?,
                name: reader.str()?.to_owned(),
                condition: reader.str()?.to_owned(),
                validated: reader.u8()? != 0,
            })
        })?,
    })
}

impl UserType {
    /// What it is, if it is a domain.
    pub fn domain(&self) -> Option<&Domain> {
        match &self.body {
            TypeBody::Domain(domain) => Some(domain),
            _ => None,
        }
    }
}

impl Catalog {
    /// The domain of that oid.
    pub fn domain(&self, id: TypeId) -> Option<&Domain> {
        match id.own_kind() {
            Some(OwnKind::Domain) => self.user_type(id)?.domain(),
            _ => None,
        }
    }

    /// What values of a type are kept as, and the modifier that they have: of a domain, or an array
    /// over one, the type that is under all domains, of any other that type itself.
    pub fn base_type(&self, id: TypeId) -> (TypeId, i32) {
        if let Some(element) = id.array_element().filter(|_| id.is_of_domain()) {
            let (base, typmod) = self.base_type(element);
            // Arrays over arrays are arrays of more dimensions: no type of its own.
            return (base.array_of().unwrap_or(base), typmod);
        }
        let (mut id, mut typmod) = (id, NO_TYPMOD);
        while let Some(domain) = self.domain(id) {
            (id, typmod) = (domain.over, domain.typmod);
            if id.array_element().is_some_and(|_| id.is_of_domain()) {
                return self.base_type(id);
            }
        }
        (id, typmod)
    }

    /// The domain that elements of an array over one, or of a domain over such an array, are of;
    /// none if 0.
    pub fn element_domain(&self, id: TypeId) -> TypeId {
        let line = self.domain_line(id);
        let array = line.last().map_or(id, |(_, last)| last.over);
        let element = array.array_element().filter(|_| array.is_of_domain());
        element.unwrap_or(TypeId::NONE)
    }

    /// The domains that a value of this one is of, itself first.
    pub fn domain_line(&self, id: TypeId) -> Vec<(TypeId, &Domain)> {
        let (mut line, mut id) = (Vec::new(), id);
        while let Some(domain) = self.domain(id) {
            line.push((id, domain));
            id = domain.over;
        }
        line
    }

    /// What values of a type are, or have in them, that is of the domain: itself, or a domain over it.
    pub fn domain_within(&self, ty: TypeId, domain: TypeId) -> Option<TypeId> {
        let (mut seen, mut next) = (Vec::new(), vec![ty]);
        while let Some(ty) = next.pop() {
            if self.domain_line(ty).iter().any(|(of, _)| *of == domain) {
                return Some(ty);
            }
            if let Some(element) = ty.array_element() {
                next.push(element);
            } else if let Some(of) = self.domain(ty) {
                next.push(of.over);
            } else if ty.is_composite() && !seen.contains(&ty) {
                seen.push(ty);
                let fields = self.fields(ty).unwrap_or_default();
                next.extend(fields.iter().map(|field| match field.domain {
                    TypeId::NONE => field.ty,
                    domain => domain,
                }));
            }
        }
        None
    }

    /// The oid of the collation of a domain, or an array over one, or 0 for that of its base type.
    pub fn domain_collation(&self, id: TypeId) -> u32 {
        let line = self.domain_line(id.array_element().unwrap_or(id));
        let mut given = line.iter().map(|(_, domain)| domain.collation);
        given.find(|collation| *collation != 0).unwrap_or(0)
    }

    /// The default that a domain gives to columns without one of their own. It took over that of
    /// the domain that it is over when it was made.
    pub fn domain_default(&self, id: TypeId) -> Option<&str> {
        self.domain(id)?.default.as_deref()
    }

    /// The domain, and the check, of that constraint's oid.
    pub fn domain_check(&self, oid: u32) -> Option<(&UserType, &DomainCheck)> {
        self.user_types.iter().find_map(|made| {
            let mut checks = made.domain()?.checks.iter();
            Some((&**made, checks.find(|check| check.oid == oid)?))
        })
    }
}
