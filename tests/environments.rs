//! A program under weir is as alone, whatever its processes do and wherever it runs: with few descriptors, little memory, no
//! /proc, a read-only file system, in namespaces, without new privileges, beside other tracers.
//!
//! WEIR_ENVIRONMENTS=PART runs the cells whose name contains PART; the long form, `make test-all`, has 10,000 short children
//! and 2,000 processes at once.

mod common;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{WEIR, campaign, concurrent, disk_dir, has, has_private_mounts, is_root, skip, text};

/// Ends a run that hangs. A busy machine needs far less.
const LIMIT: Duration = Duration::from_secs(120);
/// The program's own exit status.
const STATUS: i32 = 7;

/// The verbs that start a program, with all their ways.
const VERBS: [(&str, &[&str]); 9] = [
    ("trace", &["trace", "--quiet", "--"]),
    ("ebpf", &["trace", "--quiet", "--engine", "ebpf", "--"]),
    ("ptrace", &["trace", "--quiet", "--engine", "ptrace", "--"]),
    ("exact", &["trace", "--quiet", "--engine", "ptrace", "--exact", "--"]),
    ("sample", &["trace", "--quiet", "--engine", "sample", "--"]),
    ("modes", &["run", "--quiet", "-oL", "--"]),
    ("max-delay", &["run", "--quiet", "--max-delay", "5ms", "--"]),
    ("rescue", &["run", "--quiet", "--rescue", "--fix-fork", "--"]),
    ("coalesce", &["run", "--quiet", "--coalesce", "--"]),
];

/// A verb that may refuse to run the program, and a part of what it must say then.
type Refusal = (&'static str, &'static str);

/// An environment to run in: the words of a shell that runs "$@" there.
struct TestEnvironment {
    name: &'static str,
    script: &'static str,
    /// The tool that it needs.
    tool: &'static str,
    may_refuse: &'static [Refusal],
}

const fn environment(name: &'static str, tool: &'static str, script: &'static str) -> TestEnvironment {
    TestEnvironment { name, script, tool, may_refuse: &[] }
}

/// The engine that was asked for needs root's capabilities.
const NO_EBPF: &[Refusal] = &[("ebpf", "it needs root, or CAP_BPF and CAP_PERFMON")];

const ENVIRONMENTS: [TestEnvironment; 20] = [
    TestEnvironment {
        may_refuse: &[("ebpf", "Too many open files")],
        ..environment("20-descriptors", "prlimit", r#"exec prlimit --nofile=20:20 "$@""#)
    },
    environment("memory", "prlimit", r#"exec prlimit --as=1073741824 "$@""#),
    environment("little-memory", "prlimit", r#"exec prlimit --as=314572800 --rss=1000000 "$@""#),
    environment("little-stack", "prlimit", r#"exec prlimit --stack=1048576 "$@""#),
    TestEnvironment {
        may_refuse: &[
            ("ptrace", NO_SIGNALS),
            ("exact", NO_SIGNALS),
            ("max-delay", NO_SIGNALS),
            ("rescue", NO_SIGNALS),
            ("coalesce", NO_SIGNALS),
        ],
        ..environment("no-pending-signals", "prlimit", r#"exec prlimit --sigpending=0:0 "$@""#)
    },
    environment("file-size", "prlimit", r#"exec prlimit --fsize=4096: "$@""#),
    TestEnvironment {
        may_refuse: &[("coalesce", "raise the limit of the file size (ulimit -f)")],
        ..environment("hard-file-size", "prlimit", r#"exec prlimit --fsize=4096:4096 "$@""#)
    },
    environment("no-core-no-locks", "prlimit", r#"exec prlimit --core=0 --memlock=0 "$@""#),
    environment("no-new-privileges", "setpriv", r#"exec setpriv --no-new-privs "$@""#),
    TestEnvironment {
        may_refuse: NO_EBPF,
        ..environment(
            "user-nobody",
            "setpriv",
            r#"exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@""#,
        )
    },
    TestEnvironment {
        may_refuse: NO_EBPF,
        ..environment(
            "no-capabilities",
            "setpriv",
            r#"exec setpriv --bounding-set -all --inh-caps -all "$@""#,
        )
    },
    TestEnvironment {
        may_refuse: NO_EBPF,
        ..environment("user-namespace", "unshare", r#"exec unshare -Ur "$@""#)
    },
    TestEnvironment {
        may_refuse: OTHER_PIDS,
        ..environment("pid-namespace", "unshare", r#"exec unshare -pf --mount-proc "$@""#)
    },
    TestEnvironment {
        may_refuse: OTHER_PIDS,
        ..environment("bubblewrap", "bwrap", r#"exec bwrap --dev-bind / / --unshare-pid --proc /proc "$@""#)
    },
    environment("mount-and-net-namespace", "unshare", r#"exec unshare -mniu "$@""#),
    TestEnvironment {
        may_refuse: &[("sample", "/proc is not mounted here")],
        ..environment(
            "no-proc",
            "unshare",
            r#"exec unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$@""#,
        )
    },
    environment(
        "read-only",
        "unshare",
        r#"exec unshare -m sh -c 'mount -o remount,bind,ro / && exec "$@"' sh "$@""#,
    ),
    TestEnvironment {
        may_refuse: &[("modes", NO_FOLDER), ("max-delay", NO_FOLDER), ("coalesce", NO_FOLDER)],
        ..environment(
            "nothing-writable",
            "unshare",
            r#"exec unshare -m sh -c 'for dir in $(findmnt -rno TARGET); do mount -o remount,bind,ro "$dir"; done 2>/dev/null
                exec env TMPDIR=/proc HOME=/proc "$@"' sh "$@""#,
        )
    },
    environment("closed-input-and-errors", "sh", r#"exec "$@" <&- 2>&-"#),
    TestEnvironment {
        may_refuse: &[("ptrace", TRACED), ("exact", TRACED), ("max-delay", TRACED), ("rescue", TRACED)],
        ..environment("under-strace", "strace", r#"exec strace -f -qq -e trace=none -o /dev/null "$@""#)
    },
];

/// The kernel's PIDs are not those of the namespace.
const OTHER_PIDS: &[Refusal] = &[("ebpf", "a PID namespace of its own")];
/// A timer takes one pending signal.
const NO_SIGNALS: &str = "raise the limit of pending signals (ulimit -i)";
/// The library is not there yet.
const NO_FOLDER: &str = "no directory for the files that are loaded into programs";
/// A process has one tracer.
const TRACED: &str = "(strace)";

/// Modes of processes.c, and the counts of the short and of the long form.
const MODES: [(&str, [&str; 2]); 8] = [
    ("short", ["300", "10000"]),
    ("concurrent", ["60", "2000"]),
    ("thread-exec", ["8", "100"]),
    ("vfork", ["30", "1000"]),
    ("clones", ["1", "1"]),
    ("lines", ["2000", "100000"]),
    ("reused", ["8", "100"]),
    ("namespaces", ["1", "30"]),
];

fn build(dir: &Path) {
    let built = common::programs::compile_c("environments/processes", &["-pthread"], dir);
    assert!(built, "gcc builds processes.c");
    common::programs::copy_program(WEIR, &dir.join("weir"));
    open_to_all(dir);
}

fn open_to_all(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o777)).expect("chmod");
}

/// A directory that every user can reach, on a file system that is writable where / is read-only.
fn shared_dir() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("weir-test-").tempdir_in("/var/tmp").expect("/var/tmp")
}

/// Runs a command to its end. Kills it, and returns None, if it hangs.
fn output(mut command: Command, dir: &Path, name: &str) -> Option<Output> {
    let (out, errors) = (dir.join(format!("{name}.out")), dir.join(format!("{name}.errors")));
    let file = |path: &Path| std::fs::File::create(path).expect("a file");
    command.stdin(Stdio::null()).stdout(file(&out)).stderr(file(&errors)).current_dir(dir);
    command.env("HOME", dir).env("TMPDIR", dir).env_remove("XDG_STATE_HOME");
    let mut child = common::KillOnDrop(common::with_signals(&mut command).spawn().expect("it starts"));
    let begin = Instant::now();
    let status = loop {
        match child.0.try_wait().expect("its status") {
            Some(status) => break status,
            None if begin.elapsed() > LIMIT => return None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let read = |path: &Path| std::fs::read(path).expect("its output");
    Some(Output { status, stdout: read(&out), stderr: read(&errors) })
}

/// Returns what is wrong with a run of weir, compared with the same program alone.
fn difference(cell: &str, wanted: &Output, got: Option<Output>, refusal: Option<&str>) -> Option<String> {
    let Some(got) = got else { return Some(format!("{cell}: did not end in {} s", LIMIT.as_secs())) };
    let errors = text(&got.stderr);
    if let Some(why) = refusal.filter(|_| got.status.code() == Some(125)) {
        let refused = got.stdout.is_empty() && errors.contains(why);
        return (!refused).then(|| format!("{cell}: refused, but not with '{why}': {errors}"));
    }
    if got.status != wanted.status || got.stdout != wanted.stdout {
        return Some(format!(
            "{cell}: {}, {} bytes; alone {}, {} bytes; {errors}",
            got.status,
            got.stdout.len(),
            wanted.status,
            wanted.stdout.len()
        ));
    }
    None
}

fn is_wished(cell: &str) -> bool {
    std::env::var("WEIR_ENVIRONMENTS").map_or(true, |part| cell.contains(&part))
}

/// Returns the verbs that this user can use.
fn verbs() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    VERBS.into_iter().filter(|(name, _)| *name != "ebpf" || is_root())
}

fn check(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn unusual_processes_end_as_alone() {
    let dir = disk_dir();
    build(dir.path());
    let long = usize::from(campaign::is_full());
    let in_namespace = ["unshare", "-pf", "--mount-proc"];
    let mut cells = Vec::new();
    for (mode, counts) in MODES {
        if mode == "reused" && !has_private_mounts() {
            skip("unusual_processes_end_as_alone: reused", "unshare -p needs root");
            continue;
        }
        // Two engines suffice to see what a mode does; the long form has all.
        let few = campaign::is_quick() && mode == "lines";
        let chosen = verbs().filter(|(name, _)| !few || ["ebpf", "rescue"].contains(name));
        cells.extend(chosen.map(|verb| (mode, counts[long], verb)));
    }
    let wrong = concurrent::for_each(2, &cells, |(mode, count, (verb, words))| {
        let cell = format!("{verb} {mode}");
        if !is_wished(&cell) {
            return None;
        }
        let program = dir.path().join("processes").display().to_string();
        let program = [program.as_str(), mode, count];
        // Only in a namespace of its own a process may say which PID was the last one without disturbing others.
        let prefix: &[&str] = if *mode == "reused" { &in_namespace } else { &[] };
        let alone = command(&[prefix, &program].concat());
        let wanted = output(alone, dir.path(), &format!("{cell} alone")).expect("the program alone ends");
        assert!(!wanted.stdout.is_empty(), "{cell}: alone {}: {}", wanted.status, text(&wanted.stderr));
        let got = output(command(&[prefix, &[WEIR], words, &program].concat()), dir.path(), &cell);
        let refusal = (*mode == "reused" && *verb == "ebpf").then_some("a PID namespace of its own");
        difference(&cell, &wanted, got, refusal)
    });
    check(&wrong.into_iter().flatten().collect::<Vec<_>>());
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

/// A cell: an environment and a verb.
type EnvironmentCell = (&'static TestEnvironment, (&'static str, &'static [&'static str]));

/// Returns the cells that this machine can run; notes the others as skipped.
fn environment_cells(test: &str) -> Vec<EnvironmentCell> {
    let mut cells = Vec::new();
    for one in &ENVIRONMENTS {
        let needs_root = ["setpriv", "unshare", "bwrap"].contains(&one.tool);
        if !has(one.tool) || needs_root && !has_private_mounts() {
            let root = if needs_root { " and root" } else { "" };
            skip(&format!("{test}: {}", one.name), &format!("needs {}{root}", one.tool));
            continue;
        }
        cells.extend(verbs().map(|verb| (one, verb)));
    }
    cells
}

/// Runs the program alone in each environment, and with weir outside or inside of it.
fn check_environments(cells: &[EnvironmentCell], enters: bool) {
    let dir = shared_dir();
    build(dir.path());
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (program, weir) = (path("processes"), path("weir"));
    let program = [program.as_str(), "lines", "100"];
    let wrong = concurrent::for_each(2, cells, |(one, (verb, words))| {
        let cell = format!("{verb} {}{}", one.name, if enters { " entered" } else { "" });
        if !is_wished(&cell) {
            return None;
        }
        let shell = ["sh", "-c", one.script, "sh"];
        let alone = command(&[&shell[..], &program].concat());
        let wanted = output(alone, dir.path(), &format!("{cell} alone")).expect("the program ends");
        assert_eq!(wanted.status.code(), Some(STATUS), "{cell}: alone: {}", text(&wanted.stderr));
        let weir = [&[weir.as_str()], *words].concat();
        let words = if enters { [&weir, &shell[..], &program] } else { [&shell[..], &weir, &program] };
        let refusal = one.may_refuse.iter().find(|(name, _)| !enters && name == verb).map(|(_, why)| *why);
        difference(&cell, &wanted, output(command(&words.concat()), dir.path(), &cell), refusal)
    });
    check(&wrong.into_iter().flatten().collect::<Vec<_>>());
}

#[test]
fn a_program_runs_in_every_place_as_alone() {
    check_environments(&environment_cells("a_program_runs_in_every_place_as_alone"), false);
}

/// The command sets the limit or makes the sandbox itself, under weir.
#[test]
fn a_program_enters_every_place_as_alone() {
    let mut cells = environment_cells("a_program_enters_every_place_as_alone");
    // Under weir a tracer has the tests of other_tracers.
    cells.retain(|(one, _)| one.tool != "strace");
    campaign::choose("places entered", &mut cells, |(one, (verb, _))| vec![one.name.into(), (*verb).into()]);
    check_environments(&cells, true);
}

/// A report calls nothing good that it cannot know.
#[test]
fn a_report_without_proc_says_so() {
    if !has_private_mounts() {
        return skip("a_report_without_proc_says_so", "a mount namespace needs root");
    }
    let dir = shared_dir();
    build(dir.path());
    let environment = ENVIRONMENTS.iter().find(|one| one.name == "no-proc").expect("the environment");
    let mut command = Command::new("sh");
    command.args(["-c", environment.script, "sh"]).arg(dir.path().join("weir")).args(["trace", "--"]);
    command.arg(dir.path().join("processes")).args(["lines", "10"]);
    let got = output(command, dir.path(), "report").expect("it ends");
    let report = text(&got.stdout) + &text(&got.stderr);
    assert!(report.contains("Nothing wrong in what could be seen"), "{report}");
    assert!(report.contains("buffers of programs (/proc is not mounted), which"), "{report}");
}

/// The kernel shows the counters of such a program to root only.
#[test]
fn a_set_user_id_program_ends_as_alone() {
    if !is_root() {
        return skip("a_set_user_id_program_ends_as_alone", "only root makes such a program");
    }
    let dir = shared_dir();
    build(dir.path());
    let program = dir.path().join("processes");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o4755)).expect("chmod");
    let environment = ENVIRONMENTS.iter().find(|one| one.name == "user-nobody").expect("the environment");
    let run = |words: &[&str], name: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", environment.script, "sh"]).args(words).arg(&program).args(["lines", "50"]);
        output(command, dir.path(), name)
    };
    let wanted = run(&[], "alone").expect("the program ends");
    let weir = dir.path().join("weir").display().to_string();
    let wrong = verbs().filter(|(verb, _)| *verb != "ebpf").filter_map(|(verb, words)| {
        let refusal = ["rescue", "coalesce"].contains(&verb).then_some("another user's rights");
        difference(verb, &wanted, run(&[&[weir.as_str()], words].concat(), verb), refusal)
    });
    check(&wrong.collect::<Vec<_>>());
}

/// A child of weir that outlives it would be a child of init, or an unknown child of the command.
#[test]
fn no_process_of_weir_is_left() {
    let dir = disk_dir();
    build(dir.path());
    for (verb, words) in verbs() {
        let mut command = common::weir(dir.path(), words);
        command.arg(dir.path().join("processes")).args(["lines", "5"]).stdout(Stdio::null());
        let mut weir = common::with_signals(&mut command).process_group(0).spawn().expect("it starts");
        let group = rustix::process::Pid::from_child(&weir);
        assert_eq!(weir.wait().expect("its status").code(), Some(STATUS), "{verb}");
        assert!(rustix::process::test_kill_process_group(group).is_err(), "{verb}: a process is left");
    }
}
