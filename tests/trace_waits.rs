//! `weir trace` measures for how long calls block, with each engine.

mod common;
#[path = "common/trace.rs"]
mod trace;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use common::{disk_dir, has, skip};
use serde_json::Value;
use trace::{compile, engines, finding, list, path, traced};

/// Writes lines to a file, with the flags in the first argument.
const WRITER: &str = "import os, sys
flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, sys.argv[1], 0)
file = os.open('journal', flags)
for number in range(600):
    os.write(file, b'x' * 100)
";

/// Returns the measured wait of the streams with this path and direction, in seconds.
fn wait_s(document: &Value, end: &str, direction: &str) -> f64 {
    let streams = list(document, "streams").iter().filter(|stream| {
        stream["direction"] == direction && stream["path"].as_str().expect("a path").contains(end)
    });
    streams.map(|stream| stream["wait_s"].as_f64().expect("measured")).sum()
}

fn seconds(dir: &Path, words: &[&str]) -> f64 {
    let start = Instant::now();
    let status = Command::new(words[0]).args(&words[1..]).current_dir(dir).status().expect("it starts");
    assert!(status.success(), "{words:?}");
    start.elapsed().as_secs_f64()
}

#[test]
fn the_gain_of_synced_writes_is_what_the_device_takes_now() {
    let python = "/usr/bin/python3";
    if !Path::new(python).exists() {
        return skip("the_gain_of_synced_writes_is_what_the_device_takes_now", "no python3");
    }
    let dir = disk_dir();
    let dir = dir.path();
    std::fs::write(dir.join("writer.py"), WRITER).expect("the program");
    for engine in engines() {
        // The gain is compared with the time of the traced run itself: other load changes the speed of the device.
        let mut ratios = Vec::new();
        for _round in 0..5 {
            let (_, document) =
                traced(dir, &["--quiet", "--engine", engine], &[python, "writer.py", "O_SYNC"]);
            let found = finding(&document, "sync-tiny-writes");
            let promised = found.and_then(|found| found["gain"]["elapsed_s"].as_f64()).unwrap_or(0.0);
            let elapsed_s = document["elapsed_s"].as_f64().expect("a duration");
            ratios.push(promised / (elapsed_s - seconds(dir, &[python, "writer.py", "-"])));
        }
        ratios.sort_by(f64::total_cmp);
        assert!((0.5..=1.7).contains(&ratios[2]), "{engine}: promised gain / measured gain: {ratios:?}");
    }
}

#[test]
fn calls_block_for_as_long_as_the_peer_is_late() {
    let dir = disk_dir();
    let dir = dir.path();
    // The first call of a stream blocks too.
    let script = "(sleep 0.5; echo a; sleep 0.3; echo b) | cat > out";
    for engine in engines() {
        let (output, document) = traced(dir, &["--quiet", "--engine", engine], &["sh", "-c", script]);
        assert!(output.status.success(), "{engine}");
        let waited_s = wait_s(&document, "pipe:", "in");
        assert!((0.75..1.5).contains(&waited_s), "{engine}: {waited_s}");
        assert!(wait_s(&document, "/out", "out") < 0.1, "{engine}");
    }
}

#[test]
fn other_waits_are_of_no_stream() {
    let source = "#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
int main(void) {
    int file = open(\"out\", O_WRONLY | O_CREAT, 0644);
    for (int i = 0; i < 200; i++) {
        if (write(file, \"a line\\n\", 7) != 7) return 1;
        usleep(1000);
        poll(0, 0, 1);
    }
    return 0;
}";
    let dir = disk_dir();
    let Some(program) = compile(dir.path(), "sleeper", source, &[]) else {
        return skip("other_waits_are_of_no_stream", "no C compiler");
    };
    for engine in engines() {
        let (_, document) = traced(dir.path(), &["--quiet", "--engine", engine], &[path(&program)]);
        let waited_s = wait_s(&document, "/out", "out");
        assert!(waited_s < 0.1, "{engine}: {waited_s} of at least 0.4 s asleep");
    }
}

#[test]
fn a_sync_takes_the_time_for_which_it_blocks() {
    if !has("python3") {
        return skip("a_sync_takes_the_time_for_which_it_blocks", "no python3");
    }
    let dir = disk_dir();
    // Computing between write and sync is no part of the sync. A write does not block: the shortest one takes as long as
    // weir stops the program at a call. Longer stops, while other programs run, are no part of the sync either.
    let program = "import os, time
file = os.open('store', os.O_WRONLY | os.O_CREAT)
writes, syncs = [], []
def timed(call, times):
    begin = time.monotonic()
    call()
    times.append(time.monotonic() - begin)
for number in range(40):
    timed(lambda: os.write(file, b'x' * 100), writes)
    until = time.monotonic() + 0.01
    while time.monotonic() < until: pass
    timed(lambda: os.fsync(file), syncs)
print(sum(syncs), len(syncs) * (min(syncs) - 2 * min(writes)))
";
    std::fs::write(dir.path().join("syncer.py"), program).expect("the program");
    for engine in engines() {
        let (output, document) =
            traced(dir.path(), &["--quiet", "--engine", engine], &["/usr/bin/python3", "syncer.py"]);
        let words = common::text(&output.stdout);
        let seconds: Vec<f64> = words.split_whitespace().map(|word| word.parse().expect("seconds")).collect();
        let &[most_s, least_s] = &seconds[..] else { panic!("{words}") };
        let found = finding(&document, "sync-every-write").expect("the finding");
        let cost_s = found["evidence"]["cost_s"].as_f64().expect("seconds");
        assert!(
            (0.5 * least_s..1.1 * most_s).contains(&cost_s),
            "{engine}: {cost_s} of {least_s} to {most_s}"
        );
    }
}
