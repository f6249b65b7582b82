//! Starts programs that leave known bytes in their streams and then wait.

#![allow(dead_code)]

#[path = "../../../../tests/common/programs.rs"]
pub mod programs;

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use programs::{PROGRAM, SOURCE};
use weir_model::trace::Buffer;
use weir_sys::memory::ProcessMemory;
use weir_walkers::{MemoryStore, PendingBytes, walkers};

/// A program that waits. It is killed on drop.
pub struct Waiting {
    pub child: Child,
}

impl Waiting {
    /// Starts a program and waits until it writes a byte to its stderr.
    pub fn start(command: &mut Command) -> Waiting {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|why| panic!("{command:?}: {why}"));
        let mut byte = [0];
        let got = child.stderr.as_mut().unwrap().read(&mut byte).unwrap();
        let waiting = Waiting { child };
        assert!(got == 1 && byte[0] == b'.', "{command:?} did not begin well: {:?}", waiting.rest());
        waiting
    }

    fn rest(&self) -> String {
        format!(
            "pid {}, {}",
            self.child.id(),
            self.child.stderr.as_ref().map_or(-1, |end| end.as_raw_fd() as RawFd)
        )
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the buffers that all walkers of the process read.
    pub fn buffers(&self) -> Vec<Buffer> {
        let memory = ProcessMemory { pid: self.pid() };
        walkers(self.pid()).iter().flat_map(|walker| walker.buffers(&memory)).collect()
    }

    /// Returns the pending bytes of all streams of the process.
    pub fn pending(&self) -> Vec<PendingBytes> {
        let memory = ProcessMemory { pid: self.pid() };
        walkers(self.pid()).iter().flat_map(|walker| walker.pending(&memory)).collect()
    }

    /// Stores into the memory of the program, which is in a system call and not inside a stream.
    pub fn store(&self, stores: &[MemoryStore]) {
        let memory = std::fs::File::options().write(true).open(format!("/proc/{}/mem", self.pid())).unwrap();
        for store in stores {
            memory.write_all_at(&store.bytes, store.address).unwrap();
        }
    }

    /// Returns the name of the file behind a descriptor of the program.
    pub fn name(&self, fd: i32) -> String {
        let link = std::fs::read_link(format!("/proc/{}/fd/{fd}", self.pid())).unwrap_or_default();
        link.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Compiles a C program of tests/programs; None if the compiler is missing.
pub fn compile(test: &str, compiler: &str, flags: &[&str], source: &str, to: &Path) -> Option<PathBuf> {
    compile_with(test, compiler, &[&["-O1"], flags].concat(), source, to)
}

/// Compiles a program with any compiler; None if it is missing.
pub fn compile_with(test: &str, compiler: &str, flags: &[&str], source: &str, to: &Path) -> Option<PathBuf> {
    let sources = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../walkers/tests/programs"));
    let words = [&["-o", PROGRAM, SOURCE], flags].concat();
    match programs::compile(compiler, &words, &sources.join(source), to) {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{compiler} {flags:?} {source}: {errors}");
        }
        Err(why) => {
            skip(test, &format!("{compiler}: {why}"));
            return None;
        }
    }
    Some(to.to_path_buf())
}

/// Reports that a test was skipped.
pub fn skip(test: &str, why: &str) {
    let Some(path) = std::env::var_os("WEIR_SKIPS") else { return };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{test}: {why}").unwrap();
}
