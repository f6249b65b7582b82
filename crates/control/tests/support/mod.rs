//! Runs programs with the loaded library, and stands in for the follower: drains the arena at each exit stop.

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

/// The library as a file, for as long as the test runs.
pub fn library() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("libweir-run-{}.so", std::process::id()));
        std::fs::write(&place, LIBRARY).unwrap();
        place
    })
}

/// A C program of tests/programs, built with `compiler`; once, for all threads of the test.
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

/// A clean environment but for what makes the library do `wishes`.
pub fn prepare(command: &mut Command, wishes: &PreloadConfig) {
    command.envs(wishes.environment(library(), None)).env_remove("PYTHONUNBUFFERED");
}

/// What a follower has seen.
#[derive(Default)]
pub struct Followed {
    /// As the shell has it: the status, or 128 + the signal.
    pub status: i32,
    /// What the ends of the processes left to do, together.
    pub drained: Vec<ArenaDrain>,
    /// Bytes that ticks wrote out.
    pub ticked: u64,
}

/// Runs a command to its end with its tiny calls gathered.
pub fn coalesced(command: &mut Command, delay: Duration, while_it_runs: impl FnMut(i32)) -> Followed {
    let mut arena = Arena::create(delay).unwrap();
    prepare(
        command,
        &PreloadConfig { coalesce: Some((CoalesceScope::All, arena.path())), ..PreloadConfig::default() },
    );
    follow(command, &mut arena, while_it_runs)
}

/// The same for a command that is prepared already.
pub fn follow(command: &mut Command, arena: &mut Arena, mut while_it_runs: impl FnMut(i32)) -> Followed {
    // SAFETY: only ptrace, which is async-signal-safe, between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            Ok(())
        })
    };
    let first = command.spawn().unwrap_or_else(|why| panic!("{command:?}: {why}")).id() as i32;
    let mut followed = Followed::default();
    let (mut fresh, begun) = (HashSet::from([first]), Instant::now());
    loop {
        let mut status = 0;
        // SAFETY: waits for tracees of this thread only.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG) };
        if pid == 0 {
            followed.ticked += arena.tick(begun.elapsed().as_micros() as u64);
            while_it_runs(first);
            std::thread::sleep(Duration::from_micros(500));
        } else if pid < 0 {
            return followed;
        } else if libc::WIFSTOPPED(status) {
            stopped(pid, status, &mut fresh, arena, &mut followed);
        } else if pid == first {
            followed.status = if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                128 + libc::WTERMSIG(status)
            };
        }
    }
}

fn stopped(pid: i32, status: i32, fresh: &mut HashSet<i32>, arena: &mut Arena, followed: &mut Followed) {
    let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
    if event == libc::PTRACE_EVENT_EXIT {
        followed.drained.push(arena.drain(pid as u32).expect("a stopped process"));
    }
    let options = libc::PTRACE_O_TRACEEXIT
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE;
    // A child begins with a SIGSTOP of the tracer's; tests stop nobody otherwise.
    let news = fresh.remove(&pid) || (signal == libc::SIGSTOP && event == 0);
    if news {
        // SAFETY: a tracee that is stopped.
        unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
    }
    let pass = if news || event != 0 { 0 } else { signal };
    // SAFETY: the same.
    unsafe { libc::ptrace(libc::PTRACE_CONT, pid, 0, pass) };
}

/// A directory of this test.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}
