//! A process beside weir that gets each signal to weir's process group.
//!
//! From it, [`held_signals`] learns which signals a command in the group got too, if weir is not the tracer of the command.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use crate::clock::now_ns;
use crate::companion::start_child;
use crate::signals::{OF_GROUP, set_of};
use crate::{held_signals, launch};

/// A signal that the witness got, as it is sent through the socket.
#[derive(Debug, Default, Clone, Copy)]
#[repr(C)]
pub(crate) struct WitnessedSignal {
    /// The number, as in signal(7).
    pub signal: i32,
    /// PID of the sender.
    pub sender: i32,
    /// Time at which the witness got the signal, in nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
}

/// The witness, a child of weir. Dropping it ends the process.
#[derive(Debug)]
#[must_use = "dropping it ends the witness"]
pub struct GroupWitness {
    pid: libc::pid_t,
    /// The end of this side ends the witness if weir is killed.
    _socket: UnixStream,
}

impl GroupWitness {
    /// Starts a witness, and begins to hold signals, which [`crate::signals::forward`] handles from then on. There can be one at a time.
    /// The calling process must have one thread. Fails if no socket or process can be created: signals are forwarded at once then.
    pub fn start() -> io::Result<GroupWitness> {
        let (socket, pid) = start_child(watch)?;
        held_signals::begin_with_witness(socket.as_raw_fd());
        Ok(GroupWitness { pid, _socket: socket })
    }
}

impl Drop for GroupWitness {
    fn drop(&mut self) {
        held_signals::forget_witness();
        // SAFETY: the call takes numbers. The child is not reaped, so the PID is its own. It may be stopped.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        let _killed = launch::reap(self.pid as u32);
    }
}

/// Sends each signal to the socket, until its other side ends.
fn watch(socket: UnixStream) {
    let blocked = set_of(&OF_GROUP);
    // SAFETY: the call reads a set, and returns a descriptor of this process or -1.
    let signals = unsafe { libc::signalfd(-1, &blocked, libc::SFD_CLOEXEC) };
    while signals >= 0 && has_signal(signals, socket.as_raw_fd()) {
        send_next(signals, socket.as_raw_fd());
    }
}

/// Waits for a signal. Returns false at the end of the socket's other side.
fn has_signal(signals: i32, socket: i32) -> bool {
    let mut files = [signals, socket].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: the call fills the array, whose length it gets.
    let ready = unsafe { libc::poll(files.as_mut_ptr(), 2, -1) };
    // All signals that have a handler are blocked, so that the wait is not interrupted. Weir sends nothing, so that the socket is ready
    // at its end only.
    ready > 0 && files[1].revents == 0
}

fn send_next(signals: i32, socket: i32) {
    // SAFETY: zero bytes are a valid value of the type, which the call fills.
    let (info, length) = unsafe {
        let mut info: libc::signalfd_siginfo = std::mem::zeroed();
        let length = libc::read(signals, (&raw mut info).cast(), size_of_val(&info));
        (info, length)
    };
    if length != size_of_val(&info) as isize || info.ssi_code != libc::SI_USER {
        return;
    }
    let witnessed =
        WitnessedSignal { signal: info.ssi_signo as i32, sender: info.ssi_pid as i32, time_ns: now_ns() };
    // SAFETY: the call reads a value on the stack. A full socket takes none: weir reads it whenever it gets a signal itself.
    unsafe { libc::send(socket, (&raw const witnessed).cast(), size_of_val(&witnessed), libc::MSG_DONTWAIT) };
}
