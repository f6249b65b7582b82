//! The terminal with single keys, on the alternate screen, and as it was before: whatever ends weir, it is put back.

use std::io::{self, Write};
use std::sync::Once;

use ratatui_crossterm::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// Held while it is taken; put back when dropped.
pub struct Taken(());

impl Taken {
    /// Takes it.
    pub fn take() -> io::Result<Taken> {
        leave_in_panic();
        enable_raw_mode()?;
        let taken = Taken(());
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(taken)
    }

    /// Lets others have it for the time of `act`: still the alternate screen, but with whole lines and the signals of
    /// Ctrl-C. What they left there stays until `seen` returns.
    pub fn lend(&mut self, act: impl FnOnce(), seen: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        disable_raw_mode()?;
        execute!(io::stdout(), Clear(ClearType::All), MoveTo(0, 0), Show)?;
        act();
        enable_raw_mode()?;
        seen()?;
        execute!(io::stdout(), Hide)
    }

    /// Gives it back for the time of `act`, as if weir had ended.
    pub fn leave(&mut self, act: impl FnOnce()) -> io::Result<()> {
        put_back();
        act();
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        put_back();
    }
}

/// As far as it goes: the terminal may be gone.
fn put_back() {
    let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
    let _ = io::stdout().flush();
}

/// What a panic says is to be read on the normal screen.
fn leave_in_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |about| {
            put_back();
            before(about);
        }));
    });
}
