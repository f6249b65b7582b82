//! Copies the output of a program's terminals to weir's standard output and standard error.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use weir_sys::companion::{BEGUN, Companion};
use weir_sys::errno_text;
use weir_sys::pidfd::open_process;

use super::{size, writers};

/// The most bytes that a terminal returns in one read(2).
const CHUNK: usize = 1 << 16;
/// The interval at which the window size and the program's end are checked: short for a user who resizes a window.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The number and the interval of searches for a process that waits for room in the terminal: a process that writes much fills the
/// 4 KiB of a terminal at once.
const WRITER_LOOKS: u32 = 10;
const WRITER_INTERVAL: Duration = Duration::from_millis(10);

/// The command whose output is copied.
struct TerminalCommand {
    pid: u32,
    /// None: it had ended before the start.
    process: Option<OwnedFd>,
}

/// The output of a program's terminals, in raw bytes.
pub struct TerminalOutput {
    /// Of standard output and standard error; None for one that was a terminal before.
    masters: [Option<OwnedFd>; 2],
    /// Duplicates of weir's standard output and standard error.
    own: [File; 2],
}

/// Copies one stream. Each has a thread, so that a blocked reader of one stream does not block the other.
struct RelayLane {
    from: File,
    to: File,
    own: Arc<[File; 2]>,
    /// Weir needs no more output: the command has ended, or weir has.
    ended: Arc<AtomicBool>,
    /// Takes a sentence about output that is lost. Dropped when the ended command's output is copied, or with the lane.
    drained: Option<Sender<String>>,
    /// "standard output" or "standard error".
    name: &'static str,
    command: Arc<TerminalCommand>,
}

impl TerminalOutput {
    pub(super) fn new(masters: [Option<OwnedFd>; 2], own: [File; 2]) -> TerminalOutput {
        TerminalOutput { masters, own }
    }

    /// Starts a process that copies the output of command `pid`, which is a child of this process. The process has done
    /// its work when all output of the ended command is copied, and goes on while a background process holds a terminal,
    /// as a pipe would stay open for it. It outlives a weir that is killed or detaches. This process must have one thread.
    /// Fails if the process or its threads cannot be started.
    pub fn relay(self, pid: u32) -> io::Result<Companion> {
        let command = TerminalCommand { pid, process: open_process(pid).ok() };
        let TerminalOutput { masters, own } = self;
        let kept: Vec<_> = masters
            .iter()
            .flatten()
            .map(AsRawFd::as_raw_fd)
            .chain(own.iter().map(AsRawFd::as_raw_fd))
            .chain(command.process.as_ref().map(AsRawFd::as_raw_fd))
            .collect();
        let relay = Companion::start(&kept, move |socket| copy_all(masters, own, command, socket))?;
        if relay.has_begun() { Ok(relay) } else { Err(io::Error::from_raw_os_error(libc::EAGAIN)) }
    }
}

/// Copies until the terminals close. Sends [`BEGUN`] to `weir` first; copies nothing if a thread cannot be started. After that it sends
/// a sentence about each output that takes no more bytes. Closes `weir` when its peer has ended or needs no more work, and all output
/// before that is copied.
fn copy_all(masters: [Option<OwnedFd>; 2], own: [File; 2], command: TerminalCommand, mut weir: UnixStream) {
    weir_sys::signals::catch_file_size_limit();
    let (ended, own, command) = (Arc::new(AtomicBool::new(false)), Arc::new(own), Arc::new(command));
    let (drained, all_drained) = channel();
    let lane = |(number, from): (usize, OwnedFd)| {
        let lane = RelayLane {
            from: File::from(from),
            to: own[number].try_clone()?,
            own: Arc::clone(&own),
            ended: Arc::clone(&ended),
            drained: Some(drained.clone()),
            name: ["standard output", "standard error"][number],
            command: Arc::clone(&command),
        };
        thread::Builder::new().spawn(move || lane.run())
    };
    let numbered = masters.into_iter().enumerate().filter_map(|(number, from)| Some((number, from?)));
    let lanes = numbered.map(lane).collect::<io::Result<Vec<_>>>();
    // The lanes are the only owners: the reader of weir's output sees its end when they have ended.
    drop((own, command, drained));
    let Ok(lanes) = lanes else { return };
    if weir.write_all(&[BEGUN]).is_err() {
        return;
    }
    let _end = weir.read(&mut [0]);
    ended.store(true, SeqCst);
    for sentence in all_drained {
        let _gone = writeln!(weir, "{sentence}");
    }
    drop(weir);
    lanes.into_iter().for_each(|lane| drop(lane.join()));
}

impl RelayLane {
    /// Copies until the terminal closes.
    fn run(mut self) {
        let mut chunk = vec![0; CHUNK];
        loop {
            // Read before the poll: everything that the command wrote before its end is then readable.
            let is_last = self.drained.is_some() && self.ended.load(SeqCst);
            match self.ready(if is_last { Duration::ZERO } else { CHECK_INTERVAL }) {
                Ok(true) => {}
                // Another process can have the terminal open.
                Ok(false) if is_last => {
                    self.drained = None;
                    continue;
                }
                Ok(false) => {
                    size::copy_window_size(&self.own, self.from.as_fd());
                    continue;
                }
                Err(_) => return,
            }
            match self.from.read(&mut chunk) {
                // EIO: no process has the terminal open, and all output is read.
                Ok(0) | Err(_) => return,
                Ok(read) => {
                    if self.write(&chunk[..read]).is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn ready(&self, wait: Duration) -> io::Result<bool> {
        let mut polled = [PollFd::new(&self.from, PollFlags::IN)];
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
                    match error.raw_os_error() {
                        Some(libc::EPIPE) => self.send_sigpipe(),
                        _ => self.report_lost(bytes.len(), &error),
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Reports an output that takes no more bytes, of which `rest` bytes are read and not written. The lane ends then, which closes the
    /// terminal: the next write of the program fails with EIO.
    fn report_lost(&mut self, rest: usize, error: &io::Error) {
        let mut lost = rest;
        let mut chunk = vec![0; CHUNK];
        // The terminal holds these bytes now. A program that continues to write must get the error.
        while lost < rest + CHUNK && self.ready(Duration::ZERO).is_ok_and(|is_ready| is_ready) {
            match self.from.read(&mut chunk) {
                Ok(read) if read > 0 => lost += read,
                _ => break,
            }
        }
        let advice = match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => "make room there, and run the command again",
            Some(libc::EFBIG) => "raise the limit of the file size (ulimit -f), and run the command again",
            _ => "the next write of the command fails with EIO",
        };
        let sentence = format!(
            "{}: write: {}; {lost} bytes of the command's output are lost, and weir has closed its terminal; {advice}",
            self.name,
            errno_text(error)
        );
        match &self.drained {
            Some(weir) => _ = weir.send(sentence),
            // Weir has ended: only a background process had the terminal open.
            None => _ = writeln!(&self.own[1], "weir: {sentence}"),
        }
    }

    fn wait_for_room(&self) -> io::Result<()> {
        let mut polled = [PollFd::new(&self.to, PollFlags::OUT)];
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sends the SIGPIPE that a writer would get from a pipe without readers. The writer of the bytes is not known, so the signal goes
    /// to the processes that wait for room in the terminal, else to the command.
    fn send_sigpipe(&self) {
        let Some(command) = self.command.process.as_ref() else { return };
        for _ in 0..WRITER_LOOKS {
            let waiting = writers::waiting(self.command.pid, self.from.as_fd());
            for writer in &waiting {
                let _ended = pidfd_send_signal(writer, Signal::PIPE);
            }
            if !waiting.is_empty() {
                return;
            }
            thread::sleep(WRITER_INTERVAL);
        }
        let _ended = pidfd_send_signal(command, Signal::PIPE);
    }
}
