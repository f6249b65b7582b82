//! Numbers and bytes in sentences.

use weir_model::number::about;
pub(crate) use weir_model::number::thousands;
use weir_model::trace::{CallSite, StreamCounts};

/// `1 byte`, `2,000 bytes`.
pub(crate) fn count(number: u64, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {word}{plural}", thousands(number))
}

/// Calls or bytes of a flow, said to be about so many where nobody counted them.
pub(crate) fn total(flow: &StreamCounts, number: u64) -> String {
    said(!flow.estimated, number)
}

/// Some of the calls of a flow, which are known by samples where the flow is.
pub(crate) fn part(flow: &StreamCounts, number: u64) -> String {
    said(flow.exact, number)
}

/// A number, said to be about so much where it is not exact.
pub(crate) fn said(exact: bool, number: u64) -> String {
    if exact { thousands(number) } else { about(number) }
}

/// The first bytes as text in quotes, control characters escaped.
pub(crate) fn preview(bytes: &[u8]) -> String {
    const SHOWN: usize = 40;
    let text: String = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).escape_debug().collect();
    let more = if bytes.len() > SHOWN { " …" } else { "" };
    format!("\"{text}\"{more}")
}

/// The sentence that says which place in the program wrote into the buffer; None: nothing but a library is known.
pub(crate) fn written_by(place: &CallSite) -> Option<String> {
    let mut frames = place.own_frames();
    let writer = frames.next()?.words();
    let called = frames.next().map_or(String::new(), |caller| format!(", called from {}", caller.words()));
    Some(match place.last {
        true => format!("The buffer was last written by {writer}{called}."),
        false => format!("One place that wrote it is {writer}{called}; not every write was seen."),
    })
}

/// The usual signals by name.
pub(crate) fn signal(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    name.into()
}

/// The usual errors by name.
pub(crate) fn errno(number: i64) -> String {
    let name = match number {
        5 => "EIO",
        9 => "EBADF",
        22 => "EINVAL",
        27 => "EFBIG",
        28 => "ENOSPC",
        32 => "EPIPE",
        104 => "ECONNRESET",
        122 => "EDQUOT",
        _ => return format!("error {number}"),
    };
    name.into()
}

/// An argument as a shell needs it.
pub(crate) fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%^".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.into();
    }
    if argument.contains(char::is_control) {
        // A line break in a command would end the line that it is shown on.
        let escaped: String = argument.chars().map(escaped).collect();
        return format!("$'{escaped}'");
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}

/// A character between `$'` and `'`.
fn escaped(c: char) -> String {
    match c {
        '\\' | '\'' => format!("\\{c}"),
        '\n' => "\\n".into(),
        '\t' => "\\t".into(),
        '\r' => "\\r".into(),
        c if c.is_ascii_control() => format!("\\{:03o}", u32::from(c)),
        c => c.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_that_wrote_is_said_as_far_as_it_is_known() {
        use weir_model::trace::Frame;
        let frame = |function: &str, library| {
            let (file, line) = (Some("/src/report.c".to_string()), Some(42));
            Frame {
                function: Some(function.into()),
                file,
                line,
                module: "/bin/prog".into(),
                offset: 1,
                library,
            }
        };
        let frames = vec![frame("printf", true), frame("report", false), frame("main", false)];
        let place = CallSite { at_s: 1.0, last: true, frames };
        let last =
            "The buffer was last written by report() at report.c:42, called from main() at report.c:42.";
        assert_eq!(written_by(&place).as_deref(), Some(last));
        let some = written_by(&CallSite { last: false, ..place.clone() }).expect("a sentence");
        assert!(some.contains("report() at report.c:42") && some.contains("not every write was seen"));
        assert_eq!(written_by(&CallSite { frames: vec![frame("printf", true)], ..place }), None);
    }

    #[test]
    fn what_is_from_samples_does_not_look_exact() {
        let flow = |exact, estimated| StreamCounts {
            exact,
            estimated,
            ..StreamCounts::new(1, 0, 1, 0, weir_model::Direction::Out)
        };
        let said = |flow: &StreamCounts| [total(flow, 123_456), part(flow, 123_456)];
        assert_eq!(said(&flow(true, false)), ["123,456", "123,456"]);
        assert_eq!(said(&flow(false, false)), ["123,456", "about 123,000"]);
        assert_eq!(said(&flow(false, true)), ["about 123,000", "about 123,000"]);
    }

    #[test]
    fn sentences_are_readable() {
        assert_eq!((count(1, "byte"), count(2000, "byte")), ("1 byte".into(), "2,000 bytes".into()));
        assert_eq!(preview(b"a\n\"\xff"), "\"a\\n\\\"\u{fffd}\"");
        assert!(preview(&[b'x'; 100]).len() < 60);
        assert_eq!(
            (quoted("a.b"), quoted("it's"), quoted("")),
            ("a.b".into(), "'it'\\''s'".into(), "''".into())
        );
        assert_eq!(quoted("{ print\n\t\"it's\" }"), "$'{ print\\n\\t\"it\\'s\" }'");
        assert_eq!(
            (signal(9), signal(77), errno(28)),
            ("SIGKILL".into(), "signal 77".into(), "ENOSPC".into())
        );
    }
}
