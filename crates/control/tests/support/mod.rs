//! Runs programs with the preload library under a small tracer that drains the arena at each exit stop.

#![allow(dead_code)]

use std::collections::{BTreeMap, HashSet};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use weir_control::coalesce::{Arena, ArenaDrain};
use weir_control::plan::request::CoalesceScope;
use weir_control::preload::{LIBRARY, PreloadConfig};

/// Writes the library to a file once per test binary, and returns its path.
pub fn library() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let path =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("libweir-run-{}.so", std::process::id()));
        std::fs::write(&path, LIBRARY).unwrap();
        path
    })
}

/// Builds a C program of tests/programs once per test binary, and returns its path.
pub fn program(compiler: &str, name: &str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap();
    built.entry(format!("{name}-{compiler}")).or_insert_with(|| build(compiler, name)).clone()
}

fn build(compiler: &str, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{compiler}-{}", std::process::id()));
    let mut build = Command::new(compiler);
    build.args(["-O1", "-Wall", "-o"]).arg(&to).arg(&source).arg("-pthread");
    if compiler == "musl-gcc" {
        let machine = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
        build.args(["-idirafter", "/usr/include", "-idirafter", &machine]); // the kernel's headers
    }
    let built = build.status();
    assert!(built.unwrap().success(), "{compiler} {}", source.display());
    to
}

/// Sets the environment that loads the library with this configuration.
pub fn prepare(command: &mut Command, config: &PreloadConfig) {
    command.envs(config.environment(library(), None)).env_remove("PYTHONUNBUFFERED");
}

/// The result of a traced run.
#[derive(Default)]
pub struct TracedRun {
    /// The exit status, or 128 + the signal.
    pub status: i32,
    /// The drain of each process at its exit.
    pub drained: Vec<ArenaDrain>,
    /// The bytes that ticks wrote.
    pub ticked: u64,
}

/// Runs a command to its end with its tiny calls gathered. `while_it_runs` gets its process number again and again.
pub fn coalesced(command: &mut Command, delay: Duration, while_it_runs: impl FnMut(i32)) -> TracedRun {
    let mut arena = Arena::create(delay).unwrap();
    prepare(
        command,
        &PreloadConfig { coalesce: Some((CoalesceScope::All, arena.path())), ..PreloadConfig::default() },
    );
    trace(command, &mut arena, while_it_runs)
}

/// As [`coalesced`] for a command that is prepared.
pub fn trace(command: &mut Command, arena: &mut Arena, mut while_it_runs: impl FnMut(i32)) -> TracedRun {
    // SAFETY: the closure makes one system call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            Ok(())
        })
    };
    let first = command.spawn().unwrap_or_else(|why| panic!("{command:?}: {why}")).id() as i32;
    let mut run = TracedRun::default();
    let (mut new_children, begun) = (HashSet::from([first]), Instant::now());
    loop {
        let mut status = 0;
        // SAFETY: the call fills `status`, and waits for tracees of this thread only.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG) };
        if pid == 0 {
            run.ticked += arena.tick(begun.elapsed().as_micros() as u64);
            while_it_runs(first);
            std::thread::sleep(Duration::from_micros(500));
        } else if pid < 0 {
            return run;
        } else if libc::WIFSTOPPED(status) {
            on_stop(pid, status, &mut new_children, arena, &mut run);
        } else if pid == first {
            run.status = if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                128 + libc::WTERMSIG(status)
            };
        }
    }
}

fn on_stop(pid: i32, status: i32, new_children: &mut HashSet<i32>, arena: &mut Arena, run: &mut TracedRun) {
    let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
    if event == libc::PTRACE_EVENT_EXIT {
        let drained = arena.drain(pid as u32);
        assert!(drained.unreturned.is_none(), "{drained:?}");
        run.drained.push(drained);
    }
    let options = libc::PTRACE_O_TRACEEXIT
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE;
    // A traced child starts with a SIGSTOP. The tests send no other SIGSTOP.
    let is_new = new_children.remove(&pid) || (signal == libc::SIGSTOP && event == 0);
    if is_new {
        // SAFETY: the request takes numbers, and the tracee is stopped.
        unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
    }
    let pass = if is_new || event != 0 { 0 } else { signal };
    // SAFETY: the request takes numbers, and the tracee is stopped.
    unsafe { libc::ptrace(libc::PTRACE_CONT, pid, 0, pass) };
}

/// Makes a directory for one test.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}
