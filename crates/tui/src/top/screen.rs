//! The terminal that the live screen is drawn on.

use std::io::{self, Stdout};

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use weir_report::top::{TopView, draw};

use crate::alternate_screen::AlternateScreen;

/// The alternate screen with ratatui's copy of its content.
pub struct TopScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    alternate_screen: AlternateScreen,
}

impl TopScreen {
    /// Enters the alternate screen; dropping the value leaves it.
    pub fn enter() -> io::Result<TopScreen> {
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(TopScreen { terminal, alternate_screen: AlternateScreen::enter()? })
    }

    /// Draws the cells that changed.
    pub fn draw(&mut self, view: &TopView) -> io::Result<()> {
        self.terminal.draw(|frame| draw(view, frame.area(), frame.buffer_mut()))?;
        Ok(())
    }

    /// Makes the next [`TopScreen::draw`] draw every cell.
    pub fn clear(&mut self) -> io::Result<()> {
        // Terminal::clear() would ask the terminal for the cursor's position and wait for the answer.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// See [`AlternateScreen::with_line_mode`].
    pub fn with_line_mode(
        &mut self,
        act: impl FnOnce(),
        wait: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        self.alternate_screen.with_line_mode(act, wait)?;
        self.clear()
    }

    /// See [`AlternateScreen::with_normal_screen`].
    pub fn with_normal_screen(&mut self, act: impl FnOnce()) -> io::Result<()> {
        self.alternate_screen.with_normal_screen(act)?;
        self.clear()
    }
}
