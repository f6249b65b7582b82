//! `weir bench --list`: the words that the options take, with an explanation of each.

use weir_bench::axes::{Advice, CacheState, SyncKind, Workload};
use weir_bench::ffi::methods;
use weir_bench::{loop_image, published};
use weir_report::text::wrap;

/// Returns the lists as text.
pub fn text() -> String {
    let mut workloads: Vec<_> =
        Workload::ALL.iter().map(|workload| (workload.name(), workload.title())).collect();
    workloads.push(("copy1-copy2", "copy with read/write and with fread/fwrite: the five questions"));
    workloads.push(("all", "copy, write, read, translate and log"));
    let methods = methods();
    let methods: Vec<_> = methods.iter().map(|method| (method.name, method.title)).collect();
    let syncs: Vec<_> = SyncKind::ALL.iter().map(|kind| (kind.name(), kind.title())).collect();
    let caches: Vec<_> = CacheState::ALL.iter().map(|state| (state.name(), state.title())).collect();
    let advices: Vec<_> = Advice::ALL.iter().map(|advice| (advice.name(), advice.title())).collect();
    let file_systems: Vec<_> = loop_image::names().into_iter().map(|name| (name, made_by(name))).collect();
    let tables: Vec<_> =
        published::tables().iter().map(|table| (table.id.as_str(), table.title.as_str())).collect();
    [
        section("Workloads", &workloads),
        section("Methods (--method)", &methods),
        section("Sync policies (--sync)", &syncs),
        section("Cache states (--cache)", &caches),
        section("Advice on the input (--advice)", &advices),
        section("File systems that weir can create (--fs)", &file_systems),
        section("Published tables (--published)", &tables),
    ]
    .concat()
}

/// Width of a line in columns.
const WIDTH: usize = 80;

/// Returns how weir creates a file system.
fn made_by(name: &str) -> &'static str {
    match name {
        "tmpfs" => "in memory, mount(2)",
        "xfs" | "btrfs" => "on a loop image of at least 320 MiB, mkfs(8)",
        "ext2" => "on a loop image of at least 16 MiB, mkfs(8)",
        _ => "on a loop image of at least 64 MiB, mkfs(8)",
    }
}

fn section(title: &str, entries: &[(&str, &str)]) -> String {
    let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let rest = " ".repeat(width + 4);
    let entry = |(name, text): &(&str, &str)| wrap(text, WIDTH, &format!("  {name:width$}  "), &rest);
    format!("{title}\n{}\n\n", entries.iter().flat_map(entry).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_80_columns_and_explains_each_word() {
        let text = text();
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= WIDTH, "{widest}");
        assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
        let entries = text.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        assert!(entries.clone().count() > 40, "{text}");
        assert!(entries.clone().all(|line| line.split_whitespace().count() > 1), "{text}");
    }
}
