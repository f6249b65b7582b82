//! Runs and times whole processes.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::BoxError;

/// Runs a command and returns its wall-clock seconds, until its exit. Fails if the exit status is not 0.
pub fn seconds(command: &mut Command) -> Result<f64, BoxError> {
    let started = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let seconds = started.elapsed().as_secs_f64();
    let status = child.wait()?;
    if status.success() { Ok(seconds) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Redirects standard input from `input` and standard output to `output`, a new file.
pub fn redirect(command: &mut Command, input: &Path, output: &Path) -> Result<(), BoxError> {
    match std::fs::remove_file(output) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    command.stdin(File::open(input)?).stdout(File::create_new(output)?);
    Ok(())
}

/// Redirects standard input and output to /dev/null.
pub fn silent(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null())
}
