//! Carries what a program writes to its terminals to where weir itself writes.

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

/// What a terminal hands out at once, at most.
const CHUNK: usize = 1 << 16;
/// How often it is looked whether the window has another size, or the program has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Two threads, one a stream: a reader of the one that has stopped does not stop the other.
pub struct Relay {
    threads: Vec<JoinHandle<Option<RelayLane>>>,
    ended: Arc<AtomicBool>,
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
    pub(super) fn begin(outer: [OwnedFd; 2], own: [File; 2]) -> io::Result<Relay> {
        let (ended, pid) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let own = Arc::new(own);
        let mut threads = Vec::new();
        for (number, from) in outer.into_iter().enumerate() {
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

    /// Who is told when nobody reads any more, as a pipe would tell it.
    pub fn of(&self, pid: u32) {
        self.pid.store(pid, SeqCst);
    }

    /// Waits until all that was written is out. What the program has left behind in the background may hold a
    /// terminal still: a process of its own then carries on, as long as that one would have held the pipe.
    pub fn finish(self) {
        self.ended.store(true, SeqCst);
        let open: Vec<RelayLane> = self.threads.into_iter().filter_map(|one| one.join().ok()?).collect();
        if open.is_empty() {
            return;
        }
        self.ended.store(false, SeqCst);
        // SAFETY: the threads of the relay have ended, so that none can hold a lock of the allocator's; the
        // child ends with `_exit` and returns to nobody.
        if unsafe { libc::fork() } == 0 {
            let threads: Vec<_> = open.into_iter().map(|lane| thread::spawn(move || lane.run())).collect();
            threads.into_iter().for_each(|one| drop(one.join()));
            // SAFETY: ends this process only, and runs nothing of the parent's.
            unsafe { libc::_exit(0) }
        }
    }
}

impl RelayLane {
    /// Itself, when its program has ended and another one has the terminal still.
    fn run(mut self) -> Option<RelayLane> {
        let mut chunk = vec![0; CHUNK];
        loop {
            // Asked before the terminal is: what was written by then is there.
            let last = self.ended.load(SeqCst);
            match self.ready() {
                Ok(true) => {}
                Ok(false) if last => return Some(self),
                Ok(false) => {
                    size::pass(&self.own, self.from.as_fd());
                    continue;
                }
                Err(_) => return None,
            }
            match self.from.read(&mut chunk) {
                // EIO: nobody has it open any more, and all has been read.
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
        let wait = if self.ended.load(SeqCst) { Duration::ZERO } else { LOOK };
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
                    self.tell();
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

    /// The program would have got SIGPIPE from a pipe that nobody reads.
    fn tell(&self) {
        if let Some(pid) = Pid::from_raw(self.pid.load(SeqCst) as i32) {
            let _gone = kill_process(pid, Signal::PIPE);
        }
    }
}
