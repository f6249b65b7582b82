//! The abilities of weir for one runtime of a release: a program with pending bytes, and each verb on it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The abilities, in the order of [`Case::abilities`] and of the columns of the table.
pub const ABILITIES: [&str; 5] = ["seen", "timely", "rescued", "flush", "found"];

/// The program of tests/runtimes for one runtime, in a private directory of a release's root directory.
pub struct Case<'a> {
    pub weir: &'a Path,
    pub root: &'a Path,
    /// The directory, as a path below `root`, that begins with a slash.
    pub dir: String,
    /// The program and its arguments; paths are those below `root`.
    pub command: Vec<String>,
}

impl Case<'_> {
    /// Returns for each ability whether weir has it: for standard output and for a file that the program opened.
    pub fn abilities(&self) -> [bool; 5] {
        let (seen, flush) = self.peek_and_flush();
        [seen, self.is_timely(), self.is_rescued(), flush, self.is_found()]
    }

    /// Shows the bytes with `weir peek` and writes them with `weir flush`, both from outside of the root directory.
    fn peek_and_flush(&self) -> (bool, bool) {
        let program = self.start(&[]);
        self.wait(|| self.path("ready").exists());
        let pid = program.0.id().to_string();
        let weir = |verb: &[&str]| {
            let output = Command::new(self.weir).args(verb).arg(&pid).output().expect("weir");
            serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()
        };
        let shown = weir(&["peek", "--json", "-"]);
        // musl writes the first line of standard output at once, and runtimes without a buffer write all.
        let shown = by_descriptor(&shown["processes"][0]["streams"]);
        let has = |end: &str| shown.iter().any(|text| text.ends_with(end));
        let seen = (self.has("out", "out 0\nout 1\n") || has(r"out 1\n"))
            && (self.has("log", "log 0\nlog 1\n") || has(r"log 0\nlog 1\n"));
        weir(&["flush"]);
        (seen, self.is_whole())
    }

    /// Returns whether `weir run` writes the bytes while the program sleeps.
    fn is_timely(&self) -> bool {
        let _program = self.start(&["/weir", "run", "--"]);
        self.wait(|| self.path("ready").exists());
        self.wait(|| self.is_whole())
    }

    /// Returns whether `weir run --rescue` writes the bytes when the program is killed.
    fn is_rescued(&self) -> bool {
        let mut program = self.start_killed(&["/weir", "run", "--rescue", "--"]);
        program.0.wait().expect("wait");
        self.is_whole()
    }

    /// Returns whether `weir trace` finds that the file has lost the bytes.
    fn is_found(&self) -> bool {
        let json = format!("{}/trace.json", self.dir);
        let mut program = self.start_killed(&["/weir", "trace", "--quiet", "--json", &json, "--"]);
        program.0.wait().expect("wait");
        let text = fs::read(self.path("trace.json")).unwrap_or_default();
        let found: Value = serde_json::from_slice(&text).unwrap_or_default();
        let is_log = |finding: &Value| {
            let path = finding["path"].as_str().unwrap_or_default();
            finding["id"] == "lost-at-kill" && path.ends_with("/log")
        };
        found["findings"].as_array().is_some_and(|findings| findings.iter().any(is_log))
    }

    /// Starts the command behind the words `before`, with standard output to the file `out`.
    fn start(&self, before: &[&str]) -> KilledGroup {
        self.start_with(before, &[])
    }

    /// As `start`, with the argument that makes the program kill itself.
    fn start_killed(&self, before: &[&str]) -> KilledGroup {
        self.start_with(before, &["kill"])
    }

    fn start_with(&self, before: &[&str], after: &[&str]) -> KilledGroup {
        for name in ["ready", "log", "out"] {
            let _ = fs::remove_file(self.path(name));
        }
        let mut command = inside(self.root, &self.dir);
        command.args(before).args(&self.command).args(after);
        command.stdin(Stdio::null()).stdout(File::create(self.path("out")).expect("a new file"));
        command.stderr(File::create(self.path("err")).expect("a new file"));
        KilledGroup(command.process_group(0).spawn().expect("unshare starts"))
    }

    /// Polls a condition for 20 s, far longer than a delay of 100 ms. Returns whether it became true.
    fn wait(&self, condition: impl Fn() -> bool) -> bool {
        let end = Instant::now() + Duration::from_secs(20);
        while !condition() {
            if Instant::now() > end {
                return false;
            }
            sleep(Duration::from_millis(20));
        }
        true
    }

    fn is_whole(&self) -> bool {
        self.has("out", "out 0\nout 1\n") && self.has("log", "log 0\nlog 1\n")
    }

    /// Returns whether a file of the directory has this text.
    fn has(&self, name: &str, text: &str) -> bool {
        fs::read(self.path(name)).is_ok_and(|bytes| bytes == text.as_bytes())
    }

    fn path(&self, name: &str) -> PathBuf {
        below(self.root, &self.dir).join(name)
    }
}

/// Returns the bytes that `weir peek` shows of each descriptor. The first byte of a file buffer of libc++ is in the C library's
/// stream, which comes first.
fn by_descriptor(streams: &Value) -> Vec<String> {
    let mut texts: BTreeMap<i64, String> = BTreeMap::new();
    for one in streams.as_array().into_iter().flatten() {
        let text = texts.entry(one["fd"].as_i64().unwrap_or(-1)).or_default();
        text.push_str(one["preview"].as_str().unwrap_or_default());
    }
    texts.into_values().collect()
}

/// Returns the path of a file below a root directory as this process sees it.
pub fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Returns the beginning of a command that runs in a directory below a root directory, with this machine's /proc, /dev
/// and /sys. The mounts are private to the command.
pub fn inside(root: &Path, dir: &str) -> Command {
    const SCRIPT: &str = "root=$1 dir=$2; shift 2; for i in proc dev sys; do mount --rbind /$i \"$root/$i\" || exit; done
        exec chroot \"$root\" /usr/bin/env -i PATH=/usr/bin:/bin LC_ALL=C HOME=/tmp sh -c 'cd \"$0\" && exec \"$@\"' \"$dir\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", SCRIPT, "-"]).arg(root).arg(dir);
    command
}

/// A process whose group is killed on drop.
struct KilledGroup(Child);

impl Drop for KilledGroup {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}
