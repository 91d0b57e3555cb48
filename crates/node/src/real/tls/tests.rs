//! Two ends of a stream in memory, which takes a few bytes at a time, and certificates of an
//! authority made for the test.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use base::env::{read, write_all};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};

use rustls::NamedGroup;

use super::*;

/// Bytes on their way, at most [`ROOM`] of them.
#[derive(Default)]
struct Pipe {
    bytes: VecDeque<u8>,
    closed: bool,
}

const ROOM: usize = 700;

struct End {
    from: Arc<Mutex<Pipe>>,
    to: Arc<Mutex<Pipe>>,
}

fn ends() -> (Box<dyn Stream>, Box<dyn Stream>) {
    let (a, b) = (Arc::<Mutex<Pipe>>::default(), Arc::<Mutex<Pipe>>::default());
    let one = End {
        from: a.clone(),
        to: b.clone(),
    };
    (Box::new(one), Box::new(End { from: b, to: a }))
}

impl Stream for End {
    fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut pipe = self.from.lock();
        if pipe.bytes.is_empty() && !pipe.closed {
            return Poll::Pending;
        }
        let count = buffer.len().min(pipe.bytes.len());
        for (place, byte) in buffer.iter_mut().zip(pipe.bytes.drain(..count)) {
            *place = byte;
        }
        Poll::Ready(Ok(count))
    }

    fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut pipe = self.to.lock();
        let count = bytes.len().min(ROOM - pipe.bytes.len());
        if count == 0 {
            return Poll::Pending;
        }
        pipe.bytes.extend(&bytes[..count]);
        Poll::Ready(Ok(count))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.to.lock().closed = true;
    }
}

/// Polls both in turn until both are ready.
fn both<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut first, mut second) = (None, None);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1_000_000 {
        if first.is_none() {
            if let Poll::Ready(output) = a.as_mut().poll(&mut cx) {
                first = Some(output);
            }
        }
        if second.is_none() {
            if let Poll::Ready(output) = b.as_mut().poll(&mut cx) {
                second = Some(output);
            }
        }
        if let (Some(_), Some(_)) = (&first, &second) {
            break;
        }
    }
    (first.expect("an end"), second.expect("an end"))
}

struct Authority(Issuer<'static, KeyPair>, String);

fn authority() -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Test");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem();
    Authority(Issuer::new(params, key), pem)
}

impl Authority {
    /// The node of that certificate: with a name it is a server's, without one a client's.
    fn node(&self, trusts: &Authority, name: Option<&str>) -> (tempfile::TempDir, Arc<dyn Secure>) {
        let dir = tempfile::tempdir().unwrap();
        let names: Vec<String> = name.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, name.unwrap_or("n1"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if name.is_some() {
            params
                .extended_key_usages
                .push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let write =
            |file: &str, text: &str| host::write_secret(&dir.path().join(file), text).unwrap();
        write("node.crt", &certificate.pem());
        write("node.key", &key.serialize_pem());
        write("ca.crt", &trusts.1);
        let settings = TlsSettings {
            peer_tls: true,
            ..TlsSettings::default()
        };
        let secure = RealTls::open(dir.path(), &settings).unwrap();
        (dir, secure.expect("it encrypts"))
    }
}

/// What the accepting node learns when the other connects to it as `n2`.
fn meet(accepts: &dyn Secure, connects: &dyn Secure) -> (io::Result<Vec<String>>, io::Result<()>) {
    let (one, other) = ends();
    let accepting = accepts.accept_node(one);
    let connecting = async {
        let (mut stream, _) = connects.connect_node(other, "n2").await?;
        // In TLS 1.3 the client learns that it is refused when it reads.
        let mut answer = [0; 5];
        match read(&mut *stream, &mut answer).await? {
            5 => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    };
    both(
        async {
            let (mut stream, shown) = accepting.await?;
            write_all(&mut *stream, b"hello").await?;
            Ok(shown.names)
        },
        connecting,
    )
}

#[test]
fn nodes_know_one_another_by_their_certificates() {
    let (ours, theirs) = (authority(), authority());
    let (_first, first) = ours.node(&ours, Some("n1"));
    let (_second, second) = ours.node(&ours, Some("n2"));
    let (_client, client) = ours.node(&ours, None);
    let (_foreign, foreign) = theirs.node(&ours, Some("n1"));
    let (names, greeted) = meet(&*second, &*first);
    assert_eq!(names.unwrap(), ["n1"]);
    greeted.unwrap();
    // A client's certificate is of the authority, but names no node.
    let (names, _) = meet(&*second, &*client);
    assert_eq!(names.unwrap(), [""; 0]);
    // Another authority's is none.
    let (names, greeted) = meet(&*second, &*foreign);
    assert!(names.is_err() && greeted.is_err());
    // Whoever means n2 does not talk to n1.
    let (names, greeted) = meet(&*first, &*second);
    assert!(names.is_err() && greeted.is_err());
}

#[test]
fn a_key_is_the_same_in_a_renewed_certificate() {
    let ours = authority();
    let params = |name: &str| CertificateParams::new([name.to_owned()]).unwrap();
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let hash = |name: &str, key: &KeyPair| {
        let certificate = params(name).signed_by(key, &ours.0).unwrap();
        super::Certificate::read(certificate.der()).unwrap().key()
    };
    let whole = rcgen::PublicKeyData::subject_public_key_info(&key);
    let expected = ::ring::digest::digest(&::ring::digest::SHA256, &whole);
    assert_eq!(hash("n1", &key).0, expected.as_ref());
    assert_eq!(hash("n1", &key), hash("n2", &key));
    assert_ne!(hash("n1", &key), hash("n1", &other));
}

#[test]
fn a_node_without_a_certificate_is_refused() {
    let ours = authority();
    let (_second, second) = ours.node(&ours, Some("n2"));
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(ours.1.as_bytes()).unwrap())
        .unwrap();
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (one, other) = ends();
    let name = ServerName::try_from("n2").unwrap();
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let (accepted, _) = both(
        second.accept_node(one),
        TlsStream::shake_hands(other, tls.into()),
    );
    let error = accepted.err().expect("it shows nothing");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn everything_arrives_in_order_and_before_the_end() {
    let ours = authority();
    let (_first, first) = ours.node(&ours, Some("n1"));
    let (_second, second) = ours.node(&ours, Some("n2"));
    let (one, other) = ends();
    let sent: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
    let writes = async {
        let (mut stream, _) = second.accept_node(one).await.unwrap();
        write_all(&mut *stream, &sent).await.unwrap();
        let mut answer = [0; 2];
        assert_eq!(read(&mut *stream, &mut answer).await.unwrap(), 2);
        write_all(&mut *stream, b"last").await.unwrap();
    };
    let reads = async {
        let (mut stream, _) = first.connect_node(other, "n2").await.unwrap();
        let mut received = Vec::new();
        let mut buffer = [0; 10_000];
        while received.len() < sent.len() {
            let count = read(&mut *stream, &mut buffer).await.unwrap();
            assert!(count > 0, "it ended after {}", received.len());
            received.extend_from_slice(&buffer[..count]);
        }
        write_all(&mut *stream, b"ok").await.unwrap();
        let mut end = Vec::new();
        loop {
            match read(&mut *stream, &mut buffer).await.unwrap() {
                0 => return (received, end),
                count => end.extend_from_slice(&buffer[..count]),
            }
        }
    };
    let ((), (received, end)) = both(writes, reads);
    assert!(received == sent, "{} bytes arrived changed", received.len());
    assert_eq!(end, b"last");
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let ours = authority();
    let (dir, secure) = ours.node(&ours, Some("n1"));
    secure.reload().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(dir.path().join("node.key"), mode).unwrap();
    let error = secure.reload().unwrap_err();
    assert!(error.message().contains("group or world access"), "{error}");
    std::fs::remove_file(dir.path().join("node.crt")).unwrap();
    let error = secure.reload().unwrap_err();
    assert!(error.message().contains("node.crt"), "{error}");
}

#[test]
fn sessions_are_shown_the_ciphers_that_are_taken() {
    let taken = provider();
    let older = taken.cipher_suites.iter();
    let older = older.filter(|suite| suite.version().version == ProtocolVersion::TLSv1_2);
    let older: Vec<_> = older.map(|suite| cipher_name(suite.suite())).collect();
    let curves = taken.kx_groups.iter().map(|group| match group.name() {
        NamedGroup::secp256r1 => "prime256v1".to_owned(),
        other => format!("{other:?}"),
    });
    let shown = sql::session::documented();
    let default = |name: &str| {
        let found = shown.iter().find(|setting| setting.name == name);
        found.map(|setting| setting.default.as_str())
    };
    assert_eq!(default("ssl_ciphers"), Some(older.join(":").as_str()));
    let curves: Vec<_> = curves.collect();
    assert_eq!(default("ssl_ecdh_curve"), Some(curves.join(":").as_str()));
}
