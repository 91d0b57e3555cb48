//! `quorate lab relay`: relays in a process of their own, changed by lines on standard input or at
//! a port.

use std::io::{Error, Result};
use std::net::SocketAddr;
use std::str::FromStr;

use lab::real::relay::control::{self, Named};
use lab::real::relay::{serve, Relay};
use node::real::host;

/// How often the command looks whether it is told to stop.
const LOOK: std::time::Duration = std::time::Duration::from_secs(3_600);

#[derive(Debug, clap::Args)]
pub struct Options {
    /// A relay: its name, where it listens, and where it passes connections on to
    #[arg(required = true, value_name = "NAME=LISTEN,TARGET")]
    relays: Vec<Pair>,
    /// What all of them do from the start, for example delay=5ms bandwidth=20MB loss=1%
    #[arg(long, value_name = "NAME=VALUE", num_args = 1..)]
    both: Vec<String>,
    /// Where commands are taken, beside standard input
    #[arg(long, value_name = "ADDRESS")]
    control: Option<SocketAddr>,
}

/// Where one relay stands.
#[derive(Clone, Debug)]
struct Pair {
    name: String,
    listen: SocketAddr,
    target: SocketAddr,
}

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Pair, String> {
        let parts = text.split_once('=').and_then(|(name, addresses)| {
            let (listen, target) = addresses.split_once(',')?;
            Some(Pair {
                name: name.to_owned(),
                listen: listen.parse().ok()?,
                target: target.parse().ok()?,
            })
        });
        parts.ok_or_else(|| "not of the form NAME=ip:port,ip:port".to_owned())
    }
}

/// Passes connections on until told to stop.
pub fn run(options: &Options) -> Result<()> {
    host::hold_stop_signals();
    let mut relays = Vec::new();
    for pair in &options.relays {
        let relay = Relay::start(pair.listen, pair.target)?;
        let name = pair.name.clone();
        relays.push(Named { name, relay });
    }
    let first = match options.both.is_empty() {
        true => "show".to_owned(),
        false => format!("* both {}", options.both.join(" ")),
    };
    println!("{}", control::run(&relays, &first).map_err(Error::other)?);
    let server = serve::Server::start(relays, options.control)?;
    if let Some(address) = server.address() {
        println!("commands at {address}");
    }
    while host::wait_for_stop(LOOK).is_none() {}
    Ok(())
}
