//! `tidegate store`: looking after the embedded store's log while no server has it open.

use std::{
    io::{self, Write},
    path::Path,
};

use tidegate_store_embedded::{OpenError, Repair, RepairStep, Verification, repair, verify};

use super::StoreVerb;
use crate::{
    config::Loaded,
    process::{EXIT_DENIED, EXIT_ERROR, EXIT_GOOD},
    start,
};

/// Reads the log through, or repairs it, and answers the exit code: 0 sound or repaired, 1 damaged, 2 not
/// looked at.
///
/// # Errors
/// `out` takes no more.
pub fn store(verb: StoreVerb, loaded: &Loaded, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let path = &loaded.regardless().store.path;
    match said(verb, path) {
        Ok((text, code)) => {
            out.write_all(text.as_bytes())?;
            Ok(code)
        }
        Err(error) => {
            start::complain(&error, err);
            Ok(EXIT_ERROR)
        }
    }
}

fn said(verb: StoreVerb, path: &Path) -> Result<(String, u8), OpenError> {
    match verb {
        StoreVerb::Verify => {
            let verification = verify(path)?;
            let code = if verification.damage.is_some() { EXIT_DENIED } else { EXIT_GOOD };
            Ok((verification_text(&verification), code))
        }
        StoreVerb::Repair => Ok((repair_text(&repair(path)?), EXIT_GOOD)),
    }
}

fn verification_text(verification: &Verification) -> String {
    let Verification { segments, frames, unpromised_frames, damage, .. } = verification;
    let tail = match unpromised_frames {
        0 => String::new(),
        frames => {
            format!("{frames} frames at the end were never acknowledged as durable; a start cuts them off\n")
        }
    };
    match damage {
        None => format!("the log is sound: {frames} frames in {segments} segments\n{tail}"),
        Some(damage) => format!("{damage}\n{frames} frames in {segments} segments can be read\n{tail}"),
    }
}

fn repair_text(repair: &Repair) -> String {
    if repair.steps.is_empty() {
        return "the log is sound: nothing was changed\n".to_owned();
    }
    repair.steps.iter().map(step_text).collect()
}

fn step_text(step: &RepairStep) -> String {
    match step {
        RepairStep::HeaderRestored { file } => format!("{file}: the header was restored; nothing was lost\n"),
        RepairStep::Cut { file, offset, frames_lost, kept } => format!(
            "{file}: cut at byte {offset}; {frames_lost} readable frames after it are lost; copies: {}\n",
            kept.join(", ")
        ),
        RepairStep::StartMoved { file } => {
            format!("the log begins with {file} now; rows last written in the missing segments are lost\n")
        }
        _ => "a step that this program has no words for\n".to_owned(),
    }
}
