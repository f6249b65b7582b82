//! The progress bar on standard error.

use std::io::stderr;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_bench::run::Progress;
use weir_sys::file_system::{is_foreground, is_terminal};
use weir_tui::style::stderr_style;

/// Positions of the bar: a tenth of a percent each.
const POSITIONS: u64 = 1000;
/// The bar of a terminal that is wide enough, with the cells of all but the next step.
const WIDE: (&str, usize) = ("{bar:30} {percent:>3} %  {prefix:>5} left  {msg}", 51);
/// The line of a narrower terminal.
const NARROW: (&str, usize) = ("{percent:>3} %  {prefix:>5} left  {msg}", 20);
/// Columns from which on the bar is shown: beside it there is room for the next step.
const WIDE_COLUMNS: usize = 72;

/// A progress bar with the estimated time left.
pub struct TerminalProgress {
    bar: ProgressBar,
    /// Standard error is a terminal, and the user did not ask for silence.
    is_wanted: bool,
    /// Columns of the terminal for which the line is made.
    columns: usize,
}

impl TerminalProgress {
    /// Returns a bar. It is hidden with `quiet`, and if standard error is not a terminal.
    pub fn new(quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(POSITIONS), ProgressDrawTarget::hidden());
        let mut progress = Self { bar, is_wanted: !quiet && is_terminal(stderr()), columns: 0 };
        progress.fit(stderr_style().width);
        progress
    }

    /// Makes the line for a terminal of so many columns.
    fn fit(&mut self, columns: usize) {
        if self.columns != columns
            && let Ok(style) = ProgressStyle::with_template(layout(columns).0)
        {
            self.bar.set_style(style);
            self.columns = columns;
        }
    }

    /// Removes the bar from the terminal.
    pub fn finish(&self) {
        remove(&self.bar);
    }
}

impl Progress for TerminalProgress {
    fn advance(&mut self, share: f64, left: Duration, next: &str) {
        self.fit(stderr_style().width);
        if self.is_wanted {
            show_in_foreground(&self.bar);
        }
        self.bar.set_prefix(format!("{} s", left.as_secs()));
        self.bar.set_message(cut(next, self.columns));
        self.bar.set_position((share * POSITIONS as f64) as u64);
    }
}

/// Shows a bar on standard error, a terminal, or hides it while this job is in the background: the bar would be drawn over what other
/// programs print and the user types. Returns whether the bar is shown.
pub fn show_in_foreground(bar: &ProgressBar) -> bool {
    let is_shown = is_foreground(stderr());
    if is_shown == bar.is_hidden() {
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        bar.set_draw_target(target);
    }
    is_shown
}

/// Removes a bar from the terminal, unless this job is in the background.
pub fn remove(bar: &ProgressBar) {
    if !is_foreground(stderr()) {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar.finish_and_clear();
}

fn layout(columns: usize) -> (&'static str, usize) {
    if columns < WIDE_COLUMNS { NARROW } else { WIDE }
}

/// Returns as much of the next step as the line has room for. The last column stays empty: some terminals wrap there.
fn cut(next: &str, columns: usize) -> String {
    next.chars().take(columns.saturating_sub(layout(columns).1 + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in 40..130 {
            let (template, others) = layout(columns);
            let bar = if template.contains("{bar") { 31 } else { 0 };
            assert_eq!(others, bar + "100 %  59 s  left  ".len() + 1, "{template}");
            assert!(others + cut(&"x".repeat(200), columns).len() < columns, "{columns}");
        }
    }
}
