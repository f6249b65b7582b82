//! `weir bench --list`: the words that the options take, with an explanation of each.

use weir_bench::axes::{Advice, CacheState, SyncKind, Workload};
use weir_bench::ffi::methods;
use weir_bench::{loop_image, published};

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
    let file_systems: Vec<_> = loop_image::names().into_iter().map(|name| (name, "")).collect();
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

fn section(title: &str, entries: &[(&str, &str)]) -> String {
    let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: String = entries.iter().map(|(name, text)| format!("  {name:width$}  {text}\n")).collect();
    format!("{title}\n{lines}\n")
}
