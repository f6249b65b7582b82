//! Helpers of the unit tests.

use std::io::Write;

/// Appends a skipped test and the reason to the file that $WEIR_SKIPS names.
pub(crate) fn skip(name: &str, why: &str) {
    let Some(list) = std::env::var_os("WEIR_SKIPS") else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(list);
    file.and_then(|mut file| writeln!(file, "{name}: {why}"))
        .expect("the list of skipped tests can be written");
}
