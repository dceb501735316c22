//! `tidegate keygen`: fresh secrets.

use std::io::{self, Write};

use clap::Args;

use crate::secrets;

/// What `tidegate keygen` takes.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(
    after_help = "Examples:\n  tidegate keygen                  # a signing secret\n  tidegate keygen --operator --env # TIDEGATE_GUARD__OPERATOR_TOKEN=…\n  tidegate keygen --env >> .env    # all that a guard and its clients need"
)]
pub struct KeygenArgs {
    /// A signing secret (what is printed where nothing else is asked for)
    #[arg(long)]
    pub secret: bool,
    /// An operator token
    #[arg(long)]
    pub operator: bool,
    /// A pepper for hashing names
    #[arg(long)]
    pub pepper: bool,
    /// Lines that set environment variables; all of them where none is asked for
    #[arg(long)]
    pub env: bool,
}

impl KeygenArgs {
    /// Prints what was asked for, one a line.
    ///
    /// # Errors
    /// The system gives no random numbers, or `out` takes no more. Some lines may be written.
    pub fn run(self, out: &mut dyn Write) -> io::Result<()> {
        let chosen = self.secret || self.operator || self.pepper;
        let lines = [
            (self.secret || !chosen, "TIDEGATE_GUARD__SECRETS"),
            (self.operator || !chosen && self.env, "TIDEGATE_GUARD__OPERATOR_TOKEN"),
            (self.pepper || !chosen && self.env, "TIDEGATE_CLIENT_KEY_PEPPER"),
        ];
        for (_, variable) in lines.into_iter().filter(|(asked, _)| *asked) {
            let secret = secrets::fresh().map_err(io::Error::other)?;
            if self.env {
                write!(out, "{variable}=")?;
            }
            writeln!(out, "{}", secret.expose())?;
        }
        Ok(())
    }
}
