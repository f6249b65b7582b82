//! Copies the output of a program's terminals to weir's standard output and standard error.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::size;

/// The most bytes that a terminal returns in one read(2).
const CHUNK: usize = 1 << 16;
/// The interval at which the window size and the program's end are checked: short for a user who resizes a window.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// One thread for each stream, so that a blocked reader of one stream does not block the other.
pub struct Relay {
    threads: Vec<JoinHandle<Option<RelayLane>>>,
    /// The command has ended.
    ended: Arc<AtomicBool>,
    /// The process that gets SIGPIPE.
    pid: Arc<AtomicU32>,
}

struct RelayLane {
    from: File,
    to: File,
    own: Arc<[File; 2]>,
    ended: Arc<AtomicBool>,
    pid: Arc<AtomicU32>,
}

impl Relay {
    pub(super) fn start(masters: [OwnedFd; 2], own: [File; 2]) -> io::Result<Relay> {
        let (ended, pid) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let own = Arc::new(own);
        let mut threads = Vec::new();
        for (number, from) in masters.into_iter().enumerate() {
            let lane = RelayLane {
                from: File::from(from),
                to: own[number].try_clone()?,
                own: Arc::clone(&own),
                ended: Arc::clone(&ended),
                pid: Arc::clone(&pid),
            };
            threads.push(thread::Builder::new().name("weir-pty".into()).spawn(move || lane.run())?);
        }
        Ok(Relay { threads, ended, pid })
    }

    /// Sets the process that gets SIGPIPE when weir's own output has no reader.
    pub fn set_writer(&self, pid: u32) {
        self.pid.store(pid, SeqCst);
    }

    /// Waits until all output is copied. If a background process still holds a terminal, a forked child continues
    /// to copy its output, as a pipe would stay open for it.
    pub fn finish(self) {
        self.ended.store(true, SeqCst);
        let open: Vec<RelayLane> = self.threads.into_iter().filter_map(|one| one.join().ok()?).collect();
        if open.is_empty() {
            return;
        }
        self.ended.store(false, SeqCst);
        // SAFETY: the relay's threads have ended, so none holds an allocator lock; the child ends with `_exit` and
        // never returns.
        if unsafe { libc::fork() } == 0 {
            let threads: Vec<_> = open.into_iter().map(|lane| thread::spawn(move || lane.run())).collect();
            threads.into_iter().for_each(|one| drop(one.join()));
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
    }
}

impl RelayLane {
    /// Copies until the terminal closes. Returns itself if the command has ended and another process has the
    /// terminal open.
    fn run(mut self) -> Option<RelayLane> {
        let mut chunk = vec![0; CHUNK];
        loop {
            // Read before the poll: everything that the command wrote before its end is then readable.
            let last = self.ended.load(SeqCst);
            match self.ready() {
                Ok(true) => {}
                Ok(false) if last => return Some(self),
                Ok(false) => {
                    size::copy_window_size(&self.own, self.from.as_fd());
                    continue;
                }
                Err(_) => return None,
            }
            match self.from.read(&mut chunk) {
                // EIO: no process has the terminal open, and all output is read.
                Ok(0) | Err(_) => return None,
                Ok(read) => {
                    if self.write(&chunk[..read]).is_err() {
                        return None;
                    }
                }
            }
        }
    }

    fn ready(&self) -> io::Result<bool> {
        let mut polled = [PollFd::new(&self.from, PollFlags::IN)];
        let wait = if self.ended.load(SeqCst) { Duration::ZERO } else { CHECK_INTERVAL };
        let wait = Timespec { tv_sec: 0, tv_nsec: wait.as_nanos() as _ };
        match poll(&mut polled, Some(&wait)) {
            Ok(number) => Ok(number > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.to.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_room()?,
                Err(error) => {
                    self.send_sigpipe();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn wait_for_room(&self) -> io::Result<()> {
        let mut polled = [PollFd::new(&self.to, PollFlags::OUT)];
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sends the SIGPIPE that the program would get from a pipe without readers.
    fn send_sigpipe(&self) {
        if let Some(pid) = Pid::from_raw(self.pid.load(SeqCst) as i32) {
            let _ended = kill_process(pid, Signal::PIPE);
        }
    }
}
