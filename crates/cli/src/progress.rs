//! The progress bar on standard error.

use std::io::stderr;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_bench::run::Progress;
use weir_sys::file_system::is_terminal;

/// Positions of the bar: a tenth of a percent each.
const POSITIONS: u64 = 1000;

/// A progress bar with the estimated time left.
pub struct TerminalProgress(ProgressBar);

impl TerminalProgress {
    /// Returns a bar. It is hidden with `quiet`, and if standard error is not a terminal.
    pub fn new(quiet: bool) -> Self {
        let bar = ProgressBar::new(POSITIONS);
        if quiet || !is_terminal(stderr()) {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {percent:>3} %  {prefix:>5} left  {wide_msg}")
        {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Removes the bar from the terminal.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for TerminalProgress {
    fn advance(&mut self, share: f64, left: Duration, next: &str) {
        self.0.set_prefix(format!("{} s", left.as_secs()));
        self.0.set_message(next.to_string());
        self.0.set_position((share * POSITIONS as f64) as u64);
    }
}
