//! The summary of `weir copy`.

mod page;

use weir_model::Size;
use weir_model::copy::CopyDocument;
use weir_model::duration::format_seconds;
use weir_model::number::{counted, thousands};

pub use page::{page, page_title};

/// Returns the summary as lines: what was copied, how, and what a power cut would cost.
pub fn summary(document: &CopyDocument) -> String {
    let lines = [amounts(document), methods(document), calls(document), document.power_cut.clone()];
    lines.into_iter().filter(|line| !line.is_empty()).map(|line| format!("weir copy: {line}\n")).collect()
}

/// Returns the first line of the summary: files, bytes, time, rate and CPU time.
pub fn amounts(document: &CopyDocument) -> String {
    let bytes = document.copied_bytes + document.shared_bytes;
    let rate = (bytes as f64 / document.elapsed_s.max(1e-6)) as u64;
    let mut parts = vec![format!(
        "{}, {} in {} ({}/s), CPU time {}",
        counted(document.files, "file"),
        Size(bytes),
        format_seconds(document.elapsed_s),
        Size(rate),
        format_seconds(document.user_s + document.system_s)
    )];
    let counts = [
        (document.directories, "directory", "directories"),
        (document.symbolic_links, "symbolic link", "symbolic links"),
        (document.hard_links, "hard link", "hard links"),
        (document.special_files, "special file", "special files"),
        (document.skipped, "existing file kept", "existing files kept"),
        (
            document.dropped_attributes,
            "attribute that the target cannot keep",
            "attributes that the target cannot keep",
        ),
        (document.errors, "error", "errors"),
    ];
    for (count, one, many) in counts {
        if count > 0 {
            parts.push(format!("{} {}", thousands(count), if count == 1 { one } else { many }));
        }
    }
    let sizes = [
        (document.kept_bytes, "kept"),
        (document.shared_bytes, "shared with the source"),
        (document.hole_bytes, "of holes"),
        (document.verified_bytes, "reread and equal"),
    ];
    parts.extend(
        sizes
            .into_iter()
            .filter(|(bytes, _)| *bytes > 0)
            .map(|(bytes, what)| format!("{} {what}", Size(bytes))),
    );
    if let Some(bytes) = document.cached_bytes {
        parts.push(format!("{} left in the page cache", Size(bytes)));
    }
    parts.join("; ")
}

fn methods(document: &CopyDocument) -> String {
    let of = |(name, count): (&String, &weir_model::copy::MethodCount)| {
        format!("{name} {} ({})", counted(count.files, "file"), Size(count.bytes))
    };
    match document.methods.is_empty() {
        true => String::new(),
        false => format!("methods: {}", document.methods.iter().map(of).collect::<Vec<_>>().join(", ")),
    }
}

fn calls(document: &CopyDocument) -> String {
    let of = |(name, count): (&String, &u64)| format!("{name} {}", thousands(*count));
    match document.calls.is_empty() {
        true => String::new(),
        false => format!("data calls: {}", document.calls.iter().map(of).collect::<Vec<_>>().join(", ")),
    }
}
