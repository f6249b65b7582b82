//! The rules of the protocol, which a model keeps or breaks, and the options of its stream.

use super::run::Memory;

/// A rule of the protocol. The tests break each of them and require that the search then finds a broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The offset is published after its bytes.
    PublishLast,
    /// It is published with release order.
    PublishRelease,
    /// The lock is released with release order.
    LockRelease,
    /// The lock is acquired with acquire order.
    LockAcquire,
    /// A thread that drains another's bytes loads the offset with acquire order.
    DrainAcquire,
    /// A waiter is counted before it looks at the lock again.
    CountWaiter,
    /// A waiter issues a membarrier(2) after it was counted.
    WaiterBarrier,
    /// A thread that releases the lock wakes waiters.
    Wake,
    /// Another thread than the stream's own flushes without a reset of the offsets.
    NoForeignReset,
    /// A write that begins with pending bytes advances `drained`.
    AccountWrite,
    /// The timer locks the stream.
    TimerLock,
    /// The timer goes on to check a stream that is not armed.
    LateCheck,
    /// A thread that arms a stream changes the word on which the timer sleeps.
    ChangeTimerWord,
    /// It then looks whether the timer sleeps too long, and wakes it.
    WakeTimer,
    /// Exit waits for the lock of a stream without pending bytes: its owner may be between a drain and the rest of its
    /// bytes.
    WaitDespiteIdle,
    /// The end of the process keeps the lock.
    HoldAtEnd,
    /// A flush of another thread's stream makes its calls lock.
    SetLocking,
    /// Such a flush waits for the end of a call that does not lock.
    WaitForCall,
    /// It issues a membarrier(2) before it looks for such a call.
    ExitBarrier,
    /// A call that does not lock looks again whether it must, after it was counted.
    EnterAgain,
    /// The end of a call that does not lock is stored with release order.
    CallRelease,
    /// A flush loads it with acquire order.
    CallAcquire,
    /// Before a fork a `WEIR_FORK_FLUSH` stream is flushed.
    ForkFlush,
    /// The child's copy of it is wiped.
    ForkWipe,
    /// A `WEIR_FORK_KEEP` stream is locked during the fork.
    ForkLock,
    /// The locks of streams are taken before the registry's.
    StreamBeforeRegistry,
    /// Exit releases the locks of a fork that has no hook after it any more.
    EndFork,
    /// A thread in fork looks whether exit waits for such a fork no longer.
    LookForEnd,
    /// Cancellation is off in a write.
    CancelOff,
    /// A close waits until the timer no longer uses the stream.
    CloseWaitsForTimer,
    /// A close waits until no thread has a reference to the stream.
    CloseWaitsForReferences,
    /// A reference is taken with the registry locked.
    ReferenceLocked,
}

impl Rule {
    pub const ALL: [Rule; 32] = [
        Rule::PublishLast,
        Rule::PublishRelease,
        Rule::LockRelease,
        Rule::LockAcquire,
        Rule::DrainAcquire,
        Rule::CountWaiter,
        Rule::WaiterBarrier,
        Rule::Wake,
        Rule::NoForeignReset,
        Rule::AccountWrite,
        Rule::TimerLock,
        Rule::LateCheck,
        Rule::ChangeTimerWord,
        Rule::WakeTimer,
        Rule::WaitDespiteIdle,
        Rule::HoldAtEnd,
        Rule::SetLocking,
        Rule::WaitForCall,
        Rule::ExitBarrier,
        Rule::EnterAgain,
        Rule::CallRelease,
        Rule::CallAcquire,
        Rule::ForkFlush,
        Rule::ForkWipe,
        Rule::ForkLock,
        Rule::StreamBeforeRegistry,
        Rule::EndFork,
        Rule::LookForEnd,
        Rule::CancelOff,
        Rule::CloseWaitsForTimer,
        Rule::CloseWaitsForReferences,
        Rule::ReferenceLocked,
    ];
}

/// The options of a stream and of the model.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The rule that is broken; `None`: the protocol as libweir has it.
    pub without: Option<Rule>,
    /// `WEIR_THREADS`.
    pub threads: bool,
    /// `stale_ms` is not 0.
    pub delay: bool,
    /// Bytes of the buffer.
    pub capacity: u8,
    /// write(2) may return a smaller count.
    pub short_writes: bool,
}

impl Options {
    /// Returns the memory model on which the search finds that the rule is broken: x86-64 keeps the order
    /// of stores, and that of loads.
    pub fn memory(rule: Rule) -> Memory {
        match rule {
            Rule::PublishRelease | Rule::LockRelease | Rule::CallRelease => Memory::Relaxed,
            Rule::LockAcquire | Rule::DrainAcquire | Rule::CallAcquire => Memory::Unordered,
            _ => Memory::Tso,
        }
    }

    /// Returns whether the rule is kept.
    pub fn has(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}
