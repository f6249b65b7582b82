//! The program that is measured: as `make build` leaves it.

use std::path::Path;
use std::sync::LazyLock;

static WEIR: LazyLock<String> = LazyLock::new(|| {
    // cargo starts a benchmark in its package, and some of them change the directory: make's path is the project's.
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package has a folder");
    let told = std::env::var("WEIR").unwrap_or_else(|_| "target/release/weir".into());
    project.join(told).to_string_lossy().into_owned()
});

/// `$WEIR`, or what was built last.
pub fn weir() -> &'static str {
    &WEIR
}
