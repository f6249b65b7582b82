//! Signal handlers that only set flags, so that a verb can clean up before it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set.
pub fn stop_flag() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::default();
    set_on_signals(&[SIGINT, SIGTERM, SIGHUP], &stop)?;
    Ok(stop)
}

/// Returns a flag that tells a tracer to detach. SIGTERM and SIGHUP set it. SIGINT and SIGQUIT set it only without
/// a command: with a command the terminal sends them to the command as well, and weir ignores them.
pub fn tracer_stop_flag(has_command: bool) -> Result<Arc<AtomicBool>, String> {
    let (stop, ignored) = (Arc::default(), Arc::default());
    set_on_signals(&[SIGTERM, SIGHUP], &stop)?;
    set_on_signals(&[SIGINT, SIGQUIT], if has_command { &ignored } else { &stop })?;
    Ok(stop)
}

/// Returns a variable that receives the number of the signal that stops weir: SIGHUP, SIGINT, SIGQUIT or SIGTERM.
/// It is 0 until then.
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
