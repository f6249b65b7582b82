//! Signal handlers that only set flags, so that a verb can clean up before it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

use crate::exit_status::SIGNAL_BASE;

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set. Fails if a handler cannot be installed.
pub fn stop_flag() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::default();
    set_on_signals(&[SIGINT, SIGTERM, SIGHUP], &stop)?;
    Ok(stop)
}

/// As [`stop_flag`], but the second signal ends weir at once, for work that may block.
pub fn stop_flag_then_exit() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let status = i32::from(SIGNAL_BASE) + signal;
        flag::register_conditional_shutdown(signal, status, Arc::clone(&stop)).map_err(error_text)?;
    }
    set_on_signals(&[SIGINT, SIGTERM, SIGHUP], &stop)?;
    Ok(stop)
}

/// Returns a flag that tells a tracer to detach. SIGTERM and SIGHUP set it. Without a command SIGINT and SIGQUIT set it
/// too. With a command weir ignores these two: the terminal also sends them to the command, whose end ends the trace.
pub fn tracer_stop_flag(has_command: bool) -> Result<Arc<AtomicBool>, String> {
    let (stop, ignored) = (Arc::default(), Arc::default());
    if !has_command {
        weir_sys::signals::count_end_requests();
    }
    set_on_signals(&[SIGTERM, SIGHUP], &stop)?;
    set_on_signals(&[SIGINT, SIGQUIT], if has_command { &ignored } else { &stop })?;
    Ok(stop)
}

/// Returns a variable that holds the number of the last SIGHUP, SIGINT, SIGQUIT or SIGTERM; 0 before the first. The
/// handlers only store it: the caller must poll the variable and end weir.
pub fn stop_signal() -> Result<Arc<AtomicUsize>, String> {
    let number = Arc::default();
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        flag::register_usize(signal, Arc::clone(&number), signal as usize).map_err(error_text)?;
    }
    Ok(number)
}

fn set_on_signals(signals: &[i32], flag: &Arc<AtomicBool>) -> Result<(), String> {
    for signal in signals {
        flag::register(*signal, Arc::clone(flag)).map_err(error_text)?;
    }
    Ok(())
}

fn error_text(error: std::io::Error) -> String {
    format!("sigaction: {error}")
}
