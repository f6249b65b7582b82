//! Ends weir after a signal if the live screen does not, because a write to a stopped terminal blocks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ratatui_crossterm::crossterm::terminal::disable_raw_mode;
use rustix::process::Signal;

use crate::POLL_INTERVAL;

/// How long the screen has to end after a signal. A survey of thousands of processes takes a part of it.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// Starts a thread that ends weir with the status 128+N if the signal N is in `signal` for [`MAX_WAIT`]. SIGINT is excepted: the
/// user may have typed Ctrl-C for a subcommand.
pub fn after(signal: Arc<AtomicUsize>) -> io::Result<()> {
    let is_meant = move || match signal.load(Ordering::Relaxed) {
        0 => None,
        number if number == Signal::INT.as_raw() as usize => None,
        number => Some(number),
    };
    let watch = move || {
        loop {
            std::thread::sleep(POLL_INTERVAL);
            if is_meant().is_none() {
                continue;
            }
            std::thread::sleep(MAX_WAIT);
            if let Some(number) = is_meant() {
                // The alternate screen stays: leaving it would be a write that blocks.
                let _ = disable_raw_mode();
                std::process::exit(128 + number as i32);
            }
        }
    };
    std::thread::Builder::new().name("weir-end".into()).spawn(watch).map(drop)
}
