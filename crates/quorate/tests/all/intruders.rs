//! The port between nodes, as whoever does not belong there would try it: with certificates of the
//! same authority that are another's, expired, revoked, or a removed node's, for every purpose that a
//! connection can have. Each is refused, is told nothing, and stands in the log with its reason.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use base::cluster::Administration;
use base::codec::{put_bytes, put_varint};
use base::framed::put_framed;
use base::NodeId;
use lab::host::{run, wait_for, Process, PATIENCE};
use lab::quorate::Cluster;
use node::wire::{Answer, ClusterId, Hello, Purpose};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::kill::{open_directory, program};
use crate::security::equip;

const SETTINGS: [&str; 2] = ["quorate.peer_tls=on", "ssl_crl_file=ca.crl"];

/// A certificate with its key.
#[derive(Clone)]
struct Shown {
    certificate: PathBuf,
    key: PathBuf,
}

struct Fort {
    cluster: Cluster,
    certs: PathBuf,
    id: ClusterId,
    _dir: tempfile::TempDir,
}

fn quorate(arguments: &[&str], dir: &Path) {
    run(Command::new(program())
        .args(arguments)
        .arg("--dir")
        .arg(dir))
    .expect("it does what it is asked");
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

fn copy(from: &Path, to: &Path) {
    std::fs::copy(from, to).expect("a copy");
}

impl Fort {
    fn start() -> Fort {
        let dir = open_directory();
        let certs = dir.path().join("certs");
        quorate(&["cert", "ca"], &certs);
        quorate(&["cert", "revoke"], &certs);
        for name in ["n1", "n2", "n3", "n4"] {
            quorate(&["cert", "node", name], &certs);
        }
        for name in ["n1", "n2", "n3"] {
            equip(&certs, name, &dir.path().join("data").join(name));
        }
        let cluster = Cluster::start(program(), dir.path(), 3, &SETTINGS).expect("a cluster");
        let settings: serde_json::Value =
            serde_json::from_str(&text(&cluster.data().join("n1/node.json"))).expect("JSON");
        let id = settings["cluster"].as_str().expect("an id").parse();
        Fort {
            id: id.expect("an id"),
            cluster,
            certs,
            _dir: dir,
        }
    }

    fn of(&self, name: &str) -> Shown {
        Shown {
            certificate: self.certs.join(format!("{name}.crt")),
            key: self.certs.join(format!("{name}.key")),
        }
    }

    /// A further certificate, made in a directory of its own with the same authority.
    fn made(&self, place: &str, arguments: &[&str], name: &str, key: Option<&Path>) -> Shown {
        let dir = self.certs.join(format!("for-{place}"));
        std::fs::create_dir_all(&dir).expect("a directory");
        for file in ["ca.crt", "ca.key"] {
            copy(&self.certs.join(file), &dir.join(file));
        }
        let mut all: Vec<&str> = vec!["cert"];
        all.extend(arguments);
        let key = key.map(|key| key.to_str().expect("a plain path"));
        all.extend(key.iter().flat_map(|key| ["--key", key]));
        quorate(&all, &dir);
        let key = key.map_or_else(|| dir.join(format!("{name}.key")), PathBuf::from);
        Shown {
            certificate: dir.join(format!("{name}.crt")),
            key,
        }
    }

    fn log(&self) -> String {
        text(&self.cluster.data().join("n1/node.log"))
    }

    fn address(&self) -> String {
        let settings: serde_json::Value =
            serde_json::from_str(&text(&self.cluster.data().join("n1/node.json"))).expect("JSON");
        let address = settings["nodes"][0]["peer_address"].as_str();
        address.expect("an address").to_owned()
    }

    /// The Hello of a node, for each purpose.
    fn hellos(&self, from: u64, name: &str) -> Vec<(&'static str, Vec<u8>)> {
        let purposes = [
            ("groups", Purpose::Groups(Vec::new())),
            ("reload", Purpose::Reload),
            ("branches", Purpose::Branches),
            ("directory", Purpose::Directory),
            ("cancel", Purpose::Cancel { pid: 1, secret: 2 }),
            (
                "administer",
                Purpose::Administer(Administration::RemoveNode("n2".into())),
            ),
        ];
        let hello = |purpose| {
            let hello = Hello {
                cluster: self.id,
                from: NodeId(from),
                to: NodeId(1),
                incarnation: 1,
                name: name.into(),
                address: "127.0.0.1:1".into(),
                purpose,
            };
            hello.encode()
        };
        let mut hellos: Vec<_> = purposes
            .into_iter()
            .map(|(what, purpose)| (what, hello(purpose)))
            .collect();
        // A session: client, server, its first packet, no rules, and so on.
        let mut session = hello(Purpose::Reload);
        let purpose = session.last_mut().expect("its purpose");
        *purpose = 2;
        put_bytes(&mut session, b"10.0.0.1:1");
        put_bytes(&mut session, b"10.0.0.2:5433");
        put_bytes(&mut session, b"\0\0\0\x18\0\x03\0\0user\0postgres\0\0");
        put_varint(&mut session, 0);
        session.extend([1, 0]);
        session.extend([0; 8 + 8 + 1]);
        hellos.push(("session", session));
        hellos
    }

    /// What a node says to a Hello that comes with a certificate.
    fn ask(&self, shown: &Shown, hello: &[u8]) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(self.certs.join("ca.crt")).expect("the authority");
        roots.add(ca).expect("a certificate");
        let chain = CertificateDer::from_pem_file(&shown.certificate).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(&shown.key).expect("a key");
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![chain], key)
            .expect("a certificate");
        let name = ServerName::try_from("n1").expect("a name");
        let tls = rustls::ClientConnection::new(Arc::new(config), name).expect("TLS");
        let socket = TcpStream::connect(self.address()).expect("a connection");
        let patience = Some(Duration::from_secs(10));
        socket.set_read_timeout(patience).expect("a timeout");
        let mut stream = rustls::StreamOwned::new(tls, socket);
        let mut framed = Vec::new();
        put_framed(&mut framed, hello);
        let mut answer = Vec::new();
        if stream.write_all(&framed).is_ok() {
            // A member is answered and then waited for; of what is said first, a piece is enough.
            let mut piece = [0; 4_096];
            if let Ok(count) = stream.read(&mut piece) {
                answer.extend_from_slice(&piece[..count]);
            }
            if answer.get(4) != Some(&WELCOME) {
                let _ = stream.read_to_end(&mut answer);
            }
        }
        answer
    }

    /// Every purpose is refused to a certificate, with a reason in the log.
    fn refuses(&self, who: &str, shown: &Shown, from: u64, name: &str, why: &str) {
        let before = self.log().matches(why).count();
        let hellos = self.hellos(from, name);
        let count = hellos.len();
        for (purpose, hello) in hellos {
            let answer = self.ask(shown, &hello);
            let said = answer.get(4..).unwrap_or_default();
            let refused = Answer::Refused.encode();
            // Nothing, or that it is refused; a node that was removed is told that, and no more than
            // it has said itself.
            let is_nothing = said.is_empty() || said == refused;
            let is_removed = who == "removed" && said.first() == Some(&REMOVED) && said.len() <= 3;
            assert!(is_nothing || is_removed, "{who}, {purpose}: {said:?}");
            let id = self.id.0.to_be_bytes();
            assert!(!answer.windows(id.len()).any(|part| part == id), "{who}");
        }
        wait_for("the reasons in the log", PATIENCE, || {
            self.log().matches(why).count() >= before + count
        })
        .unwrap_or_else(|_| panic!("{who}: no \"{why}\" in {}", self.log()));
        let log = self.log();
        let line = log.lines().rfind(|line| line.contains(why));
        let line = line.expect("the line");
        assert!(line.contains("a node at 127.0.0."), "{line}");
        assert!(!line.contains(&self.id.to_string()), "{line}");
    }
}

/// The first byte of an answer.
const WELCOME: u8 = 0;
const REMOVED: u8 = 3;

#[test]
fn whoever_is_no_member_gets_nothing_between_nodes() {
    let fort = Fort::start();
    // The keys of all three are noted, the leader's own too.
    wait_for("the keys", PATIENCE, || {
        let noted = |node: &str| {
            let log = text(&fort.cluster.data().join(node).join("node.log"));
            log.matches("is known by the key").count()
        };
        noted("n1") + noted("n2") + noted("n3") >= 3
    })
    .expect("they are noted");
    // What follows means something only because a member is let in.
    for (purpose, hello) in fort.hellos(2, "n2") {
        if matches!(purpose, "directory" | "cancel" | "reload") {
            let answer = fort.ask(&fort.of("n2"), &hello);
            assert_eq!(answer.get(4), Some(&WELCOME), "{purpose}");
        }
    }

    let foreign = fort.made("foreign", &["node", "n9"], "n9", None);
    fort.refuses("foreign", &foreign, 9, "n9", "not known as a member");
    fort.refuses(
        "foreign as n2",
        &foreign,
        2,
        "n2",
        "not that of the node n2",
    );
    let namesake = fort.made("namesake", &["node", "n2"], "n2", None);
    let why = "with another key than that of the member";
    fort.refuses("namesake", &namesake, 2, "n2", why);
    let client = fort.made("client", &["client", "n2"], "client-n2", None);
    fort.refuses("client", &client, 2, "n2", "not that of the node n2");
    let n2 = fort.of("n2").key;
    let expired = fort.made("expired", &["node", "n2", "--days", "0"], "n2", Some(&n2));
    std::thread::sleep(Duration::from_millis(1_100));
    fort.refuses("expired", &expired, 2, "n2", "expired");

    // A list that names it is read without a restart.
    let revoked = fort.made("revoked", &["node", "n2"], "n2", Some(&n2));
    let (_, hello) = fort.hellos(2, "n2").swap_remove(2);
    assert_eq!(fort.ask(&revoked, &hello).get(4), Some(&WELCOME));
    let certificate = revoked.certificate.to_str().expect("a plain path");
    quorate(&["cert", "revoke", certificate], &fort.certs);
    copy(
        &fort.certs.join("ca.crl"),
        &fort.cluster.data().join("n1/ca.crl"),
    );
    let pid = fort.cluster.pid(0).expect("n1 runs");
    lab::host::signal(pid, "HUP").expect("it is told");
    wait_for("the list to be read", PATIENCE, || {
        fort.ask(&revoked, &hello).get(4) != Some(&WELCOME)
    })
    .expect("it is refused");
    fort.refuses("revoked", &revoked, 2, "n2", "Revoked");
    assert_eq!(fort.ask(&fort.of("n2"), &hello).get(4), Some(&WELCOME));

    removed(&fort);
    let leader = fort.cluster.leader().expect("a leader");
    let one = fort.cluster.nodes()[leader].query("select 1");
    assert_eq!(one.expect("an answer"), "1");
}

/// A node that joins, and is removed.
fn removed(fort: &Fort) {
    let data = fort.cluster.data();
    let n4 = data.join("n4");
    run(Command::new(program())
        .args(["node", "add", "n4", "--data"])
        .arg(data))
    .expect("it is added");
    equip(&fort.certs, "n4", &n4);
    let mut command = Command::new(program());
    command.args(["start", "--data"]).arg(&n4);
    let process = Process::start(&mut command, &n4.join("process.log")).expect("it starts");
    let (_, hello) = fort.hellos(4, "n4").swap_remove(2);
    wait_for("n4 to be a member", PATIENCE, || {
        fort.ask(&fort.of("n4"), &hello).get(4) == Some(&WELCOME)
    })
    .expect("it is one");
    wait_for("n4 to have caught up", PATIENCE, || {
        text(&n4.join("process.log")).contains("takes clients at")
    })
    .expect("it runs");
    run(Command::new(program())
        .args(["node", "remove", "n4", "--data"])
        .arg(data))
    .expect("it is removed");
    wait_for("n1 to know", PATIENCE, || {
        fort.ask(&fort.of("n4"), &hello).get(4) != Some(&WELCOME)
    })
    .expect("it is refused");
    drop(process);
    let why = "node 4 has no part in the group any more";
    fort.refuses("removed", &fort.of("n4"), 4, "n4", why);
}

impl Fort {
    /// Waits until so many keys were noted since the start.
    fn wait_for_keys(&self, count: usize) {
        let noted = || {
            let logs = ["n1", "n2", "n3"].map(|node| self.cluster.data().join(node));
            let logs = logs.iter().map(|dir| text(&dir.join("node.log")));
            logs.map(|log| log.matches("is known by the key").count())
                .sum::<usize>()
        };
        wait_for("keys", PATIENCE, || noted() >= count).expect("they are noted");
    }

    /// Ends a node's process and starts it anew, unless it does not come back.
    fn restart(&self, node: usize) -> Process {
        lab::host::signal(self.cluster.pid(node).expect("it runs"), "TERM").expect("it is told");
        wait_for("its end", PATIENCE, || self.cluster.pid(node).is_err()).expect("it ends");
        let process = self.cluster.start_again(node).expect("it starts");
        self.cluster.nodes()[node].wait().expect("it takes clients");
        process
    }
}

/// A member gets another key while the cluster works: from when the others are told until it has
/// shown the new one, both count, so it is never locked out, in whichever order things happen.
#[test]
fn a_member_gets_another_key_while_both_count() {
    let fort = Fort::start();
    fort.wait_for_keys(3);
    let data = fort.cluster.data().to_owned();
    if fort.cluster.leader().expect("a leader") != 2 {
        run(Command::new(program())
            .args(["switchover", "n3", "--data"])
            .arg(&data))
        .expect("n3 leads");
    }
    let nodes = [
        fort.cluster.nodes()[0].clone(),
        fort.cluster.nodes()[2].clone(),
    ];
    crate::writers::create_table(&nodes[0]);
    let dir = tempfile::tempdir().expect("a directory");
    let writers = crate::writers::Writers::start(&nodes, 2, dir.path());
    let go_on = |what: &str| {
        let waited = writers.wait_for_more(20, PATIENCE);
        assert!(waited.is_some(), "nothing is written {what}");
    };
    go_on("at first");

    let (old, new) = (
        fort.of("n2"),
        fort.made("next", &["node", "n2"], "n2", None),
    );
    let (_, hello) = fort.hellos(2, "n2").swap_remove(2);
    let is_let_in = |shown: &Shown| fort.ask(shown, &hello).get(4) == Some(&WELCOME);
    assert!(
        is_let_in(&old) && !is_let_in(&new),
        "nobody was told of the new one"
    );
    run(Command::new(program())
        .args(["node", "set", "n2", "--certificate"])
        .arg(&new.certificate)
        .arg("--data")
        .arg(&data))
    .expect("they are told");
    // n1 follows, so nothing is noted of what it is shown.
    wait_for("n1 to know", PATIENCE, || is_let_in(&new)).expect("it lets the new one in");
    assert!(is_let_in(&old), "the old one counts as well");
    let with_old = fort.restart(1);
    assert!(
        is_let_in(&old) && is_let_in(&new),
        "it was let in with the old one"
    );
    go_on("while both count");

    // The node reads the new one while it runs; at its next connection the others see it.
    copy(&new.certificate, &data.join("n2/node.crt"));
    copy(&new.key, &data.join("n2/node.key"));
    with_old.signal("HUP").expect("it is told");
    go_on("with the new one");
    drop(with_old);
    wait_for("its end", PATIENCE, || fort.cluster.pid(1).is_err()).expect("it ends");
    let with_new = fort.cluster.start_again(1).expect("it starts");
    fort.cluster.nodes()[1].wait().expect("it takes clients");
    fort.wait_for_keys(4);
    wait_for("the old one to be nothing", PATIENCE, || !is_let_in(&old)).expect("it is refused");
    assert!(is_let_in(&new));
    let why = "with another key than that of the member";
    fort.refuses("with its old key", &old, 2, "n2", why);
    go_on("after it");
    let promises = writers.finish();
    promises.check(&nodes[1]);
    drop(with_new);
}
