//! What is known of a role before its session begins: by what it can show who it is.
//!
//! A role that is not there looks like one without a password; who asks must not let on which it
//! was.

use base::engine::{Transactions, TxnOptions};
use base::{Debt, Result};

use catalog::store;

/// A role as its login sees it.
#[derive(Clone, Default)]
pub struct Login {
    /// Whether there is such a role.
    pub is_there: bool,
    /// What proves its password, as `pg_authid` keeps it.
    pub verifier: Option<String>,
    /// Until when that holds, in microseconds since 2000-01-01 UTC.
    pub valid_until: Option<i64>,
    /// The role and all whose member it is, by name; empty where nobody asked.
    pub roles: Vec<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Login({:?})", self.roles)
    }
}

/// Looks a role up, and says what the answer rests on.
///
/// # Errors
/// Those of reading.
pub fn look_up(
    transactions: &dyn Transactions,
    name: &str,
    with_roles: bool,
) -> Result<(Login, Debt)> {
    let mut txn = transactions.begin(TxnOptions::default())?;
    txn.begin_statement()?;
    let mut login = Login::default();
    if let Some(role) = store::role_named(txn.as_mut(), name)? {
        if with_roles {
            login.roles = store::roles_of(txn.as_mut(), &role)?;
        }
        login.is_there = true;
        login.verifier = role.password;
        login.valid_until = role.valid_until;
    }
    Ok((login, txn.debt().clone()))
}
