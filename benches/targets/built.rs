//! The program that is measured: as `make build` leaves it.

use std::sync::LazyLock;

static WEIR: LazyLock<String> = LazyLock::new(|| {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release/weir");
    std::env::var("WEIR").unwrap_or_else(|_| built.into())
});

/// `$WEIR`, or what was built last.
pub fn weir() -> &'static str {
    &WEIR
}
