//! `quorate completions` and `quorate man`: what shells and `man` are told of the commands, made
//! from the definition of the command line, so that neither can be behind it.
//!
//! `make install` puts both where they are looked for; by hand:
//!
//! ```text
//! quorate completions bash > ~/.local/share/bash-completion/completions/quorate
//! quorate man ~/.local/share/man/man1
//! ```

use std::io::{self, Write};
use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::Shell;
use node::real::host;

use crate::{Cli, Failure};

/// Shells there are completions for.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum For {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, clap::Args)]
pub struct CompletionsOptions {
    /// For which shell
    #[arg(value_enum)]
    shell: For,
}

#[derive(Debug, clap::Args)]
pub struct ManOptions {
    /// Where the pages are written; made where it is missing
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Prints what a shell runs to complete commands.
pub fn completions(options: &CompletionsOptions) -> Result<(), Failure> {
    let shell = match options.shell {
        For::Bash => Shell::Bash,
        For::Zsh => Shell::Zsh,
        For::Fish => Shell::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "quorate", &mut text);
    // A reader who goes away early wants no more of it.
    match io::stdout().lock().write_all(&text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Writes a page for the program and one for each of its commands.
pub fn man(options: &ManOptions) -> Result<(), Failure> {
    let dir = &options.dir;
    host::create_dir(dir).map_err(|error| format!("could not make {}: {error}", dir.display()))?;
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut open = vec![root];
    while let Some(command) = open.pop() {
        let subcommands = command.get_subcommands().filter(|one| !one.is_hide_set());
        open.extend(subcommands.cloned());
        let page = clap_mangen::Man::new(command);
        let path = dir.join(page.get_filename());
        let mut text = Vec::new();
        let written = page.render(&mut text).and_then(|()| {
            let text = String::from_utf8_lossy(&text);
            host::write_text(&path, &text)
        });
        written.map_err(|error| format!("could not write {}: {error}", path.display()))?;
    }
    Ok(())
}
