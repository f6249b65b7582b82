//! What the unit tests share.

use std::io::Write;

/// Says that a test cannot be made here, and why.
pub(crate) fn skip(name: &str, why: &str) {
    let Some(list) = std::env::var_os("WEIR_SKIPS") else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(list);
    file.and_then(|mut file| writeln!(file, "{name}: {why}"))
        .expect("the list of skipped tests can be written");
}
