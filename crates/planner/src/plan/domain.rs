//! What a value must meet to be one of a domain, or a row with fields of domains.

use std::rc::Rc;

use super::Program;
use types::TypeId;

/// The constraints of a domain and of those that it is over.
#[derive(Clone, Debug)]
pub struct DomainTest {
    /// The domain, or the array over one.
    pub domain: TypeId,
    /// Its schema's name.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// What the elements of the value must meet, if it is an array over a domain.
    pub element: Option<Rc<DomainTest>>,
    /// What fields of the value must meet, if it is a row with fields of domains.
    pub fields: Vec<(usize, Rc<DomainTest>)>,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// Names and conditions over a row that has the value alone, in the order in which they are
    /// tested.
    pub checks: Vec<(String, Program)>,
}

impl DomainTest {
    /// One that asks nothing.
    pub fn of(domain: TypeId) -> DomainTest {
        DomainTest {
            domain,
            schema: String::new(),
            name: String::new(),
            element: None,
            fields: Vec::new(),
            not_null: false,
            checks: Vec::new(),
        }
    }

    /// Whether it calls a routine whose value is not known before the program runs.
    pub fn calls_late(&self) -> bool {
        let of_elements = self.element.as_ref();
        of_elements.is_some_and(|test| test.calls_late())
            || self.fields.iter().any(|(_, test)| test.calls_late())
            || self.checks.iter().any(|(_, check)| check.calls_late())
    }
}
