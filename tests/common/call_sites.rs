//! Helpers of the tests of call sites: hardware watchpoints, findings and their stack frames.
#![allow(dead_code)] // not every test binary uses everything

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{disk_dir, is_root, skip, text};
use crate::trace::{self, compile, traced};

/// Returns true if this user can set the processor's watchpoints; otherwise reports `test` as skipped.
pub fn can_watch(test: &str) -> bool {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let allowed = is_root() || paranoid.trim().parse().is_ok_and(|level: i32| level <= 2);
    let dir = disk_dir();
    let program = compile(dir.path(), "try", WATCHES_ITSELF, &[]).expect("cc");
    let works = allowed && Command::new(program).status().is_ok_and(|status| status.success());
    if !works {
        skip(test, "this user cannot set hardware watchpoints");
    }
    works
}

/// Exits with 0 if a watchpoint counts a write to the program's own variable.
const WATCHES_ITSELF: &str = r#"#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile long word __attribute__((aligned(8)));

int main(void)
{
    struct perf_event_attr event = {.type = PERF_TYPE_BREAKPOINT, .size = sizeof event, .sample_period = 1,
        .bp_type = HW_BREAKPOINT_W, .bp_addr = (unsigned long)&word, .bp_len = 8, .exclude_kernel = 1};
    long fd = syscall(SYS_perf_event_open, &event, 0, -1, -1, 0), count = 0;
    word = 1;
    return fd < 0 || read((int)fd, &count, 8) != 8 || count != 1;
}
"#;

/// Returns the number of the first line of `source` that contains `mark`.
pub fn line(source: &str, mark: &str) -> u64 {
    1 + source.lines().position(|line| line.contains(mark)).expect("the mark") as u64
}

/// Traces `command`, whose standard output is a pipe, and returns its finding `id`. Panics if it has none.
pub fn finding(dir: &Path, engine: &str, command: &[&str], id: &str) -> Value {
    let (output, document) = traced(dir, &["-q", "--engine", engine], command);
    assert!(!document.is_null(), "{engine}: {}", text(&output.stderr));
    let found = trace::finding(&document, id);
    found.unwrap_or_else(|| panic!("{engine}: no {id} in {:#}", document["findings"])).clone()
}

/// Returns the frames of a finding's call site that are in the program itself, not in a library.
pub fn own(finding: &Value) -> Vec<&Value> {
    let frames = finding["wrote"]["frames"].as_array();
    let frames = frames.unwrap_or_else(|| panic!("no call site in {finding:#}"));
    frames.iter().filter(|frame| frame["library"] == false).collect()
}
