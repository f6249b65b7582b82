//! The progress bar: on standard error, and only on a terminal.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_bench::run::Progress;

const STEPS: u64 = 1000;

/// A bar with the time left.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar, or nothing to see when `quiet` or not on a terminal.
    pub fn new(quiet: bool) -> Self {
        let bar = ProgressBar::new(STEPS);
        if quiet || !stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {percent:>3} %  {prefix:>5} left  {wide_msg}")
        {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Removes the bar from the screen.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn advance(&mut self, share: f64, left: Duration, next: &str) {
        self.0.set_prefix(format!("{} s", left.as_secs()));
        self.0.set_message(next.to_string());
        self.0.set_position((share * STEPS as f64) as u64);
    }
}
