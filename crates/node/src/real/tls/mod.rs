//! TLS with rustls: for clients, and between nodes.
//!
//! Certificates and keys are PEM files; their names are settings, relative to the node's directory.
//!
//! | setting | default | what it is |
//! |---|---|---|
//! | `ssl` | off | whether clients may have their connections encrypted |
//! | `ssl_cert_file`, `ssl_key_file` | `server.crt`, `server.key` | what the node shows clients |
//! | `ssl_ca_file` | none | whose certificates of clients are taken |
//! | `ssl_crl_file` | none | which of them are revoked |
//! | `quorate.peer_tls` | off | whether nodes talk encrypted, and only so |
//! | `quorate.peer_cert_file`, `quorate.peer_key_file` | `node.crt`, `node.key` | what the node shows other nodes |
//! | `quorate.peer_ca_file` | `ca.crt` | whose certificates of nodes are taken |
//! | `quorate.peer_crl_file` | `ssl_crl_file`'s | which of them are revoked |
//!
//! With a file of revocation lists, every authority up to the root must have one in it that is in
//! force, as with PostgreSQL: what cannot be looked up counts as revoked. Lists are looked at when a
//! connection is made; one that stands already goes on.
//!
//! # What it leaves out
//! Directories of revocation lists (`ssl_crl_dir`), passphrases of keys, sessions that are resumed, versions below TLS 1.2. Frames
//! for another node are written by the group's thread, not by whoever has them: an encrypted stream
//! has no [`base::env::Outlet`].

mod certificate;
mod stream;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::env::Stream;
use base::sync::Mutex;
use base::{Error, Result, SqlState};
use kv::KeyHash;
use pg::auth::Tls;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{ring, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, Connection, ProtocolVersion, RootCertStore,
    ServerConfig, ServerConnection,
};

use super::host;
use crate::config::TlsSettings;
use crate::secure::{NodeCertificate, Secure, Secured};
use certificate::Certificate;
use stream::TlsStream;

pub use certificate::Certificate as ReadCertificate;

/// Encrypts the connections of one node.
pub struct RealTls {
    dir: PathBuf,
    settings: TlsSettings,
    keys: Mutex<Keys>,
}

/// What connections are made with from now on.
#[derive(Clone, Default)]
struct Keys {
    clients: Option<ForClients>,
    nodes: Option<ForNodes>,
}

#[derive(Clone)]
struct ForClients {
    config: Arc<ServerConfig>,
    end_point: Arc<[u8]>,
}

#[derive(Clone)]
struct ForNodes {
    accepts: Arc<ServerConfig>,
    connects: Arc<ClientConfig>,
    own: KeyHash,
}

impl std::fmt::Debug for RealTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RealTls({:?})", self.settings)
    }
}

impl RealTls {
    /// Reads the certificates and keys of the node in `dir`; none where nothing is encrypted.
    ///
    /// # Errors
    /// F0000, which names the file that cannot be used.
    pub fn open(dir: &Path, settings: &TlsSettings) -> Result<Option<Arc<dyn Secure>>> {
        if !settings.ssl && !settings.peer_tls {
            return Ok(None);
        }
        let tls = RealTls {
            dir: dir.to_owned(),
            settings: settings.clone(),
            keys: Mutex::default(),
        };
        tls.reload()?;
        Ok(Some(Arc::new(tls)))
    }

    fn read(&self) -> Result<Keys> {
        let settings = &self.settings;
        let mut keys = Keys::default();
        if settings.ssl {
            let own = self.own(&settings.cert_file, &settings.key_file)?;
            let der = own.chain[0].clone();
            let trust = match settings.ca_file.is_empty() {
                true => None,
                false => Some(self.trust(&settings.ca_file, &settings.crl_file)?),
            };
            let read = Certificate::read(&der)
                .ok_or_else(|| bad(format!("{} holds no certificate", settings.cert_file)))?;
            keys.clients = Some(ForClients {
                config: Arc::new(serve(own, trust, false)?),
                end_point: read.end_point(&der).into(),
            });
        }
        if settings.peer_tls {
            let crl_file = settings.peer_crl_file.as_ref();
            let crl_file = crl_file.unwrap_or(&settings.crl_file);
            let trust = self.trust(&settings.peer_ca_file, crl_file)?;
            let own = || self.own(&settings.peer_cert_file, &settings.peer_key_file);
            let read = Certificate::read(&own()?.chain[0])
                .ok_or_else(|| bad(format!("{} holds no certificate", settings.peer_cert_file)))?;
            keys.nodes = Some(ForNodes {
                accepts: Arc::new(serve(own()?, Some(trust.clone()), true)?),
                connects: Arc::new(connect(own()?, trust)?),
                own: read.key(),
            });
        }
        Ok(keys)
    }

    fn pem(&self, name: &str) -> Result<(PathBuf, String)> {
        let path = self.dir.join(name);
        match host::read_text(&path) {
            Ok(text) => Ok((path, text)),
            Err(error) => Err(bad(format!("could not read {}: {error}", path.display()))),
        }
    }

    fn certificates(&self, name: &str) -> Result<Vec<CertificateDer<'static>>> {
        let (path, text) = self.pem(name)?;
        let read: std::result::Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(text.as_bytes()).collect();
        match read {
            Ok(certificates) if !certificates.is_empty() => Ok(certificates),
            _ => Err(bad(format!("{} holds no certificate", path.display()))),
        }
    }

    fn roots(&self, name: &str) -> Result<Arc<RootCertStore>> {
        let mut roots = RootCertStore::empty();
        for certificate in self.certificates(name)? {
            roots
                .add(certificate)
                .map_err(|error| bad(format!("{name} holds no usable certificate: {error}")))?;
        }
        Ok(Arc::new(roots))
    }

    /// Whose certificates are taken, but for those revoked.
    fn trust(&self, authorities: &str, revoked: &str) -> Result<Trust> {
        Ok(Trust {
            roots: self.roots(authorities)?,
            revoked: match revoked.is_empty() {
                true => Vec::new(),
                false => self.revocation_lists(revoked)?,
            },
        })
    }

    fn revocation_lists(&self, name: &str) -> Result<Vec<CertificateRevocationListDer<'static>>> {
        let (path, text) = self.pem(name)?;
        let lists = CertificateRevocationListDer::pem_slice_iter(text.as_bytes());
        let read: std::result::Result<Vec<_>, _> = lists.collect();
        match read {
            Ok(lists) if !lists.is_empty() => Ok(lists),
            _ => Err(bad(format!(
                "{} holds no certificate revocation list",
                path.display()
            ))),
        }
    }

    fn own(&self, certificate: &str, key: &str) -> Result<Own> {
        let chain = self.certificates(certificate)?;
        let (path, text) = self.pem(key)?;
        host::check_secret(&path).map_err(|error| bad(error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes());
        let key = key.map_err(|_| bad(format!("{} holds no private key", path.display())))?;
        Ok(Own { chain, key })
    }

    fn nodes(&self) -> io::Result<ForNodes> {
        let nodes = self.keys.lock().nodes.clone();
        nodes.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }
}

/// A certificate with those that lead to its authority, and its key.
struct Own {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Whose certificates are taken.
#[derive(Clone)]
struct Trust {
    roots: Arc<RootCertStore>,
    /// Lists of those that are not; none where nobody asks.
    revoked: Vec<CertificateRevocationListDer<'static>>,
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(SqlState::of("F0000"), message)
}

fn unusable(error: impl std::fmt::Display) -> Error {
    bad(format!("TLS cannot be used: {error}"))
}

/// The server's side. With authorities, the other side's certificate is checked; where it is not
/// required, one that shows none is let in.
fn serve(own: Own, trust: Option<Trust>, required: bool) -> Result<ServerConfig> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match trust {
        None => builder.with_no_client_auth(),
        Some(Trust { roots, revoked }) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
                .with_crls(revoked)
                .enforce_revocation_expiration();
            let verifier = match required {
                true => verifier.build(),
                false => verifier.allow_unauthenticated().build(),
            };
            builder.with_client_cert_verifier(verifier.map_err(unusable)?)
        }
    };
    let mut config = builder
        .with_single_cert(own.chain, own.key)
        .map_err(unusable)?;
    // Connections are long, and what is not kept cannot be stolen.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn connect(own: Own, trust: Trust) -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let verifier = WebPkiServerVerifier::builder_with_provider(trust.roots, provider())
        .with_crls(trust.revoked)
        .enforce_revocation_expiration()
        .build()
        .map_err(unusable)?;
    let mut config = builder
        .with_webpki_verifier(verifier)
        .with_client_auth_cert(own.chain, own.key)
        .map_err(unusable)?;
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

fn refused(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// The name of a cipher as OpenSSL, and so PostgreSQL, has it, and the length of its key.
fn cipher_of(tls: &Connection) -> (String, u16) {
    let Some(suite) = tls.negotiated_cipher_suite() else {
        return (String::new(), 0);
    };
    let name = cipher_name(suite.suite());
    let bits = match name.contains("AES_128") || name.contains("AES128") {
        true => 128,
        false => 256,
    };
    (name, bits)
}

fn cipher_name(suite: CipherSuite) -> String {
    let name = format!("{suite:?}");
    match name.strip_prefix("TLS13_") {
        Some(name) => format!("TLS_{name}"),
        None => name
            .trim_start_matches("TLS_")
            .replace("_WITH_", "-")
            .replace("AES_", "AES")
            .replace("POLY1305_SHA256", "POLY1305")
            .replace('_', "-"),
    }
}

fn facts(tls: &Connection, end_point: &[u8]) -> Tls {
    let version = match tls.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
        _ => "TLSv1.3",
    };
    let (cipher, bits) = cipher_of(tls);
    let client = tls.peer_certificates().and_then(|chain| chain.first());
    Tls {
        version: version.to_owned(),
        cipher,
        bits,
        end_point: end_point.to_vec(),
        client: client
            .and_then(|der| Certificate::read(der))
            .map(Certificate::into_client),
    }
}

/// What the other node has shown.
fn shown(tls: &Connection) -> io::Result<NodeCertificate> {
    let chain = tls.peer_certificates().unwrap_or_default();
    let read = chain.first().and_then(|der| Certificate::read(der));
    let read = read.ok_or(io::ErrorKind::InvalidData)?;
    let key = read.key();
    // Clients have certificates of the same authority, but not as servers.
    let names = match read.is_for_servers {
        true => read.names,
        false => Vec::new(),
    };
    Ok(NodeCertificate { names, key })
}

impl Secure for RealTls {
    fn serves_clients(&self) -> bool {
        self.settings.ssl
    }

    fn serves_nodes(&self) -> bool {
        self.settings.peer_tls
    }

    fn accept_client(&self, stream: Box<dyn Stream>) -> Secured<Tls> {
        let keys = self.keys.lock().clients.clone();
        Box::pin(async move {
            let keys = keys.ok_or(io::ErrorKind::Unsupported)?;
            let tls = ServerConnection::new(keys.config).map_err(refused)?;
            let stream = TlsStream::shake_hands(stream, tls.into()).await?;
            let facts = facts(stream.tls(), &keys.end_point);
            Ok((Box::new(stream) as Box<dyn Stream>, facts))
        })
    }

    fn accept_node(&self, stream: Box<dyn Stream>) -> Secured<NodeCertificate> {
        let keys = self.nodes();
        Box::pin(async move {
            let tls = ServerConnection::new(keys?.accepts).map_err(refused)?;
            let stream = TlsStream::shake_hands(stream, tls.into()).await?;
            let shown = shown(stream.tls())?;
            Ok((Box::new(stream) as Box<dyn Stream>, shown))
        })
    }

    fn connect_node(&self, stream: Box<dyn Stream>, name: &str) -> Secured<NodeCertificate> {
        let keys = self.nodes();
        let name = ServerName::try_from(name.to_owned());
        Box::pin(async move {
            let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            let tls = ClientConnection::new(keys?.connects, name).map_err(refused)?;
            let stream = TlsStream::shake_hands(stream, tls.into()).await?;
            let shown = shown(stream.tls())?;
            Ok((Box::new(stream) as Box<dyn Stream>, shown))
        })
    }

    fn own_key(&self) -> Option<KeyHash> {
        self.keys.lock().nodes.as_ref().map(|nodes| nodes.own)
    }

    fn reload(&self) -> Result<()> {
        let keys = self.read()?;
        *self.keys.lock() = keys;
        Ok(())
    }
}
