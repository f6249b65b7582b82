//! CPython without its global lock, which no release has: built from source, and put into the root directory of the release that
//! this machine has.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::abilities::below;
use super::common::programs::{FREE_THREADED, free_threaded_folder};
use super::common::text;
use super::roots::Release;

/// The folder in the root directory.
const FOLDER: &str = "/opt/free-threaded-python";

/// Puts each version into the root directory of a release if this machine has the same. Returns those that could not be had, with
/// the reason.
pub fn install(release: &Release, root: &Path) -> Vec<(String, String)> {
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = format!("VERSION_CODENAME={}", release.suite);
    if !system.lines().any(|line| line == name) {
        return Vec::new();
    }
    let skipped = |version: &&str| {
        let why = install_version(version, root).err()?;
        Some((format!("{}, free-threaded CPython {version}", release.name()), why))
    };
    FREE_THREADED.iter().filter_map(skipped).collect()
}

fn install_version(version: &str, root: &Path) -> Result<(), String> {
    let built = free_threaded_folder();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/free-threaded-python");
    let mut build = Command::new("timeout");
    // 30 minutes: six times the time on an idle machine.
    let output = build.args(["-s", "KILL", "1800"]).arg(script).arg(&built).arg(version).output();
    let output = output.map_err(|why| format!("timeout(1): {why}"))?;
    if !output.status.success() {
        let errors = text(&output.stderr);
        return Err(errors.lines().last().unwrap_or("it was not built within 30 minutes").into());
    }
    for file in [format!("bin/python{version}t"), format!("lib/python{version}t")] {
        let to = below(root, FOLDER).join(&file);
        let parent = to.parent().expect("a folder");
        fs::create_dir_all(parent).map_err(|why| format!("{}: {why}", parent.display()))?;
        let mut copy = Command::new("cp");
        let copied = copy.args(["-a", "--remove-destination"]).arg(built.join(&file)).arg(parent).status();
        if !copied.is_ok_and(|status| status.success()) {
            return Err(format!("cp {file} failed"));
        }
    }
    Ok(())
}
