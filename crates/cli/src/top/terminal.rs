//! The terminal as the live screen needs it, and as it was before: whatever ends weir, it is put back.

use std::io::{self, Stdout, Write};
use std::sync::Once;

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use weir_report::top::{View, draw};

/// The alternate screen, with single keys; left when dropped.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal.
    pub fn enter() -> io::Result<Screen> {
        leave_in_panic();
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        take()?;
        Ok(Screen { terminal })
    }

    /// Draws what has changed.
    pub fn draw(&mut self, view: &View) -> io::Result<()> {
        self.terminal.draw(|frame| draw(view, frame.area(), frame.buffer_mut()))?;
        Ok(())
    }

    /// Everything is drawn anew next time.
    pub fn clear(&mut self) -> io::Result<()> {
        // Not Terminal::clear(), which asks the terminal where its cursor is and waits for an answer.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Lets others have the terminal for the time of `act`: still the alternate screen, but with whole lines and
    /// the signals of Ctrl-C. What they left there stays until `seen` returns.
    pub fn lend(&mut self, act: impl FnOnce(), seen: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        disable_raw_mode()?;
        execute!(io::stdout(), Clear(ClearType::All), MoveTo(0, 0), Show)?;
        act();
        enable_raw_mode()?;
        seen()?;
        execute!(io::stdout(), Hide)?;
        self.clear()
    }

    /// Gives the terminal back for the time of `act`, as if weir had ended.
    pub fn leave(&mut self, act: impl FnOnce()) -> io::Result<()> {
        put_back();
        act();
        take()?;
        self.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        put_back();
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide)
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
