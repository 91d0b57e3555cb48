//! `quorate cert`: the certificates of a small cluster, from an authority of its own.
//!
//! ```text
//! DIR/ca.crt, DIR/ca.key                 the authority; its key stays with the operator
//! DIR/n1.crt, DIR/n1.key                 a node's: for its clients and for the other nodes
//! DIR/client-ann.crt, DIR/client-ann.key a client's, which names the role it may be
//! DIR/ca.crl, DIR/revoked                what is revoked: for the nodes, and the numbers behind it
//! ```
//!
//! A node's certificate carries the node's name and the names and addresses of its machine, and may
//! be a server's; a client's may not, so that no client passes for a node. A member of a cluster is
//! known by its key, so a certificate is renewed for the key that is there (`--key`).
//!
//! # What it leaves out
//! Authorities made elsewhere sign their own certificates and lists.

use std::path::{Path, PathBuf};

use node::real::host;
use node::real::tls::ReadCertificate;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber,
};
use time::{Duration, OffsetDateTime};

use crate::Failure;

/// Days for which an authority is good.
const AUTHORITY_DAYS: i64 = 3_650;

/// Days for which a certificate is good, if nobody says otherwise.
const DAYS: u32 = 730;

/// Certificates begin a little earlier than now, because clocks differ.
const BEGINS_BEFORE: Duration = Duration::hours(1);

/// Bytes of a serial number.
const SERIAL_BYTES: usize = 16;

#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make an authority
    Ca {
        /// Where the files go; made if it is missing
        #[arg(long, value_name = "DIR", default_value = "./quorate-certs")]
        dir: PathBuf,
        /// Its name
        #[arg(long, default_value = "Quorate CA")]
        name: String,
    },
    /// Make the certificate of a node
    Node {
        /// The node's name
        name: String,
        /// A name or an address of its machine; may be given several times
        #[arg(long, value_name = "HOST")]
        host: Vec<String>,
        /// Its key, where it has one already: the certificate is renewed
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        #[command(flatten)]
        place: Place,
    },
    /// Make the certificate of a client
    Client {
        /// The role that it may be
        role: String,
        #[command(flatten)]
        place: Place,
    },
    /// Revoke certificates: make the authority's list of all that are revoked, DIR/ca.crl
    Revoke {
        /// A certificate; with none, the list is made as it was
        #[arg(value_name = "FILE")]
        certificates: Vec<PathBuf>,
        /// Where the authority is, and the list goes
        #[arg(long, value_name = "DIR", default_value = "./quorate-certs")]
        dir: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Place {
    /// Where the authority is, and the files go
    #[arg(long, value_name = "DIR", default_value = "./quorate-certs")]
    dir: PathBuf,
    /// For how many days
    #[arg(long, default_value_t = DAYS)]
    days: u32,
}

/// Makes what is asked for, and says where it is.
pub fn run(options: &Options) -> Result<(), Failure> {
    let (files, what) = match &options.what {
        What::Ca { dir, name } => {
            host::create_dir(dir)
                .map_err(|error| format!("could not make {}: {error}", dir.display()))?;
            (Authority::make(dir, name)?.1, "authority")
        }
        What::Node {
            name,
            host,
            key,
            place,
        } => {
            let authority = Authority::open(&place.dir)?;
            let mut files = Files::of(&place.dir, name);
            authority.node(name, host, place.days, &files, key.as_deref())?;
            if let Some(key) = key {
                files.key.clone_from(key);
            }
            (files, "node")
        }
        What::Revoke { certificates, dir } => {
            let list = Authority::open(dir)?.revoke(dir, certificates)?;
            println!("certificates that are revoked: {}", list.display());
            return Ok(());
        }
        What::Client { role, place } => {
            let authority = Authority::open(&place.dir)?;
            let files = Files::of(&place.dir, &format!("client-{role}"));
            authority.client(role, place.days, &files)?;
            (files, "client")
        }
    };
    println!("certificate of the {what}: {}", files.certificate.display());
    println!("its key: {}", files.key.display());
    Ok(())
}

/// Where a certificate and its key are.
pub struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Files {
    /// `DIR/name.crt` and `DIR/name.key`.
    pub fn of(dir: &Path, name: &str) -> Files {
        Files {
            certificate: dir.join(format!("{name}.crt")),
            key: dir.join(format!("{name}.key")),
        }
    }

    fn write(&self, certificate: &str, key: &KeyPair) -> Result<(), Failure> {
        let key_path = self.key.display();
        host::write_secret(&self.key, &key.serialize_pem())
            .map_err(|error| format!("could not write {key_path}: {error}"))?;
        write(&self.certificate, certificate)
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    host::read_text(path).map_err(|error| format!("could not read {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    host::write_text(path, text)
        .map_err(|error| format!("could not write {}: {error}", path.display()))
}

fn read_certificate(path: &Path) -> Result<ReadCertificate, Failure> {
    let certificate = ReadCertificate::from_pem(&read(path)?);
    certificate.ok_or_else(|| format!("{} holds no certificate", path.display()))
}

/// What tells the key of a certificate in a file from others.
///
/// # Errors
/// When there is none.
pub fn key_of(path: &Path) -> Result<kv::KeyHash, Failure> {
    Ok(read_certificate(path)?.key())
}

/// Who signs.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority in a directory.
    ///
    /// # Errors
    /// When there is one; whatever the system refuses.
    pub fn make(dir: &Path, name: &str) -> Result<(Authority, Files), Failure> {
        let files = Files::of(dir, "ca");
        let key = new_key()?;
        let mut params = about(name, AUTHORITY_DAYS)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let certificate = params.self_signed(&key).map_err(failed)?;
        files.write(&certificate.pem(), &key)?;
        let issuer = Issuer::new(params, key);
        Ok((Authority { issuer }, files))
    }

    /// The authority of a directory.
    ///
    /// # Errors
    /// When there is none that was made here.
    pub fn open(dir: &Path) -> Result<Authority, Failure> {
        let files = Files::of(dir, "ca");
        let read = |path: &Path| {
            host::read_text(path).map_err(|error| {
                format!(
                    "could not read {}: {error}; make an authority with: quorate cert ca --dir {}",
                    path.display(),
                    dir.display()
                )
            })
        };
        let unusable = || format!("{} is no authority of Quorate", files.certificate.display());
        let certificate = ReadCertificate::from_pem(&read(&files.certificate)?);
        let certificate = certificate.ok_or_else(unusable)?;
        let name = certificate.lone_common_name().ok_or_else(unusable)?;
        let key = KeyPair::from_pem(&read(&files.key)?).map_err(failed)?;
        let mut params = about(name, AUTHORITY_DAYS)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Authority {
            issuer: Issuer::new(params, key),
        })
    }

    /// Makes a node's certificate, for the key in that file if one is given.
    ///
    /// # Errors
    /// When a name is none, or the key; whatever the system refuses.
    pub fn node(
        &self,
        name: &str,
        hosts: &[String],
        days: u32,
        files: &Files,
        key: Option<&Path>,
    ) -> Result<(), Failure> {
        let mut names = vec![name.to_owned()];
        names.extend(hosts.iter().cloned());
        let with_names = CertificateParams::new(names).map_err(failed)?;
        let mut params = about(name, i64::from(days))?;
        params.subject_alt_names = with_names.subject_alt_names;
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let Some(key) = key else {
            return self.sign(params, files);
        };
        let key = KeyPair::from_pem(&read(key)?).map_err(failed)?;
        write(&files.certificate, &self.certificate(params, &key)?)
    }

    /// Makes a client's certificate.
    ///
    /// # Errors
    /// Whatever the system refuses.
    pub fn client(&self, role: &str, days: u32, files: &Files) -> Result<(), Failure> {
        let mut params = about(role, i64::from(days))?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params, files)
    }

    fn sign(&self, params: CertificateParams, files: &Files) -> Result<(), Failure> {
        let key = new_key()?;
        files.write(&self.certificate(params, &key)?, &key)
    }

    fn certificate(&self, mut params: CertificateParams, key: &KeyPair) -> Result<String, Failure> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(key, &self.issuer).map_err(failed)?;
        Ok(certificate.pem())
    }

    /// Adds certificates to those that are revoked, and signs the list of all of them.
    ///
    /// # Errors
    /// When one is none; whatever the system refuses.
    pub fn revoke(&self, dir: &Path, certificates: &[PathBuf]) -> Result<PathBuf, Failure> {
        let (numbers_path, list_path) = (dir.join("revoked"), dir.join("ca.crl"));
        let mut numbers = match host::read_text(&numbers_path) {
            Ok(text) => text.lines().map(str::to_owned).collect(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                return Err(format!(
                    "could not read {}: {error}",
                    numbers_path.display()
                ))
            }
        };
        for path in certificates {
            let number = hex(read_certificate(path)?.serial());
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        let now = now()?;
        let mut revoked_certs = Vec::new();
        for number in &numbers {
            let serial = unhex(number)
                .ok_or_else(|| format!("{} is damaged at {number}", numbers_path.display()))?;
            revoked_certs.push(RevokedCertParams {
                serial_number: SerialNumber::from(serial),
                revocation_time: now,
                reason_code: None,
                invalidity_date: None,
            });
        }
        let list = CertificateRevocationListParams {
            this_update: now - BEGINS_BEFORE,
            next_update: now + Duration::days(AUTHORITY_DAYS),
            crl_number: SerialNumber::from(host::unix_time().unsigned_abs()),
            issuing_distribution_point: None,
            revoked_certs,
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer).map_err(failed)?;
        let lines: String = numbers.iter().map(|number| format!("{number}\n")).collect();
        write(&numbers_path, &lines)?;
        write(&list_path, &list.pem().map_err(failed)?)?;
        Ok(list_path)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.map(byte).collect();
    bytes.filter(|bytes| !bytes.is_empty())
}

fn new_key() -> Result<KeyPair, Failure> {
    KeyPair::generate().map_err(failed)
}

fn failed(error: rcgen::Error) -> Failure {
    format!("could not make the certificate: {error}")
}

fn now() -> Result<OffsetDateTime, Failure> {
    OffsetDateTime::from_unix_timestamp(host::unix_time())
        .map_err(|error| format!("the clock is wrong: {error}"))
}

/// A certificate about that name, good for some days from now.
fn about(name: &str, days: i64) -> Result<CertificateParams, Failure> {
    let now = now()?;
    let secret = host::seed().map_err(|error| format!("no randomness: {error}"))?;
    let mut serial = secret[..SERIAL_BYTES].to_vec();
    // A number above zero.
    serial[0] = serial[0] & 0x7f | 0x40;
    let mut distinguished_name = DistinguishedName::new();
    distinguished_name.push(DnType::CommonName, name);
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished_name;
    params.not_before = now - BEGINS_BEFORE;
    params.not_after = now + Duration::days(days);
    params.serial_number = Some(SerialNumber::from(serial));
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_goes_on_where_it_was_left() {
        let dir = tempfile::tempdir().unwrap();
        let (made, _) = Authority::make(dir.path(), "Test CA").unwrap();
        assert!(
            Authority::make(dir.path(), "Test CA").is_err(),
            "its key is there already"
        );
        let opened = Authority::open(dir.path()).unwrap();
        for (authority, name) in [(made, "n1"), (opened, "n2")] {
            let files = Files::of(dir.path(), name);
            let hosts = ["10.0.0.1".to_owned(), "db.example.com".to_owned()];
            authority.node(name, &hosts, 1, &files, None).unwrap();
            let text = host::read_text(&files.certificate).unwrap();
            let read = ReadCertificate::from_pem(&text).unwrap();
            assert_eq!(read.lone_common_name(), Some(name));
            assert_eq!(read.names, [name, "10.0.0.1", "db.example.com"]);
            assert!(read.is_for_servers);
            assert_eq!(read.into_client().issuer, "/CN=Test CA");
            host::check_secret(&files.key).unwrap();
            let files = Files::of(dir.path(), &format!("client-{name}"));
            authority.client(name, 1, &files).unwrap();
            let text = host::read_text(&files.certificate).unwrap();
            let read = ReadCertificate::from_pem(&text).unwrap();
            assert!(!read.is_for_servers && read.names.is_empty());
        }
    }
}
