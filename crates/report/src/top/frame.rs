//! Draws the live screen: two lines on top, the list, the selected process, the keys.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style as CellStyle};
use weir_model::Size;
use weir_model::top::ProcessActivity;

use super::keys::KEYS;
use super::labels::{FOREIGN, path, processes, short_totals, totals, unread, waits};
use super::{Foot, TopView, list};
use crate::number::percent;
use crate::text::{clean, shorten, width, wrap};

/// The lines that show no row of the list: two of the header, the head of the list, two of the selected process, the foot.
const FIXED_LINES: u16 = 6;

/// Draws the whole screen; a terminal that is too small shows the upper part.
pub fn draw(view: &TopView, area: Rect, buffer: &mut Buffer) {
    let chosen = view.selection.select(view.survey);
    header(view, &chosen, area, buffer);
    let rows = usize::from(area.height.saturating_sub(FIXED_LINES)).max(1);
    let at = chosen.iter().position(|one| view.selected == Some(one.pid)).unwrap_or(0);
    let first = at.saturating_sub(rows - 1);
    let middle = Rect { y: area.y + 2, height: (rows as u16 + 1).min(area.height.saturating_sub(2)), ..area };
    if let Some(from) = view.help {
        let below = area.height.saturating_sub(3);
        help(view, from, Rect { height: below, ..middle }, buffer);
    } else if middle.height > 0 {
        list::draw(view, &chosen[first.min(chosen.len())..], middle, buffer);
    }
    if area.height >= FIXED_LINES {
        let selected = chosen.get(at).filter(|one| view.help.is_none() && view.selected == Some(one.pid));
        if let Some(one) = selected {
            detail(view, one, Rect { y: area.bottom() - 3, height: 2, ..area }, buffer);
        }
        foot(view, Rect { y: area.bottom() - 1, height: 1, ..area }, buffer);
    }
}

/// Draws a line, shortened to the width.
fn line(view: &TopView, text: &str, area: Rect, style: CellStyle, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let text = shorten(&clean(text, &view.style), usize::from(area.width), &view.style);
    buffer.set_string(area.x, area.y, text, style);
}

fn header(view: &TopView, chosen: &[&ProcessActivity], area: Rect, buffer: &mut Buffer) {
    let bold = CellStyle::new().add_modifier(Modifier::BOLD);
    let survey = view.survey;
    let with = |end: String| format!("weir top · {} · {end}", processes(chosen.len()));
    let text = if survey.elapsed_s > 0.0 {
        let long = with(totals(chosen));
        if width(&long) <= usize::from(area.width) { long } else { with(short_totals(chosen)) }
    } else {
        with(format!("the first survey takes {} s", view.interval_s))
    };
    line(view, &text, area, bold, buffer);
    let cost = percent(if survey.elapsed_s > 0.0 { survey.cost_s / survey.elapsed_s } else { 0.0 });
    let state = if view.paused { "paused".into() } else { format!("every {} s", view.interval_s) };
    let filter = match view.selection.filter.as_str() {
        "" => String::new(),
        filter => format!(" · only \"{filter}\""),
    };
    let unread = unread(chosen, survey).map_or(String::new(), |sentence| format!(" · {sentence}"));
    let text = format!("{state} · by {}{filter} · weir itself {cost} %{unread}", view.selection.sort.name());
    line(
        view,
        &text,
        Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area },
        CellStyle::new(),
        buffer,
    );
}

/// Draws the command of the selected process and its oldest pending bytes.
fn detail(view: &TopView, one: &ProcessActivity, area: Rect, buffer: &mut Buffer) {
    let user = if one.more_capable {
        format!(" {FOREIGN} of user {} (it has a capability that weir lacks)", one.uid)
    } else if one.foreign {
        format!(" {FOREIGN} of user {}: root with CAP_SYS_PTRACE sees more", one.uid)
    } else {
        String::new()
    };
    line(
        view,
        &format!("{}{user} {}", one.pid, one.command),
        area,
        CellStyle::new().add_modifier(Modifier::BOLD),
        buffer,
    );
    let below = Rect { y: area.y + 1, height: 1, ..area };
    let Some(stream) = one.oldest() else {
        let text = match (&one.waiting, one.foreign) {
            _ if one.unanswered => "it did not answer: a read of its memory or files in /proc blocks",
            _ if one.unread => "its buffers are not read yet: reading those of other processes took too long",
            (Some(_), _) => "no pending bytes in its buffers",
            (None, true) => "its buffers cannot be read",
            (None, false) => "its buffers are not read yet, or it is running",
        };
        return line(view, text, below, CellStyle::new(), buffer);
    };
    let more = one.waiting.as_ref().map_or(0, |all| all.len() - 1);
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    let text = format!(
        "fd {} {}: {} pending for {}{more}: {:?}",
        stream.fd,
        path(&stream.path),
        Size(stream.pending_bytes),
        waits(stream),
        stream.preview
    );
    line(view, &text, below, CellStyle::new(), buffer);
}

fn foot(view: &TopView, area: Rect, buffer: &mut Buffer) {
    let strong = CellStyle::new().add_modifier(Modifier::BOLD);
    match view.foot {
        Foot::Typing(text) => {
            line(view, &format!("filter: {text}_   enter keeps it, escape drops it"), area, strong, buffer)
        }
        Foot::Question(text) => {
            line(view, &format!("{text}   y yes, any other key no"), area, warning(view), buffer)
        }
        Foot::Message(text) => line(view, text, area, strong, buffer),
        Foot::Keys if view.help.is_some() => {
            line(view, "up down: more of the help, any other key closes it", area, strong, buffer);
        }
        Foot::Keys => keys(area, buffer),
    }
}

/// Returns the style of a question.
fn warning(view: &TopView) -> CellStyle {
    let bold = CellStyle::new().add_modifier(Modifier::BOLD);
    if view.style.colour { bold.fg(Color::Yellow) } else { bold }
}

/// Draws as many keys as fit.
fn keys(area: Rect, buffer: &mut Buffer) {
    let mut x = 0;
    for key in KEYS.iter().filter(|key| !key.short.is_empty()) {
        let wide = width(key.key) + 1 + width(key.short);
        if x + wide > usize::from(area.width) {
            break;
        }
        buffer.set_string(area.x + x as u16, area.y, key.key, CellStyle::new().add_modifier(Modifier::BOLD));
        buffer.set_string(area.x + (x + width(key.key) + 1) as u16, area.y, key.short, CellStyle::new());
        x += wide + 2;
    }
}

/// Returns the lines of the help.
fn help_lines(columns: usize) -> Vec<String> {
    let keys = KEYS.iter().flat_map(|key| {
        let head = format!("{:>9}   ", key.key);
        wrap(key.long, columns, &head, &" ".repeat(head.len()))
    });
    let notes = [
        "TINY/s: calls of a mean size below 512 B. A CALL: mean bytes of a call. SYS%: time in the kernel, 100 for one CPU. \
         PENDING: bytes that the program wrote and that are still in its own buffers; 'unread' if they are not read yet. AGE: for \
         how long at the last read; > if they were pending before the first survey."
            .to_string(),
        format!(
            "{FOREIGN} after a PID: weir may not read it. Root with CAP_SYS_PTRACE may, unless the process has a capability \
             that root lacks."
        ),
    ];
    keys.chain([String::new()]).chain(notes.iter().flat_map(|note| wrap(note, columns, "", ""))).collect()
}

/// Draws the help from a line on; the last lines if there are fewer. Says how to see the others.
fn help(view: &TopView, from: usize, area: Rect, buffer: &mut Buffer) {
    let lines = help_lines(usize::from(area.width));
    let rows = usize::from(area.height);
    let last = lines.len().saturating_sub(rows);
    for (at, text) in lines.iter().skip(from.min(last)).take(rows).enumerate() {
        line(view, text, Rect { y: area.y + at as u16, height: 1, ..area }, CellStyle::new(), buffer);
    }
}
