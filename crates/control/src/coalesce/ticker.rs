//! A thread that drains the arena of processes that weir does not trace, because they have another tracer.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_sys::clock::now_ns;

use super::Arena;

/// A thread that writes old bytes of the arena until [`ArenaTicker::finish`].
pub(crate) struct ArenaTicker {
    stop: Sender<()>,
    thread: JoinHandle<Vec<String>>,
}

impl ArenaTicker {
    /// Starts the thread for an arena with this delay. Fails if no thread can be started.
    pub fn start(mut arena: Arena, delay: Duration) -> io::Result<ArenaTicker> {
        let interval = (delay / 4).max(Duration::from_millis(1));
        let (stop, stopped) = mpsc::channel();
        let work = move || {
            let mut losses = Vec::new();
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                arena.tick(now_ns() / 1000);
                losses.extend(arena.free_ended(|_| false));
            }
            losses.extend(arena.free_ended(|_| false));
            arena.close();
            losses
        };
        let thread = std::thread::Builder::new().name("weir-ticker".into()).spawn(work)?;
        Ok(ArenaTicker { stop, thread })
    }

    /// Stops the thread. Returns a sentence for each process that died with gathered bytes, which are lost.
    pub fn finish(self) -> Vec<String> {
        // The thread ends when the channel closes.
        drop(self.stop);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
