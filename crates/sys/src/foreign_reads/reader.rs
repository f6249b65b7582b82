//! The child that reads for weir, and the thread whose child it is.
//!
//! The thread that forks it does nothing else: a tracer must not find the child when it waits for its tracees, and the child
//! must not die with a tracer thread.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::Thread;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::answers::Operation;
use super::channel::{DATA_BYTES, ReaderChannel, Request};
use crate::expendable::{ExpendableChild, Limits, Rights};
use crate::memory::{read_into, segment, write_process};
use crate::shared_memory::Shared;
use crate::signals;
use crate::silence_watch::SilenceWatch;

/// The limit of a blocked read once two signals have asked weir to end, which then takes at most 2 s.
const LEAVING_BLOCKED: Duration = Duration::from_millis(100);

/// A child that reads. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct ForeignReader {
    child: ExpendableChild,
    channel: Shared<ReaderChannel>,
    has_ended: Arc<AtomicBool>,
    thread: Thread,
}

impl ForeignReader {
    /// Starts a child. Returns None if the machine has no room for it.
    pub fn start(rights: Rights) -> Option<ForeignReader> {
        // SAFETY: zero bytes are valid atomics.
        let channel = unsafe { Shared::<ReaderChannel>::zeroed() }.ok()?;
        let (sender, receiver) = mpsc::channel();
        let has_ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&has_ended);
        let parent = move || {
            // The child inherits this mask, so no signal ends it. Other threads of weir handle the signals.
            signals::block_all();
            let started = start_child(channel, rights);
            if sender.send(started).is_ok() {
                while !seen.load(Relaxed) {
                    std::thread::park();
                }
            }
        };
        let thread = std::thread::Builder::new().name("weir-reader".into()).spawn(parent).ok()?;
        let (child, channel) = receiver.recv().ok()??;
        Some(ForeignReader { child, channel, has_ended, thread: thread.thread().clone() })
    }

    /// Makes a request; see [`ReaderChannel::ask`]. Returns None if the child gives no answer within the limits.
    pub fn ask(&self, operation: Operation, words: [u64; 4], bytes: &[u8], limits: Limits) -> Option<i64> {
        if bytes.len() > DATA_BYTES {
            return Some(-i64::from(libc::ENAMETOOLONG));
        }
        let mut watch = None;
        let is_silent = || {
            let is_leaving = signals::end_requests().0 >= 2;
            let limits = if is_leaving { Limits { blocked: LEAVING_BLOCKED, ..limits } } else { limits };
            watch.get_or_insert_with(|| SilenceWatch::new(self.child.pid())).check(limits).is_some()
        };
        self.channel.ask(operation.number(), words, bytes, is_silent)
    }

    /// Copies the first bytes of the last answer.
    pub fn answer(&self, into: &mut [u8]) {
        self.channel.get(into);
    }

    /// Returns the file that belongs to the last answer.
    pub fn receive_file(&self) -> Option<OwnedFd> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        recvmsg(self.child.socket(), &mut [IoSliceMut::new(&mut byte)], &mut control, flags).ok()?;
        control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        })
    }
}

impl Drop for ForeignReader {
    fn drop(&mut self) {
        self.has_ended.store(true, Relaxed);
        self.thread.unpark();
    }
}

/// Forks the child of the calling thread.
fn start_child(
    channel: Shared<ReaderChannel>,
    rights: Rights,
) -> Option<(ExpendableChild, Shared<ReaderChannel>)> {
    let child =
        ExpendableChild::start_with(rights, |socket| channel.serve(|request| answer(&request, socket)));
    Some((child.ok()?, channel))
}

/// Answers a request in the child.
fn answer(request: &Request<'_>, socket: BorrowedFd<'_>) -> i64 {
    let Some(operation) = Operation::of(request.operation) else { return -i64::from(libc::EINVAL) };
    if operation == Operation::Memory {
        let [_, tid, length, _] = request.words;
        let words =
            request.bytes().as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>();
        let segments = words.as_chunks().0.iter().map(|[address, bytes]| segment(*address, *bytes as usize));
        let segments: Vec<libc::iovec> = segments.collect();
        // SAFETY: the room has DATA_BYTES bytes, and no reference to them exists while a request is answered.
        return unsafe {
            read_into(tid as u32, &segments, request.room(), (length as usize).min(DATA_BYTES))
        };
    }
    if operation == Operation::WriteMemory {
        let [_, tid, address, _] = request.words;
        return write_process(tid as u32, address, &request.bytes());
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(request.bytes()));
    let sent = operation.answer(&path, request.words[1]).and_then(|(bytes, file)| {
        file.map_or(Ok(()), |file| send(socket, &File::from(file)))?;
        Ok(request.put(&bytes))
    });
    sent.unwrap_or_else(|error| -i64::from(errno_of(&error)))
}

fn errno_of(error: &io::Error) -> i32 {
    // std makes such an error for a file that is none.
    let made = if error.kind() == io::ErrorKind::InvalidInput { libc::EINVAL } else { libc::EIO };
    error.raw_os_error().unwrap_or(made)
}

fn send(socket: BorrowedFd<'_>, file: &File) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
    Ok(())
}
