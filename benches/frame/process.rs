//! A process measured from outside.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::Failed;

/// Wall-clock seconds of a whole run, which must end with 0.
pub fn seconds(command: &mut Command) -> Result<f64, Failed> {
    let started = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let seconds = started.elapsed().as_secs_f64();
    let status = child.wait()?;
    if status.success() { Ok(seconds) } else { Err(format!("{command:?}: {status}").into()) }
}

/// From this file to that one, which is made anew.
pub fn redirect(command: &mut Command, input: &Path, output: &Path) -> Result<(), Failed> {
    match std::fs::remove_file(output) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    command.stdin(File::open(input)?).stdout(File::create_new(output)?);
    Ok(())
}

/// Nothing is read and nothing is shown.
pub fn silent(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null())
}
