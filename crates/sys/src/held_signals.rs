//! Holds signals to weir for a moment, to find out whether they were sent to the process group.
//!
//! kill(2) to the process group sends the command a copy of its own, so forwarding weir's copy would deliver the signal twice. The
//! siginfo_t of both copies is the same as that of a signal to weir alone. A tracer of the command sees its copy in a signal-delivery
//! stop (ptrace(2)), also if the command ignores the signal. A blocked signal is not seen, but a second one merges with it (signal(7)).
//!
//! If weir is not the tracer, a [`crate::group_witness`] gets the signals to the group, and the command has got them if it is in the group.
//!
//! Each delivery accounts for one held signal of the same number from the same sender. A signal without a delivery is forwarded.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering::SeqCst};

use crate::clock::now_ns;
use crate::group_witness::WitnessedSignal;
use crate::{ptrace, signals};

/// The time for which a signal is held. Both copies are sent within microseconds, or a few milliseconds if a service manager sends them
/// one by one. The rest is for a tracer that waits for a processor. A user notices a longer one.
const HOLD_NS: u64 = 25_000_000;
/// The greatest age of a delivery that accounts for a signal. weir may have waited so long for a processor, or it was stopped. A later
/// signal from the same sender, to weir alone, is another one.
const MAX_AGE_NS: u64 = 250_000_000;
/// The signals that are held, and the deliveries that are kept, at most. There are seven forwarded signals.
const SLOTS: usize = 32;

/// Whether signals are held: a tracer notes deliveries.
static HOLDS: AtomicBool = AtomicBool::new(false);
static HELD: [Sent; SLOTS] = [const { Sent::none() }; SLOTS];
static DELIVERED: [Sent; SLOTS] = [const { Sent::none() }; SLOTS];
/// The number of deliveries so far.
static DELIVERIES: AtomicUsize = AtomicUsize::new(0);
/// Whether the timer is set.
static IS_SET: AtomicBool = AtomicBool::new(false);
/// The timer (timer_create(2)) that ends the time of held signals. The first timer of a process has the number 0.
static TIMER: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());
static HAS_TIMER: AtomicBool = AtomicBool::new(false);
/// The socket from which the signals of a witness are read; -1: none.
static WITNESS: AtomicI32 = AtomicI32::new(-1);

/// A signal from a process. Handlers and the tracer change it at the same time.
struct Sent {
    /// Signal number and PID of the sender; 0: none, [`Sent::RESERVED`]: its time is being set.
    key: AtomicU64,
    /// Time of the signal, in nanoseconds of CLOCK_MONOTONIC.
    time_ns: AtomicU64,
}

impl Sent {
    const RESERVED: u64 = u64::MAX;

    const fn none() -> Self {
        Self { key: AtomicU64::new(0), time_ns: AtomicU64::new(0) }
    }

    /// Takes the slot if its key is `before`, and returns whether it did.
    fn replace(&self, before: u64, key: u64, time_ns: u64) -> bool {
        if self.key.compare_exchange(before, Sent::RESERVED, SeqCst, SeqCst).is_err() {
            return false;
        }
        self.time_ns.store(time_ns, SeqCst);
        self.key.store(key, SeqCst);
        true
    }

    /// Empties the slot if it has the key. Returns false if another thread or handler did.
    fn take(&self, key: u64) -> bool {
        self.key.compare_exchange(key, 0, SeqCst, SeqCst).is_ok()
    }
}

fn key_of(signal: i32, sender: i32) -> u64 {
    u64::from(sender as u32) << 8 | signal as u64
}

fn signal_of(key: u64) -> i32 {
    (key & 0xff) as i32
}

/// Begins to hold signals. The caller is the tracer of the command and calls [`note_delivery`] or [`note_stop`]. Signals
/// are still forwarded at once if there can be no timer.
pub fn begin() {
    if !HAS_TIMER.load(SeqCst)
        && let Some(timer) = create_timer()
    {
        TIMER.store(timer, SeqCst);
        HAS_TIMER.store(true, SeqCst);
    }
    HOLDS.store(HAS_TIMER.load(SeqCst), SeqCst);
}

/// As [`begin`], for a caller that is not the tracer: deliveries are read from this socket of a witness.
pub(crate) fn begin_with_witness(socket: i32) {
    WITNESS.store(socket, SeqCst);
    begin();
}

/// Ends the reads from the socket of the witness.
pub(crate) fn forget_witness() {
    WITNESS.store(-1, SeqCst);
}

/// Creates a timer that sends a real-time signal to this process, and unblocks the signal in this thread. Returns None if there can be
/// none.
fn create_timer() -> Option<libc::timer_t> {
    // The signal after that of [`crate::ptrace::timer`].
    let signal = libc::SIGRTMIN() + 12;
    // SAFETY: zero bytes are a valid sigaction, sigset_t and sigevent; the handler is static and async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_timer as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &action, std::ptr::null_mut());
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = signal;
        let mut timer: libc::timer_t = std::ptr::null_mut();
        (libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) == 0).then_some(timer)
    }
}

extern "C" fn on_timer(_signal: libc::c_int) {
    // SAFETY: returns the address of this thread's errno, which the calls below change.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the address is valid in this thread.
    let before = unsafe { *errno };
    IS_SET.store(false, SeqCst);
    if let Some(due_ns) = forward_until(now_ns()) {
        set_timer(due_ns);
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Sets the timer, unless it is set: then its handler finds the signal and sets it again.
fn set_timer(due_ns: u64) {
    if IS_SET.swap(true, SeqCst) {
        return;
    }
    // SAFETY: zero bytes are a valid itimerspec; the timer exists, because signals are held, and is never deleted.
    unsafe {
        let mut time: libc::itimerspec = std::mem::zeroed();
        time.it_value.tv_sec = (due_ns / 1_000_000_000) as libc::time_t;
        time.it_value.tv_nsec = (due_ns % 1_000_000_000) as libc::c_long;
        libc::timer_settime(TIMER.load(SeqCst), libc::TIMER_ABSTIME, &time, std::ptr::null_mut());
    }
}

/// Notes that the command gets a signal that process `sender` has sent by kill(2).
pub fn note_delivery(signal: i32, sender: i32) {
    note(key_of(signal, sender), now_ns());
}

fn note(key: u64, time_ns: u64) {
    let slot = &DELIVERED[DELIVERIES.fetch_add(1, SeqCst) % SLOTS];
    // A handler can empty the slot between the two attempts.
    let before = slot.key.load(SeqCst);
    let _is_noted = slot.replace(before, key, time_ns) || slot.replace(0, key, time_ns);
}

/// Notes the signals that the witness got. Those to a group that the command has left did not reach it.
fn note_witnessed() {
    let mut read = [WitnessedSignal::default(); SLOTS];
    let socket = WITNESS.load(SeqCst);
    // SAFETY: the call fills at most the array, whose integers have no invalid values.
    let length =
        unsafe { libc::recv(socket, read.as_mut_ptr().cast(), size_of_val(&read), libc::MSG_DONTWAIT) };
    if length > 0 && signals::command_is_in_group() {
        let count = length as usize / size_of::<WitnessedSignal>();
        read[..count].iter().for_each(|one| note(key_of(one.signal, one.sender), one.time_ns));
    }
}

/// As [`note_delivery`], for a signal-delivery stop of a thread of the command. The caller must be its tracer.
pub fn note_stop(tid: u32, signal: i32) {
    let is_forwarded = signals::OF_GROUP.contains(&signal);
    if let Some(sender) = is_forwarded.then(|| ptrace::signal_sender(tid)).flatten() {
        note_delivery(signal, sender);
    }
}

/// Holds a signal. Returns false if the caller must forward it at once.
pub(crate) fn hold(signal: i32, sender: i32) -> bool {
    let (key, now) = (key_of(signal, sender), now_ns());
    let Some(slot) = HELD.iter().find(|slot| HOLDS.load(SeqCst) && slot.replace(0, key, now)) else {
        return false;
    };
    set_timer(now + HOLD_NS);
    // `end` can have missed this signal.
    HOLDS.load(SeqCst) || !slot.take(key)
}

/// Ends the holding: signals that come later, and those that are held and that the command has not got, are forwarded at once.
pub(crate) fn end() {
    HOLDS.store(false, SeqCst);
    let _none_is_left = forward_until(u64::MAX);
}

/// Forwards the signals whose time is over, unless the command has got them. Returns the time of the next one.
fn forward_until(now: u64) -> Option<u64> {
    if WITNESS.load(SeqCst) >= 0 {
        note_witnessed();
    }
    let mut next_ns = None;
    for slot in &HELD {
        let key = slot.key.load(SeqCst);
        if matches!(key, 0 | Sent::RESERVED) {
            continue;
        }
        let held_ns = slot.time_ns.load(SeqCst);
        let due_ns = held_ns + HOLD_NS;
        if due_ns > now {
            next_ns = Some(next_ns.map_or(due_ns, |next: u64| next.min(due_ns)));
        } else if slot.take(key) && !take_delivery(key, held_ns) {
            signals::send_to_command(signal_of(key));
        }
    }
    next_ns
}

/// Returns whether the command got such a signal about when weir did. Each delivery counts once.
fn take_delivery(key: u64, held_ns: u64) -> bool {
    let takes = |slot: &Sent| {
        slot.key.load(SeqCst) == key && slot.time_ns.load(SeqCst) + MAX_AGE_NS > held_ns && slot.take(key)
    };
    DELIVERED.iter().any(takes)
}
