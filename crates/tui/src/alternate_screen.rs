//! The terminal in raw mode on its alternate screen, restored on drop and in a panic.

use std::io::{self, Write};
use std::sync::Once;

use ratatui_crossterm::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// A guard: the terminal is in raw mode on the alternate screen while it lives.
pub struct AlternateScreen(());

impl AlternateScreen {
    /// Switches the terminal to raw mode and to the alternate screen.
    pub fn enter() -> io::Result<AlternateScreen> {
        restore_on_panic();
        enable_raw_mode()?;
        let guard = AlternateScreen(());
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(guard)
    }

    /// Calls `act` with the terminal in line mode, so that Ctrl-C sends SIGINT, but still on the alternate screen. The
    /// output of `act` stays visible until `wait` returns.
    pub fn with_line_mode(
        &mut self,
        act: impl FnOnce(),
        wait: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        disable_raw_mode()?;
        execute!(io::stdout(), Clear(ClearType::All), MoveTo(0, 0), Show)?;
        act();
        enable_raw_mode()?;
        wait()?;
        execute!(io::stdout(), Hide)
    }

    /// Calls `act` with the terminal as it was before [`AlternateScreen::enter`].
    pub fn with_normal_screen(&mut self, act: impl FnOnce()) -> io::Result<()> {
        restore();
        act();
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide)
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal. Errors are ignored: the terminal may no longer exist.
fn restore() {
    let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
    let _ = io::stdout().flush();
}

/// Installs a panic hook that restores the terminal first, so that the panic message appears on the normal screen.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            previous_hook(panic);
        }));
    });
}
