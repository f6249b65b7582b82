//! The measured program, built by `make build`.

use std::path::Path;
use std::sync::LazyLock;

static WEIR: LazyLock<String> = LazyLock::new(|| {
    // $WEIR is relative to the project; cargo starts a benchmark in its package's directory.
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package has a parent directory");
    let path = std::env::var("WEIR").unwrap_or_else(|_| "target/release/weir".into());
    project.join(path).to_string_lossy().into_owned()
});

/// Returns the absolute path of `$WEIR`, or of `target/release/weir`.
pub fn weir() -> &'static str {
    &WEIR
}
