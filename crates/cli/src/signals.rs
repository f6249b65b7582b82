//! Signals as flags, so that what was begun can be ended well.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

/// Set by the signals that ask a program to end.
pub fn stop_flag() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::default();
    set_by(&[SIGINT, SIGTERM, SIGHUP], &stop)?;
    Ok(stop)
}

/// The same for a tracer, Ctrl-\ too: what it watches is to be let go. What is typed is meant for its command, when
/// it has started one, and passed over.
pub fn stop_flag_of_tracer(has_command: bool) -> Result<Arc<AtomicBool>, String> {
    let (stop, passed_over) = (Arc::default(), Arc::default());
    set_by(&[SIGTERM, SIGHUP], &stop)?;
    set_by(&[SIGINT, SIGQUIT], if has_command { &passed_over } else { &stop })?;
    Ok(stop)
}

/// Holds the number of the signal that is to end weir, with Ctrl-\ among them; 0: none has come.
pub fn stop_signal() -> Result<Arc<AtomicUsize>, String> {
    let number = Arc::default();
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        flag::register_usize(signal, Arc::clone(&number), signal as usize)
            .map_err(|error| format!("sigaction: {error}"))?;
    }
    Ok(number)
}

fn set_by(signals: &[i32], set: &Arc<AtomicBool>) -> Result<(), String> {
    for signal in signals {
        flag::register(*signal, Arc::clone(set)).map_err(|error| format!("sigaction: {error}"))?;
    }
    Ok(())
}
