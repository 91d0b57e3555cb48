//! PostgreSQL's topologies from the installed server: a primary, alone or with streaming standbys.
//!
//! Everything listens on loopback and lives in a directory of its own. The server refuses to run as
//! root; then it runs as the user `postgres`, through `runuser`.
//!
//! # Which PostgreSQL
//! The one whose programs come first on the `PATH`, as for any other command: psql and pgbench are
//! found there anyhow, so that `PATH=DIR:$PATH` chooses clients and server together. Debian keeps the
//! server's programs off the `PATH`; where it has none, they are looked for where Debian puts them
//! ([`DEBIAN_BIN`]).

use std::io::{Error, ErrorKind, Result};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host::{
    children, free_port, has_ended, read_file, remove_file, run, signal, wait_for, write_file,
    Endpoint, PATIENCE,
};
use crate::real::cgroup::MemoryGroup;
use crate::real::relay::Relay;

/// Where Debian puts the server's programs.
pub const DEBIAN_BIN: &str = "/usr/lib/postgresql/15/bin";

/// Where the server's programs are: where the first `postgres` of the `PATH` lies, or
/// [`DEBIAN_BIN`]. A link is followed: beside it there may be some of the programs only.
pub fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(&path);
    let found = directories.find_map(|directory| directory.join("postgres").canonicalize().ok());
    let directory = found.as_deref().and_then(Path::parent);
    directory.map_or_else(|| PathBuf::from(DEBIAN_BIN), Path::to_owned)
}

/// One server of a topology.
#[derive(Debug)]
pub struct Postgres {
    bin: PathBuf,
    data: PathBuf,
    endpoint: Endpoint,
    running: bool,
    /// Words before the command that starts the server.
    launcher: Vec<String>,
}

impl Postgres {
    /// Makes a primary in `dir` and starts it. Locale C.UTF-8, UTC, trust on loopback; `settings`
    /// are lines of postgresql.conf.
    ///
    /// # Errors
    /// The server's programs are missing or fail.
    pub fn primary(dir: &Path, settings: &[&str]) -> Result<Postgres> {
        Postgres::primary_of(&programs(), dir, settings)
    }

    /// As [`Postgres::primary`], of the programs in another directory.
    ///
    /// # Errors
    /// As [`Postgres::primary`].
    pub fn primary_of(bin: &Path, dir: &Path, settings: &[&str]) -> Result<Postgres> {
        Postgres::primary_in(bin, dir, settings, None)
    }

    /// As [`Postgres::primary_of`], the server in a group whose memory is limited.
    ///
    /// # Errors
    /// As [`Postgres::primary`].
    pub fn primary_in(
        bin: &Path,
        dir: &Path,
        settings: &[&str],
        group: Option<&MemoryGroup>,
    ) -> Result<Postgres> {
        let bin = bin.to_owned();
        if !bin.join("postgres").exists() {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!(
                    "no PostgreSQL in {}; try: apt-get install postgresql-15",
                    bin.display()
                ),
            ));
        }
        let mut server = Postgres::at(bin, dir)?;
        server.launcher = group.map_or_else(Vec::new, |group| group.launcher().to_vec());
        let data = server.data.display().to_string();
        server.program(
            "initdb",
            &[
                "-D",
                &data,
                "-A",
                "trust",
                "-U",
                "postgres",
                "--locale=C.UTF-8",
                "-E",
                "UTF8",
                "--no-sync",
            ],
        )?;
        let mut conf = vec![
            format!("port = {}", server.endpoint.port),
            format!("unix_socket_directories = '{data}'"),
            "listen_addresses = '127.0.0.1'".to_owned(),
            "timezone = 'UTC'".to_owned(),
            "log_timezone = 'UTC'".to_owned(),
            "wal_compression = on".to_owned(),
            "max_wal_senders = 10".to_owned(),
        ];
        conf.extend(settings.iter().map(|line| (*line).to_owned()));
        server.append("postgresql.conf", &conf.join("\n"))?;
        server.start()?;
        Ok(server)
    }

    /// Makes a standby of this server, named `name`, with a replication slot, and starts it.
    ///
    /// # Errors
    /// As [`Postgres::primary`].
    pub fn standby(&self, dir: &Path, name: &str) -> Result<Postgres> {
        self.standby_through(dir, name, self.endpoint.port)
    }

    /// As [`Postgres::standby`], which streams from another port of 127.0.0.1, where a relay
    /// listens.
    ///
    /// # Errors
    /// As [`Postgres::primary`].
    pub fn standby_through(&self, dir: &Path, name: &str, via: u16) -> Result<Postgres> {
        let mut server = Postgres::at(self.bin.clone(), dir)?;
        let (data, port) = (
            server.data.display().to_string(),
            self.endpoint.port.to_string(),
        );
        server.program(
            "pg_basebackup",
            &[
                "-D",
                &data,
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "postgres",
                "-C",
                "-S",
                name,
                "-R",
                "-c",
                "fast",
                "--no-sync",
            ],
        )?;
        let conf = [
            format!("port = {}", server.endpoint.port),
            format!("unix_socket_directories = '{data}'"),
            format!(
                "primary_conninfo = 'host=127.0.0.1 port={via} user=postgres application_name={name}'"
            ),
        ];
        server.append("postgresql.auto.conf", &conf.join("\n"))?;
        server.start()?;
        Ok(server)
    }

    /// Waits until so many standbys for which `condition` holds, on columns of `pg_stat_replication`,
    /// stream.
    ///
    /// # Errors
    /// `TimedOut`.
    pub fn wait_for_standbys(&self, count: usize, condition: &str) -> Result<()> {
        let streaming = format!(
            "select count(*) from pg_stat_replication where state = 'streaming' and {condition}"
        );
        wait_for("all standbys to stream", PATIENCE, || {
            let found = self.endpoint().query(&streaming);
            found.is_ok_and(|found| found == count.to_string())
        })
    }

    /// Where clients reach it.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Ends its sessions, sends its standbys everything, and stops.
    ///
    /// # Errors
    /// It does not stop.
    pub fn stop(&self) -> Result<()> {
        let data = self.data.display().to_string();
        let done = self.program("pg_ctl", &["-D", &data, "-m", "fast", "-w", "stop"]);
        done.map(drop)
    }

    /// Its first process, the parent of all others.
    ///
    /// # Errors
    /// It does not run.
    pub fn pid(&self) -> Result<u32> {
        let file = read_file(&self.data.join("postmaster.pid"))?;
        let pid = file
            .lines()
            .next()
            .and_then(|line| line.trim().parse().ok());
        pid.ok_or_else(|| Error::other(format!("no process id in {file}")))
    }

    /// Starts a server that has ended, and does not wait until it answers.
    ///
    /// # Errors
    /// Its program fails.
    pub fn start_again(&self) -> Result<()> {
        if let Ok(killed) = self.pid() {
            // Where nobody asks for the end of a process it keeps its number, and a server of that
            // number is taken for one that runs.
            assert!(
                has_ended(killed),
                "process {killed} runs, and is started again"
            );
            let socket = format!(".s.PGSQL.{}.lock", self.endpoint.port);
            for lock in ["postmaster.pid", &socket] {
                remove_file(&self.data.join(lock))?;
            }
        }
        let data = self.data.display().to_string();
        let log = format!("{data}/server.log");
        // pg_ctl's child keeps its standard output open, so the log must be a file.
        let args = ["-D", &data, "-l", &log, "-W", "start"];
        self.program_by(&self.launcher, "pg_ctl", &args).map(drop)
    }

    /// Sends a signal to the server and to the processes of its sessions.
    ///
    /// # Errors
    /// It does not run.
    pub fn signal_all(&self, name: &str) -> Result<()> {
        let first = self.pid()?;
        let others = children(first)?;
        signal(first, name)?;
        for child in others {
            // One may have ended with its session.
            let _ = signal(child, name);
        }
        Ok(())
    }

    /// Where it keeps its data.
    pub fn data(&self) -> &Path {
        &self.data
    }

    fn at(bin: PathBuf, dir: &Path) -> Result<Postgres> {
        let endpoint = Endpoint::at("127.0.0.1", free_port(&["127.0.0.1"])?);
        let server = Postgres {
            bin,
            data: dir.to_path_buf(),
            endpoint,
            running: false,
            launcher: Vec::new(),
        };
        if is_root()? {
            run(Command::new("install")
                .args(["-d", "-o", "postgres", "-m", "700"])
                .arg(dir))?;
        }
        Ok(server)
    }

    fn program(&self, name: &str, args: &[&str]) -> Result<String> {
        self.program_by(&[], name, args)
    }

    /// Runs a program of PostgreSQL's, as a user that it accepts, by way of other words.
    fn program_by(&self, launcher: &[String], name: &str, args: &[&str]) -> Result<String> {
        let mut words = launcher.to_vec();
        if is_root()? {
            words.extend(["runuser", "-u", "postgres", "--"].map(str::to_owned));
        }
        words.push(self.bin.join(name).display().to_string());
        let mut command = Command::new(&words[0]);
        run(command.args(&words[1..]).args(args).current_dir("/"))
    }

    fn append(&self, file: &str, text: &str) -> Result<()> {
        let path = self.data.join(file);
        let old = read_file(&path)?;
        write_file(&path, &format!("{old}\n{text}\n"))
    }

    fn start(&mut self) -> Result<()> {
        self.start_again()?;
        self.running = true;
        wait_for("PostgreSQL to answer", PATIENCE, || {
            self.endpoint.query("select 1").is_ok()
        })
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.running {
            let data = self.data.display().to_string();
            let _ = self.program("pg_ctl", &["-D", &data, "-m", "immediate", "stop"]);
        }
    }
}

fn is_root() -> Result<bool> {
    Ok(run(Command::new("id").arg("-u"))?.trim() == "0")
}

/// A primary with two standbys `n2` and `n3`, one of which must answer: `ANY 1 (n2, n3)`.
#[derive(Debug)]
pub struct QuorumOfPostgres {
    /// Dropped first: a primary that stops waits for its standbys.
    pub standbys: [Postgres; 2],
    /// The primary.
    pub primary: Postgres,
    /// Before the primary, one for each standby, where they were asked for.
    pub relays: Vec<Relay>,
}

impl QuorumOfPostgres {
    /// Starts all three below `dir`; `settings` are lines of postgresql.conf.
    ///
    /// # Errors
    /// As [`Postgres::primary`].
    pub fn start(dir: &Path, settings: &[&str]) -> Result<QuorumOfPostgres> {
        QuorumOfPostgres::launch(dir, settings, false)
    }

    /// As [`QuorumOfPostgres::start`], with a relay between the primary and each standby: what the
    /// primary sends goes back, what the standby answers forward.
    ///
    /// # Errors
    /// As [`Postgres::primary`].
    pub fn start_relayed(dir: &Path, settings: &[&str]) -> Result<QuorumOfPostgres> {
        QuorumOfPostgres::launch(dir, settings, true)
    }

    fn launch(dir: &Path, settings: &[&str], relayed: bool) -> Result<QuorumOfPostgres> {
        let primary = Postgres::primary(&dir.join("pg1"), settings)?;
        let mut relays = Vec::new();
        let mut standby = |place: &str, name| {
            let mut port = primary.endpoint.port;
            if relayed {
                let relay = Relay::to((Ipv4Addr::LOCALHOST, port).into())?;
                port = relay.address().port();
                relays.push(relay);
            }
            primary.standby_through(&dir.join(place), name, port)
        };
        let standbys = [standby("pg2", "n2")?, standby("pg3", "n3")?];
        let endpoint = primary.endpoint();
        endpoint.query("alter system set synchronous_standby_names = 'ANY 1 (n2, n3)'")?;
        endpoint.query("select pg_reload_conf()")?;
        primary.wait_for_standbys(2, "sync_state = 'quorum'")?;
        Ok(QuorumOfPostgres {
            standbys,
            primary,
            relays,
        })
    }
}
