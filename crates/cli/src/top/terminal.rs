//! The screen that is drawn into, on a terminal that is taken.

use std::io::{self, Stdout};

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use weir_report::top::{View, draw};

use crate::terminal::Taken;

/// The alternate screen, with single keys; left when dropped.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    taken: Taken,
}

impl Screen {
    /// Takes the terminal.
    pub fn enter() -> io::Result<Screen> {
        Ok(Screen { terminal: Terminal::new(CrosstermBackend::new(io::stdout()))?, taken: Taken::take()? })
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

    /// Lets others have the terminal, see [`Taken::lend`].
    pub fn lend(&mut self, act: impl FnOnce(), seen: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.taken.lend(act, seen)?;
        self.clear()
    }

    /// Gives the terminal back for the time of `act`, as if weir had ended.
    pub fn leave(&mut self, act: impl FnOnce()) -> io::Result<()> {
        self.taken.leave(act)?;
        self.clear()
    }
}
