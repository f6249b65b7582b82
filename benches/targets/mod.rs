//! The table that every `make bench-NAME` ends with: target, measured, reached.

#[allow(dead_code)] // not every benchmark runs the program
pub mod built;

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

/// One target.
pub struct Target {
    /// What is measured.
    pub name: String,
    /// What it must be.
    pub target: String,
    /// What it is, with its spread.
    pub measured: String,
    /// It is what it must be.
    pub reached: bool,
}

/// Prints the table and leaves it as `target/bench/NAME.json`.
pub fn finish(name: &str, targets: &[Target]) -> std::io::Result<()> {
    let width = |text: fn(&Target) -> &str, head: &str| {
        targets.iter().map(|target| text(target).chars().count()).max().unwrap_or(0).max(head.len())
    };
    let (a, b, c) =
        (width(|t| &t.name, "figure"), width(|t| &t.target, "target"), width(|t| &t.measured, "measured"));
    let mut text = format!("\n{:a$}  {:b$}  {:c$}  reached\n", "figure", "target", "measured");
    for target in targets {
        let reached = if target.reached { "yes" } else { "NO" };
        let _ = writeln!(text, "{:a$}  {:b$}  {:c$}  {reached}", target.name, target.target, target.measured);
    }
    print!("{text}");
    let rows: Vec<_> = targets
        .iter()
        .map(|t| json!({"name": t.name, "target": t.target, "measured": t.measured, "reached": t.reached}))
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    std::fs::create_dir_all(&root)?;
    std::fs::write(
        root.join(format!("{name}.json")),
        serde_json::to_string_pretty(&json!({ "rows": rows }))? + "\n",
    )
}
