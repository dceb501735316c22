use alloc::{format, string::String};

use super::*;
use crate::Verified;

mod bounds;
mod strictness;
mod writing;

/// A digest that ends in `end`.
fn digest(end: &str) -> String {
    format!("{}{end}", &"A".repeat(43)[end.len()..])
}

/// A request whose first step holds these commands, with K1 to K9 standing for digests.
fn with_commands(commands: &str) -> String {
    let step = format!(r#"{{"partition":"K9","commands":[{commands}]}}"#);
    with_fields(&format!(r#""steps":[{step}]"#))
}

/// A request with these fields beside `op` and `family`.
fn with_fields(fields: &str) -> String {
    let mut json = format!(r#"{{"op":"9m3V0rG1TqyXo6mZyJmQ0w","family":"password",{fields}}}"#);
    for digit in '1'..='9' {
        json = json.replace(&format!("K{digit}"), &digest(&format!("{digit}")));
    }
    json
}

fn parse(json: &str) -> Result<Request, BadRequest> {
    Request::parse(Verified::trusted(json.as_bytes()))
}

fn parse_command(command: &str) -> Result<Command, BadRequest> {
    parse(&with_commands(command)).map(|request| request.steps[0].commands[0].clone())
}

/// `json` is refused at `place`, with a message that contains `message`.
#[track_caller]
fn refused(json: &str, place: &str, message: &str) {
    match parse(json) {
        Ok(_) => panic!("accepted: {json}"),
        Err(fault) => {
            assert_eq!(fault.place, place, "{fault} in {json}");
            assert!(fault.message.contains(message), "{fault} in {json}");
        }
    }
}

fn key(end: &str) -> Digest {
    Digest::parse(&digest(end)).unwrap()
}
