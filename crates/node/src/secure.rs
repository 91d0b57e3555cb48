//! How connections are encrypted, as the node sees it; `real::tls` does it, and simulated worlds do
//! without.
//!
//! | connection | its server shows | its client shows |
//! |---|---|---|
//! | of a client that asks for it | the node's certificate for clients | its own, if it has one |
//! | between nodes | the node's certificate | its own; without one of the cluster's it is refused |
//!
//! Between nodes each side checks that the other's certificate carries the name of the member that
//! it says it is, and the key that is noted of that member: neither a client's certificate of the
//! same authority opens a door here, nor another's with the same name (see [`crate::peers`]).

use std::fmt::Debug;
use std::io;

use base::env::{BoxFuture, Stream};
use kv::KeyHash;
use pg::auth::Tls;

/// An encrypted stream and what is known of its other end.
pub type Secured<T> = BoxFuture<'static, io::Result<(Box<dyn Stream>, T)>>;

/// What the certificate of a node says, which is of the cluster's authority, in force and not
/// revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCertificate {
    /// The names that it is for; none where it is no node's.
    pub names: Vec<String>,
    /// Its key.
    pub key: KeyHash,
}

/// Encrypts connections.
pub trait Secure: Debug + Send + Sync {
    /// Whether clients may have their connections encrypted.
    fn serves_clients(&self) -> bool;

    /// Whether nodes talk encrypted, and only so.
    fn serves_nodes(&self) -> bool;

    /// The server's side for a client.
    fn accept_client(&self, stream: Box<dyn Stream>) -> Secured<Tls>;

    /// The server's side for another node.
    fn accept_node(&self, stream: Box<dyn Stream>) -> Secured<NodeCertificate>;

    /// The client's side, to the node of that name.
    fn connect_node(&self, stream: Box<dyn Stream>, name: &str) -> Secured<NodeCertificate>;

    /// This node's own key, which it shows other nodes.
    fn own_key(&self) -> Option<KeyHash>;

    /// Reads certificates, keys and revocation lists anew; where one cannot be read, the old ones go on.
    ///
    /// # Errors
    /// What cannot be read.
    fn reload(&self) -> base::Result<()>;
}
