//! Signal handlers that only set flags, so that a verb can clean up before it ends. A signal that is ignored when weir starts, as
//! nohup(1) and shells arrange it for background jobs, stays ignored: it gets no handler.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use rustix::process::{Resource, Rlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

use crate::exit_status::{INTERRUPTED, SIGNAL_BASE};

/// The last signal that set the flag of [`stop_flag`] or [`stop_flag_then_exit`]; 0 before the first.
static LAST_STOP: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
/// The signal of the keyboard that ended the command; 0 for none.
static COMMAND_ENDED_BY: AtomicI32 = AtomicI32::new(0);

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set. Fails if a handler cannot be installed.
pub fn stop_flag() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::default();
    note_last_stop()?;
    set_on_signals(&[SIGINT, SIGTERM, SIGHUP], &stop)?;
    Ok(stop)
}

/// As [`stop_flag`], but the second signal ends weir at once, for work that may block.
pub fn stop_flag_then_exit() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::default();
    for signal in not_ignored(&[SIGINT, SIGTERM, SIGHUP]) {
        let status = i32::from(SIGNAL_BASE) + signal;
        flag::register_conditional_shutdown(signal, status, Arc::clone(&stop)).map_err(error_text)?;
    }
    note_last_stop()?;
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
    store_on_signals(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM], &number)?;
    Ok(number)
}

/// Notes the signal of the keyboard that ended the command, so that weir ends by it too.
pub fn note_end_of_command(signal: i32) {
    if [SIGINT, SIGQUIT].contains(&signal) {
        COMMAND_ENDED_BY.store(signal, Relaxed);
    }
}

/// Ends weir after all work is done: by the signal of the keyboard that ended its command or stopped its work, else with the status. A
/// shell goes on with its script or loop after a program that exits, whatever the status, but not after one that SIGINT ended.
pub fn end(status: ExitCode) -> ExitCode {
    let is_stopped = status == ExitCode::from(INTERRUPTED)
        && LAST_STOP.get().is_some_and(|last| last.load(Relaxed) == SIGINT as usize);
    end_by(if is_stopped { SIGINT } else { COMMAND_ENDED_BY.load(Relaxed) });
    status
}

/// Ends weir by a signal, without a core file; 0 for none.
pub fn end_by(signal: i32) {
    if signal != 0 {
        let no_core = Rlimit { current: Some(0), maximum: Some(0) };
        let _as_it_is = setrlimit(Resource::Core, no_core);
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

fn note_last_stop() -> Result<(), String> {
    store_on_signals(&[SIGINT, SIGTERM, SIGHUP], LAST_STOP.get_or_init(Arc::default))
}

fn store_on_signals(signals: &[i32], number: &Arc<AtomicUsize>) -> Result<(), String> {
    for signal in not_ignored(signals) {
        flag::register_usize(signal, Arc::clone(number), signal as usize).map_err(error_text)?;
    }
    Ok(())
}

fn set_on_signals(signals: &[i32], flag: &Arc<AtomicBool>) -> Result<(), String> {
    for signal in not_ignored(signals) {
        flag::register(signal, Arc::clone(flag)).map_err(error_text)?;
    }
    Ok(())
}

/// Returns those of the signals that this process does not ignore.
fn not_ignored(signals: &[i32]) -> impl Iterator<Item = i32> {
    signals.iter().copied().filter(|signal| !weir_sys::signals::is_ignored(*signal))
}

fn error_text(error: std::io::Error) -> String {
    format!("sigaction: {error}")
}
