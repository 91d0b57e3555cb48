//! Who may come in and who may not, with the real psql and another driver: passwords, certificates,
//! rules, on three nodes that talk encrypted. The texts of refusals are PostgreSQL 15's.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use lab::host::{wait_for, Endpoint, PATIENCE};
use lab::quorate::Cluster;
use postgres::config::{ChannelBinding, SslMode};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::kill::{open_directory, program};

/// What the nodes are started with besides certificates.
const SETTINGS: [&str; 5] = [
    "ssl=on",
    "ssl_cert_file=node.crt",
    "ssl_key_file=node.key",
    "ssl_ca_file=ca.crt",
    "quorate.peer_tls=on",
];

const RULES: &str = "
host      all       postgres    127.0.0.0/8  trust
hostssl   postgres  ann,+staff  all          scram-sha-256
hostssl   all       cora        all          cert
hostssl   all       dora        all          scram-sha-256  clientcert=verify-full
hostnossl all       plain       all          scram-sha-256
host      all       eve         all          reject
host      all       late,guest,one,nobody,blank  all  scram-sha-256
";

const ROLES: &str = "
create role ann login password 'secret of ann';
create role staff;
create role bob login password 'secret of bob' in role staff;
create role cora login;
create role dora login password 'secret of dora';
create role plain login password 'secret of plain';
create role eve login password 'secret of eve';
create role late login password 'secret of late' valid until '2001-01-01';
create role guest nologin password 'secret of guest';
create role one login password 'secret of one' connection limit 1;
create role blank login;
";

/// Three nodes with certificates of one authority, and clients' certificates for ann and cora.
struct Secured {
    cluster: Cluster,
    certs: PathBuf,
    dir: TempDir,
}

fn quorate(arguments: &[&str]) -> String {
    let done = Command::new(program())
        .args(arguments)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success(), "quorate {arguments:?}: {text}");
    text
}

/// Puts into a node's directory, which need not be there yet, what the node shows to say who it is,
/// and the list of revoked certificates if the authority has made one.
pub fn equip(certs: &Path, name: &str, node: &Path) {
    std::fs::create_dir_all(node).expect("a directory");
    let copy = |from: &str, to: &str| {
        std::fs::copy(certs.join(from), node.join(to)).expect("a copy");
    };
    copy(&format!("{name}.crt"), "node.crt");
    copy(&format!("{name}.key"), "node.key");
    copy("ca.crt", "ca.crt");
    if certs.join("ca.crl").exists() {
        copy("ca.crl", "ca.crl");
    }
}

impl Secured {
    fn start() -> Secured {
        let dir = open_directory();
        let certs = dir.path().join("certs");
        let certs_text = certs.to_str().expect("a plain path").to_owned();
        quorate(&["cert", "ca", "--dir", &certs_text]);
        for (name, address) in [
            ("n1", "127.0.0.1"),
            ("n2", "127.0.0.2"),
            ("n3", "127.0.0.3"),
        ] {
            quorate(&[
                "cert",
                "node",
                name,
                "--host",
                address,
                "--dir",
                &certs_text,
            ]);
            let node = dir.path().join("data").join(name);
            equip(&certs, name, &node);
            std::fs::write(node.join("pg_hba.conf"), RULES).expect("the rules");
        }
        for role in ["ann", "cora", "dora"] {
            quorate(&["cert", "client", role, "--dir", &certs_text]);
        }
        let cluster = Cluster::start(program(), dir.path(), 3, &SETTINGS).expect("a cluster");
        let secured = Secured {
            cluster,
            certs,
            dir,
        };
        secured.node(0).query(ROLES).expect("the roles");
        secured
    }

    fn node(&self, index: usize) -> &Endpoint {
        &self.cluster.nodes()[index]
    }

    /// psql at a node, as `user`, over TLS, and with further settings of the connection.
    fn psql(&self, node: usize, user: &str, settings: &str, sql: &str) -> Result<String, String> {
        let endpoint = self.node(node);
        let connection = format!(
            "host={} port={} user={user} dbname=postgres sslmode=verify-full sslrootcert={} {settings}",
            endpoint.host,
            endpoint.port,
            self.certs.join("ca.crt").display(),
        );
        let done = Command::new("psql")
            .args(["-X", "-A", "-t", "-q", &connection, "-c", sql])
            .env("PGCONNECT_TIMEOUT", "5")
            .env("PGPASSWORD", format!("secret of {user}"))
            .output()
            .expect("psql");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
        match done.status.success() {
            true => Ok(text(done.stdout)),
            false => Err(text(done.stderr)),
        }
    }

    fn refused(&self, node: usize, user: &str, settings: &str, with: &str) {
        let error = self
            .psql(node, user, settings, "select 1")
            .expect_err("a refusal");
        assert!(
            error.ends_with(&format!("FATAL:  {with}")),
            "{user} {settings}: {error}"
        );
    }

    fn certificate(&self, of: &str) -> String {
        let file = |end: &str| self.certs.join(format!("client-{of}.{end}"));
        format!(
            "sslcert={} sslkey={}",
            file("crt").display(),
            file("key").display()
        )
    }
}

#[test]
fn whoever_shows_enough_gets_in() {
    let secured = Secured::start();
    for node in 0..3 {
        clients_with_passwords(&secured, node);
        clients_with_certificates(&secured, node);
    }
    limits_of_roles(&secured);
    another_driver(&secured);
    readers_on_standbys(&secured);
    rules_are_read_anew(&secured);
    nodes_want_certificates(&secured);
}

fn clients_with_passwords(secured: &Secured, node: usize) {
    let ssl = "select ssl, version, bits >= 128 from pg_stat_ssl where pid = pg_backend_pid()";
    let shown = secured.psql(node, "ann", "channel_binding=require", ssl);
    assert_eq!(shown.as_deref(), Ok("t|TLSv1.3|t"));
    let shown = secured.psql(node, "ann", "channel_binding=disable", ssl);
    assert_eq!(shown.as_deref(), Ok("t|TLSv1.3|t"));
    let older = "ssl_max_protocol_version=TLSv1.2 channel_binding=require";
    let shown = secured.psql(node, "bob", older, ssl);
    assert_eq!(
        shown.as_deref(),
        Ok("t|TLSv1.2|t"),
        "through the role staff"
    );
    let plain = secured.psql(node, "plain", "sslmode=disable", "show ssl");
    assert_eq!(plain.as_deref(), Ok("on"));

    let wrong = |user: &str| format!("password authentication failed for user \"{user}\"");
    secured.refused(node, "ann", "password=wrong", &wrong("ann"));
    for user in ["nobody", "blank", "late"] {
        secured.refused(node, user, "", &wrong(user));
    }
    let host = "for host \"127.0.0.1\"";
    secured.refused(
        node,
        "ann",
        "sslmode=disable",
        &format!("no pg_hba.conf entry {host}, user \"ann\", database \"postgres\", no encryption"),
    );
    secured.refused(
        node,
        "eve",
        "",
        &format!(
            "pg_hba.conf rejects connection {host}, user \"eve\", database \"postgres\", SSL \
             encryption"
        ),
    );
    secured.refused(
        node,
        "ann",
        "dbname=template1",
        &format!(
            "no pg_hba.conf entry {host}, user \"ann\", database \"template1\", SSL encryption"
        ),
    );
    secured.refused(
        node,
        "guest",
        "",
        "role \"guest\" is not permitted to log in",
    );
}

fn clients_with_certificates(secured: &Secured, node: usize) {
    let who = "select client_dn, issuer_dn, client_serial > 0 from pg_stat_ssl \
               where pid = pg_backend_pid()";
    let shown = secured.psql(node, "cora", &secured.certificate("cora"), who);
    assert_eq!(shown.as_deref(), Ok("/CN=cora|/CN=Quorate CA|t"));
    let shown = secured.psql(node, "dora", &secured.certificate("dora"), who);
    assert_eq!(shown.as_deref(), Ok("/CN=dora|/CN=Quorate CA|t"));
    secured.refused(
        node,
        "cora",
        &secured.certificate("ann"),
        "certificate authentication failed for user \"cora\"",
    );
    secured.refused(
        node,
        "dora",
        &secured.certificate("ann"),
        "password authentication failed for user \"dora\"",
    );
    let without = "sslcert=/nonexistent";
    secured.refused(
        node,
        "cora",
        without,
        "connection requires a valid client certificate",
    );
}

fn limits_of_roles(secured: &Secured) {
    let held = secured.psql(1, "one", "", "select 1");
    assert_eq!(held.as_deref(), Ok("1"));
    let mut first = driver(secured, "one")
        .connect(connector(secured, None))
        .expect("the first");
    secured.refused(0, "one", "", "too many connections for role \"one\"");
    first.simple_query("select 1").expect("it goes on");
    first.close().expect("its end");
    wait_for("room for another", PATIENCE, || {
        secured.psql(0, "one", "", "select 1").is_ok()
    })
    .expect("the first is gone");
    let verifier = "select rolpassword ~ '^SCRAM-SHA-256\\$4096:[^$]{24}\\$[^:]{44}:.{44}$' \
                    from pg_authid where rolname = 'ann'";
    assert_eq!(secured.node(0).query(verifier).expect("an answer"), "t");
    // A verifier is kept as it is: whoever knows its password gets in.
    secured
        .node(0)
        .query(
            "do $$ begin execute format('create role twin login password %L in role staff', \
                (select rolpassword from pg_authid where rolname = 'ann')); end $$",
        )
        .expect("the twin");
    let shown = secured.psql(2, "twin", "password='secret of ann'", "select current_user");
    assert_eq!(shown.as_deref(), Ok("twin"));
}

fn connector(secured: &Secured, client: Option<&str>) -> MakeRustlsConnect {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(secured.certs.join("ca.crt")).expect("the authority");
    roots.add(ca).expect("a certificate");
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match client {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let file = |end: &str| secured.certs.join(format!("client-{name}.{end}"));
            let chain = vec![CertificateDer::from_pem_file(file("crt")).expect("a certificate")];
            let key = PrivateKeyDer::from_pem_file(file("key")).expect("a key");
            builder
                .with_client_auth_cert(chain, key)
                .expect("a certificate")
        }
    };
    MakeRustlsConnect::new(config)
}

/// Another driver than libpq, at a node that does not lead.
fn driver(secured: &Secured, user: &str) -> postgres::Config {
    let leader = secured.cluster.leader().expect("a leader");
    let node = secured.node((leader + 1) % 3);
    let mut config = postgres::Config::new();
    config
        .host(&node.host)
        .port(node.port)
        .user(user)
        .password(format!("secret of {user}"))
        .dbname("postgres")
        .ssl_mode(SslMode::Require)
        .connect_timeout(Duration::from_secs(5));
    config
}

fn another_driver(secured: &Secured) {
    let mut config = driver(secured, "ann");
    config.channel_binding(ChannelBinding::Require);
    let mut ann = config.connect(connector(secured, None)).expect("a session");
    ann.batch_execute("create temp table t(i int)").ok();
    let rows = ann
        .query("select generate_series(1, $1::int)", &[&50_000])
        .expect("rows");
    assert_eq!(rows.len(), 50_000);
    // A statement is cancelled by a connection that is encrypted too.
    let cancel = ann.cancel_token();
    let tls = connector(secured, None);
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        cancel.cancel_query(tls)
    });
    let error = ann
        .simple_query("select pg_sleep(20)")
        .expect_err("it is cancelled");
    assert_eq!(
        error.code().map(|code| code.code()),
        Some("57014"),
        "{error}"
    );
    canceller
        .join()
        .expect("no panic")
        .expect("a cancel request");
    let cora = driver(secured, "cora").connect(connector(secured, Some("cora")));
    let row = cora
        .expect("a session")
        .query_one("select current_user::text", &[]);
    assert_eq!(row.expect("a row").get::<_, String>(0), "cora");
}

/// A node that serves a reader itself asks for the same.
fn readers_on_standbys(secured: &Secured) {
    let leader = secured.cluster.leader().expect("a leader");
    let node = (leader + 1) % 3;
    let reads = "channel_binding=require options='-c quorate.follower_reads=settled'";
    let shown = secured.psql(node, "bob", reads, "select pg_is_in_recovery()");
    assert_eq!(shown.as_deref(), Ok("t"));
    let wrong = format!("{reads} password=wrong");
    let refusal = "password authentication failed for user \"bob\"";
    secured.refused(node, "bob", &wrong, refusal);
}

fn rules_are_read_anew(secured: &Secured) {
    let write = |rules: &str| {
        for name in ["n1", "n2", "n3"] {
            let file = secured
                .dir
                .path()
                .join("data")
                .join(name)
                .join("pg_hba.conf");
            std::fs::write(file, rules).expect("the rules");
        }
        let reloaded = secured
            .node(1)
            .query("select pg_reload_conf()")
            .expect("an answer");
        assert_eq!(reloaded, "t");
    };
    let rules = "select line_number, type, database, user_name, address, netmask, auth_method, \
                 options, error from pg_hba_file_rules where line_number in (3, 4, 9)";
    let shown = secured.node(0).query(rules).expect("the rules");
    let expected = "3|hostssl|{postgres}|{ann,+staff}|all||scram-sha-256||\n\
                    4|hostssl|{all}|{cora}|all||cert|{clientcert=verify-full}|";
    assert_eq!(shown, expected);

    write(&format!("host all eve 127.0.0.0/8 trust{RULES}"));
    for node in 0..3 {
        wait_for("the new rule", PATIENCE, || {
            secured
                .psql(node, "eve", "sslmode=disable", "select 1")
                .is_ok()
        })
        .expect("eve gets in");
    }
    // With an error in it, the file is refused whole.
    write("host all all all trust\nhost all all all fancy\n");
    let shown = secured
        .node(0)
        .query("select line_number, error from pg_hba_file_rules");
    let expected = "1|\n2|invalid authentication method \"fancy\"";
    assert_eq!(shown.expect("the rules"), expected);
    assert!(secured
        .psql(0, "ann", "sslmode=disable", "select 1")
        .is_err());
    let denied = secured
        .psql(0, "eve", "", "table pg_hba_file_rules")
        .expect_err("no right");
    assert_eq!(
        denied,
        "ERROR:  permission denied for view pg_hba_file_rules"
    );
    let denied = secured
        .psql(0, "eve", "", "select pg_reload_conf()")
        .expect_err("no right");
    assert_eq!(
        denied,
        "ERROR:  permission denied for function pg_reload_conf"
    );

    // SIGHUP is for one node.
    let rules = format!("host all eve 127.0.0.0/8 reject{RULES}");
    let leader = secured.cluster.leader().expect("a leader");
    let index = (leader + 1) % 3;
    let dir = secured.cluster.data().join(format!("n{}", index + 1));
    std::fs::write(dir.join("pg_hba.conf"), rules).expect("the rules");
    let pid = secured.cluster.status().expect("the nodes")[index]
        .pid
        .expect("it runs");
    let sent = Command::new("kill")
        .args(["-HUP", &pid.to_string()])
        .status();
    assert!(sent.expect("kill").success());
    wait_for("the rule of one node", PATIENCE, || {
        secured.psql(index, "eve", "", "select 1").is_err()
    })
    .expect("eve is refused there");
    assert!(
        secured.psql(leader, "eve", "", "select 1").is_ok(),
        "and nowhere else"
    );
}

/// The port between nodes hangs up on whoever shows no certificate of a node.
fn nodes_want_certificates(secured: &Secured) {
    use std::io::Read;
    let file = std::fs::read_to_string(secured.cluster.data().join("n1/node.json"));
    let file: serde_json::Value = serde_json::from_str(&file.expect("a file")).expect("JSON");
    let address = file["nodes"][0]["peer_address"]
        .as_str()
        .expect("an address");
    let mut stream = std::net::TcpStream::connect(address).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a timeout");
    let _ = stream.write_all(b"\0\0\0\x20QUOR in the clear, as it used to be");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    assert!(
        !text.contains("node") && !text.contains("version"),
        "{text}"
    );
    wait_for("a line in the log", PATIENCE, || {
        let log = std::fs::read_to_string(secured.cluster.data().join("n1/node.log"));
        log.expect("a log")
            .contains("closed the connection of a node at 127.0.0.1")
    })
    .expect("the node says so");
}

// ---- Beyond loopback ----

fn lone_node(dir: &Path, settings: &[&str]) -> PathBuf {
    let password = dir.join("password");
    std::fs::write(&password, "secret\n").expect("a file");
    let data = dir.join(format!("data{}", settings.len()));
    let mut command = Command::new(program());
    // An address for documentation: no machine has it.
    command
        .args(["init", "--node", "n1=192.0.2.1", "--password-file"])
        .arg(&password)
        .arg("--data")
        .arg(&data);
    settings.iter().for_each(|setting| {
        command.args(["-c", setting]);
    });
    let done = command.output().expect("it runs");
    assert!(done.status.success(), "{done:?}");
    data.join("n1")
}

fn start(dir: &Path) -> String {
    let done = Command::new(program())
        .args(["start", "--data"])
        .arg(dir)
        .output();
    let done = done.expect("it runs");
    assert!(!done.status.success(), "{done:?}");
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[test]
fn nothing_listens_beyond_loopback_without_authentication_and_tls() {
    let dir = open_directory();
    for (settings, why) in [
        (&["ssl=off"][..], "without TLS"),
        (
            &["ssl=on", "quorate.peer_tls=off"],
            "without asking for their certificates",
        ),
    ] {
        let error = start(&lone_node(dir.path(), settings));
        assert!(error.contains(why), "{settings:?}: {error}");
    }
    let node = lone_node(dir.path(), &[]);
    for (rules, why) in [
        (
            "host all all all scram-sha-256",
            "line 1 of pg_hba.conf: it lets other machines in without TLS",
        ),
        (
            "hostssl all all all trust",
            "line 1 of pg_hba.conf: it lets other machines in without authentication",
        ),
        (
            "\n\nhostssl all all all fancy",
            "line 3 of pg_hba.conf: invalid authentication method",
        ),
        ("", "pg_hba.conf contains no rules"),
    ] {
        std::fs::write(node.join("pg_hba.conf"), rules).expect("the rules");
        let error = start(&node);
        assert!(error.contains(why), "{rules}: {error}");
    }
    std::fs::remove_file(node.join("pg_hba.conf")).expect("it was there");
    let error = start(&node);
    assert!(
        error.contains("it has no rules that say who may come in"),
        "{error}"
    );
    let mut private = std::fs::OpenOptions::new();
    let file = private.write(true).create_new(true).mode(0o600);
    let mut file = file.open(node.join("pg_hba.conf")).expect("a new file");
    file.write_all(b"hostssl all all all scram-sha-256")
        .expect("rules");
    let error = start(&node);
    assert!(
        error.contains("could not listen on 192.0.2.1:"),
        "all but that is well: {error}"
    );
}

/// The walk-through, as it stands in the document.
#[test]
fn three_machines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let may = Command::new("ip")
        .args(["netns", "add", "quorate-may-we"])
        .output();
    if !may.is_ok_and(|done| done.status.success()) {
        // Whoever is not root cannot make machines.
        println!("no network namespaces can be made here: the walk-through was not tried");
        return;
    }
    let _ = Command::new("ip")
        .args(["netns", "delete", "quorate-may-we"])
        .status();
    let done = Command::new(root.join("scripts/three_machines.py"))
        .arg(program())
        .output()
        .expect("the script runs");
    let printed = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
}
