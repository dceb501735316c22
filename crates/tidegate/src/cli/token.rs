//! `tidegate token`: who may use the dashboard and its API.

use std::io::Write;

use clap::{Args, Subcommand};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::{
    api::{Api, ApiError, ReachArgs, path_part},
    words::{Column, Utc, printable, table},
};
use crate::{
    config::{Ability, Loaded},
    process::EXIT_GOOD,
};

/// What `tidegate token` takes.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct TokenArgs {
    /// Where, and as whom.
    #[command(flatten)]
    pub reach: ReachArgs,
    /// What to do.
    #[command(subcommand)]
    pub verb: TokenVerb,
}

/// What to do with tokens.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum TokenVerb {
    /// Make a token and print it; it is shown this once
    Create {
        /// Who will hold it
        name: String,
        /// What it may do: read, read:sensitive, write, operator
        #[arg(long, required = true, value_delimiter = ',', value_parser = ability)]
        abilities: Vec<Ability>,
    },
    /// List every token, without the tokens themselves
    List,
    /// Revoke a token: it is refused at once, and whoever signed in with it is out
    Revoke {
        /// Its name
        name: String,
    },
}

const EXAMPLES: &str = "\
Examples:
  tidegate token create prometheus --abilities read
  tidegate token create ci --abilities read,write > ci.token
  tidegate token list
  tidegate token revoke ci

Tokens are kept by the running server, hashed, in tokens.json of its data directory. Instances that share a store
don't share them: name those in admin.tokens.";

#[derive(Deserialize)]
struct Made {
    token: String,
}

#[derive(Deserialize)]
struct Listed {
    tokens: Vec<Known>,
}

#[derive(Deserialize)]
struct Known {
    name: String,
    abilities: Vec<String>,
    origin: String,
    created_ms: Option<u64>,
}

/// Carries out the verb and answers the exit code.
///
/// # Errors
/// Nothing was asked, or the server refused or did not answer.
pub async fn token(arguments: TokenArgs, loaded: &Loaded, out: &mut dyn Write) -> Result<u8, ApiError> {
    let TokenArgs { reach, verb } = arguments;
    let api = Api::new(&reach, loaded)?;
    let answered = match &verb {
        TokenVerb::Create { name, abilities } => {
            let abilities: Vec<&str> = abilities.iter().map(|ability| ability.name()).collect();
            let body = json!({"name": name, "abilities": abilities});
            api.call(Method::POST, "/tokens", None, Some(&body)).await?
        }
        TokenVerb::List => api.get("/tokens").await?,
        TokenVerb::Revoke { name } => {
            let path = format!("/tokens/{}", path_part(name));
            api.call(Method::DELETE, &path, None, None).await?
        }
    };
    if reach.json {
        answered.print(out)?;
        return Ok(EXIT_GOOD);
    }
    match verb {
        // The token alone, so that it can be put into a file.
        TokenVerb::Create { .. } => writeln!(out, "{}", answered.read::<Made>()?.token)?,
        TokenVerb::List => write!(out, "{}", listed(&answered.read::<Listed>()?))?,
        TokenVerb::Revoke { name } => writeln!(out, "{} is revoked.", printable(&name))?,
    }
    Ok(EXIT_GOOD)
}

fn listed(listed: &Listed) -> String {
    let row = |known: &Known| {
        let made = known.created_ms.map_or_else(|| known.origin.replace('_', " "), |at| Utc(at).to_string());
        [known.name.clone(), known.abilities.join(","), made]
    };
    let rows: Vec<_> = listed.tokens.iter().map(row).collect();
    printable(&table([Column::Left("name"), Column::Left("abilities"), Column::Left("made")], &rows))
}

fn ability(text: &str) -> Result<Ability, String> {
    let found = Ability::ALL.into_iter().find(|ability| ability.name() == text);
    found.ok_or_else(|| format!("must be one of {}", Ability::ALL.map(Ability::name).join(", ")))
}
