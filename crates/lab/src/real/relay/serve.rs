//! Takes the commands of [`control`] from standard input and at a port.

use std::io::{BufRead, BufReader, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use super::control::{self, Named};

/// Relays that obey commands. The threads that take commands last as long as the process.
#[derive(Debug)]
pub struct Server {
    address: Option<SocketAddr>,
    #[allow(dead_code)]
    relays: Arc<Vec<Named>>,
}

impl Server {
    /// Takes commands on standard input, and at `address` if there is one.
    ///
    /// # Errors
    /// Nobody can listen at the address.
    pub fn start(relays: Vec<Named>, address: Option<SocketAddr>) -> Result<Server> {
        let relays = Arc::new(relays);
        let listener = address.map(TcpListener::bind).transpose()?;
        let address = match &listener {
            Some(listener) => Some(listener.local_addr()?),
            None => None,
        };
        if let Some(listener) = listener {
            let relays = relays.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let relays = relays.clone();
                    std::thread::spawn(move || serve(&relays, stream));
                }
            });
        }
        let from_input = relays.clone();
        std::thread::spawn(move || {
            let input = std::io::stdin().lock();
            answer(&from_input, input, std::io::stdout());
        });
        Ok(Server { address, relays })
    }

    /// Where commands are taken, beside standard input.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

fn serve(relays: &[Named], stream: TcpStream) {
    if let Ok(input) = stream.try_clone() {
        answer(relays, BufReader::new(input), stream);
    }
}

/// Answers line by line, until the end of the input.
fn answer(relays: &[Named], input: impl BufRead, mut output: impl Write) {
    for line in input.lines().map_while(Result::ok) {
        let said = match control::run(relays, &line) {
            Ok(said) => said,
            Err(wrong) => format!("error: {wrong}"),
        };
        if writeln!(output, "{said}").is_err() {
            return;
        }
    }
}
