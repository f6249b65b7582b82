//! Watches a copy from a thread of its own: progress bar, SIGUSR1, Ctrl-C. It works while a device blocks the copy.

use std::io::stderr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use weir_copier::{CopyControl, CopyOptions, CopyPhase, CopySummary, estimate_bytes};
use weir_model::duration::format_seconds;
use weir_report::number::in_binary;
use weir_sys::file_system::is_terminal;

use super::events::EventLog;
use super::source_size::{SourceSize, reads_terminal};
use crate::progress::{self, show_in_foreground};
use crate::signals::end_by;

/// The interval of the bar and of the signals.
const INTERVAL: Duration = Duration::from_millis(100);
/// A shorter copy shows no bar.
const BAR_AFTER: Duration = Duration::from_secs(1);
/// The time that a stopped copy has to end by itself. A device may block a thread for ever.
const STOP_LIMIT: Duration = Duration::from_millis(1500);
/// Least bytes of a file for which a bar is useful: a smaller one is copied before a user sees the bar.
const SMALL_BYTES: u64 = 4 << 20;

/// The signals that stop a copy, or request its progress.
pub struct StopSignals {
    number: Arc<AtomicUsize>,
    asked: Arc<AtomicBool>,
}

impl StopSignals {
    /// Installs the handlers. SIGINT, SIGTERM and SIGHUP request a stop, unless they are ignored (nohup).
    pub fn install(control: &CopyControl) -> Result<Self, String> {
        let signals = Self { number: Arc::default(), asked: Arc::default() };
        let failed = |error: std::io::Error| format!("sigaction: {error}");
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if weir_sys::signals::is_ignored(signal) {
                continue;
            }
            flag::register_usize(signal, Arc::clone(&signals.number), signal as usize).map_err(failed)?;
            flag::register(signal, control.stop_flag()).map_err(failed)?;
        }
        flag::register(SIGUSR1, Arc::clone(&signals.asked)).map_err(failed)?;
        Ok(signals)
    }

    /// Ends weir by the signal that stopped it, so that a shell script ends too.
    pub fn end_if_stopped(&self) {
        end_by(self.number.load(Relaxed) as i32);
    }
}

/// The thread that watches a copy; none for a copy that ends at once.
pub struct Monitor {
    ended: Arc<(Mutex<bool>, std::sync::Condvar)>,
    thread: Option<JoinHandle<()>>,
    bar: Option<ProgressBar>,
}

impl Monitor {
    /// Starts the thread, unless the sources are small files.
    pub fn start(
        control: &Arc<CopyControl>,
        signals: &StopSignals,
        events: &Arc<EventLog>,
        sources: &[PathBuf],
        options: &CopyOptions,
        quiet: bool,
    ) -> Self {
        let ended = Arc::new((Mutex::new(false), std::sync::Condvar::new()));
        let is_needed = options.limit.is_some() || events.is_open() || !all_small(sources);
        let shows_bar = is_needed && !quiet && is_terminal(stderr()) && !reads_terminal(sources);
        let size = if shows_bar { SourceSize::of(sources) } else { SourceSize::Unknown };
        let bar = shows_bar.then(|| new_bar(&size));
        let total = if let SourceSize::Bytes(bytes) = size { bytes } else { 0 };
        let watch = Watch {
            control: Arc::clone(control),
            number: Arc::clone(&signals.number),
            asked: Arc::clone(&signals.asked),
            events: Arc::clone(events),
            bar: bar.clone(),
            total: Arc::new(AtomicU64::new(total)),
            started: Instant::now(),
            stop_seen: None,
        };
        if shows_bar && matches!(size, SourceSize::Countable) {
            let (sources, control, total) = (sources.to_vec(), Arc::clone(control), Arc::clone(&watch.total));
            let estimate = move || {
                if let Some(bytes) = estimate_bytes(&sources, &control) {
                    total.store(bytes, Relaxed);
                }
            };
            let _detached = std::thread::Builder::new().name("weir-estimate".into()).spawn(estimate);
        }
        let seen = Arc::clone(&ended);
        let run = move || watch.run(&seen);
        let thread =
            is_needed.then(|| std::thread::Builder::new().name("weir-monitor".into()).spawn(run).ok());
        Self { ended, thread: thread.flatten(), bar }
    }

    /// Returns the bar, which lines of text must not disturb.
    pub fn bar(&self) -> Option<ProgressBar> {
        self.bar.clone()
    }

    /// Ends the thread and removes the bar.
    pub fn finish(self) {
        *self.ended.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
        self.ended.1.notify_all();
        if let Some(thread) = self.thread {
            let _ended = thread.join();
        }
        if let Some(bar) = self.bar {
            progress::remove(&bar);
        }
    }
}

/// Returns whether all sources are small regular files, as in scripts that copy many.
fn all_small(sources: &[PathBuf]) -> bool {
    const FEW: usize = 16;
    sources.len() <= FEW
        && sources.iter().all(|source| {
            std::fs::metadata(source).is_ok_and(|file| file.is_file() && file.len() < SMALL_BYTES)
        })
}

fn new_bar(size: &SourceSize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    let template = match size {
        SourceSize::Unknown => "{spinner} {wide_msg}",
        _ => "{bar:25} {percent:>3} %  {wide_msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// The state of the thread.
struct Watch {
    control: Arc<CopyControl>,
    number: Arc<AtomicUsize>,
    asked: Arc<AtomicBool>,
    events: Arc<EventLog>,
    bar: Option<ProgressBar>,
    /// The bytes of all sources; 0 until they are counted.
    total: Arc<AtomicU64>,
    started: Instant,
    stop_seen: Option<Instant>,
}

impl Watch {
    fn run(mut self, ended: &(Mutex<bool>, std::sync::Condvar)) {
        const EVENT_INTERVALS: u32 = 10;
        let mut intervals = 0_u32;
        let mut is_ended = ended.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while !*is_ended {
            let waited = ended.1.wait_timeout(is_ended, INTERVAL);
            is_ended = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
            intervals += 1;
            if self.asked.swap(false, Relaxed) {
                let text = format!("weir copy: {}", self.status());
                self.print(&text);
            }
            if intervals.is_multiple_of(EVENT_INTERVALS) && self.events.is_open() {
                self.events.progress(&self.control);
            }
            self.draw();
            if !*is_ended {
                self.check_stop();
            }
        }
    }

    fn print(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln_lossy!("{text}")),
            None => eprintln_lossy!("{text}"),
        }
    }

    fn draw(&self) {
        let Some(bar) = &self.bar else { return };
        if self.started.elapsed() < BAR_AFTER || !show_in_foreground(bar) {
            return;
        }
        let (bytes, known, _) = self.control.bytes();
        bar.set_length(self.total.load(Relaxed).max(known).max(bytes).max(1));
        bar.set_position(bytes);
        bar.set_message(self.status());
        bar.tick();
    }

    /// Returns the progress of the copy in one line.
    fn status(&self) -> String {
        let (bytes, known, durable) = self.control.bytes();
        let elapsed = self.started.elapsed().as_secs_f64().max(0.001);
        let rate = bytes.saturating_sub(self.control.kept_bytes()) as f64 / elapsed;
        if self.control.phase() == CopyPhase::Syncing {
            return format!("durable {} of {}, syncing for the rest", in_binary(durable), in_binary(bytes));
        }
        let total = self.total.load(Relaxed).max(known);
        // A stream has no size, and a file of procfs has more bytes than its size says.
        let of_total =
            if total > 0 && total >= bytes { format!(" of {}", in_binary(total)) } else { String::new() };
        let mut text = format!("{}{of_total}, {}/s", in_binary(bytes), in_binary(rate as u64));
        if total > bytes && rate > 0.0 {
            text.push_str(&format!(", {} left", format_seconds(((total - bytes) as f64 / rate).ceil())));
        }
        if self.control.phase() == CopyPhase::Verifying {
            text.push_str(", verifying");
        }
        let current = self.control.current();
        if !current.is_empty() {
            text.push_str(&format!("  {}", weir_copier::quote(&current)));
        }
        text
    }

    /// Ends the process if a stopped copy does not end, because a device or a pipe blocks it.
    fn check_stop(&mut self) {
        if !self.control.is_stopping() {
            return;
        }
        let seen = *self.stop_seen.get_or_insert_with(Instant::now);
        if seen.elapsed() > STOP_LIMIT {
            self.control.remove_unfinished();
            if let Some(bar) = &self.bar {
                progress::remove(bar);
            }
            end_by(self.number.load(Relaxed) as i32);
        }
    }
}

/// Returns whether the summary is printed without being asked for: on a terminal, after a copy that took a while.
pub fn shows_summary(summary: &CopySummary, quiet: bool) -> bool {
    !quiet && summary.elapsed > BAR_AFTER && is_terminal(stderr())
}
