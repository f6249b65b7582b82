//! The table at the end of every `make bench-NAME`: figure, target, measured, reached.

#[allow(dead_code)] // not every benchmark runs the program
pub mod built;

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

/// A row of the table.
pub struct Target {
    pub name: String,
    pub target: String,
    /// The measured figure with its spread.
    pub measured: String,
    pub reached: bool,
}

impl Target {
    /// Returns the row of a figure that was not measured, because a program is not installed.
    #[allow(dead_code)] // not every benchmark has a rival that may be missing
    pub fn missing(name: &str, program: &str) -> Self {
        let measured = format!("not measured: {program} is not installed");
        Self { name: name.into(), target: "information".into(), measured, reached: true }
    }
}

/// Prints the table and writes it to `target/bench/NAME.json`.
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
