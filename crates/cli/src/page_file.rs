//! The pages that `weir report` and `--html` make, and `--open`.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weir_report::page::{self, PageSource};

/// Returns the page of one document. `path` is the file of the page; its stem names the JSON inside.
pub fn page_of(text: &str, path: &Path) -> Result<String, String> {
    let document = page::parse(text).map_err(|error| format!("--html: {}", error.0))?;
    let stem = path.file_stem().filter(|_| path.as_os_str() != "-");
    let name = format!("{}.json", stem.map_or("result".into(), |stem| stem.to_string_lossy()));
    let (title, body) = page::body(&[document]);
    Ok(page::page(&title, &body, &[PageSource { name: &name, text }]))
}

/// The program that opens a file with the user's browser, from the package xdg-utils.
const OPENER: &str = "xdg-open";
/// Time in which the opener fails if it has no browser. With one, it may run until the browser ends.
const OPENER_LIMIT: Duration = Duration::from_secs(3);

/// Opens a page in the user's browser. Fails if there is none.
pub fn show(path: &Path) -> Result<(), String> {
    let failed = |why: String| format!("--open: {why}; the page is {}: open it in a browser", path.display());
    // A relative name that begins with a hyphen would be an option.
    let path_from_root = std::path::absolute(path).map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(OPENER);
    command.arg(path_from_root).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => failed(format!("{OPENER} is not installed (package xdg-utils)")),
        _ => failed(format!("{OPENER}: execve: {error}")),
    })?;
    let start = Instant::now();
    while start.elapsed() < OPENER_LIMIT {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(failed(format!("{OPENER} ended with {status}"))),
            Ok(None) => thread::sleep(Duration::from_millis(20)),
            Err(error) => return Err(failed(format!("{OPENER}: wait4: {error}"))),
        }
    }
    Ok(())
}
