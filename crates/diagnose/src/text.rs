//! Numbers, bytes and names in the sentences of findings.

use weir_model::number::Certainty;
pub(crate) use weir_model::number::thousands;
pub(crate) use weir_model::trace::signal_name;
use weir_model::trace::{CallSite, StreamCounts};

/// Returns a number with its noun: `1 byte`, `2,000 bytes`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", thousands(number))
}

/// Returns the bytes of a buffer that have a known age: `35 bytes`, or `6 of 35 bytes` if the others are younger.
pub(crate) fn oldest_of(oldest: u64, all: u64) -> String {
    match oldest < all {
        true => format!("{} of {}", thousands(oldest), count(all, "byte")),
        false => count(all, "byte"),
    }
}

/// Returns a stream's calls or bytes. They begin with "about" or "at least about" if they are an estimate.
pub(crate) fn total(stream: &StreamCounts, number: u64) -> String {
    stream.certainty().text(number)
}

/// Returns the number of calls of one kind of a stream. It begins with "about" or "at least about" if calls were sampled.
pub(crate) fn part(stream: &StreamCounts, number: u64) -> String {
    part_certainty(stream).text(number)
}

/// Returns how certain the number of calls of one kind of a stream is.
pub(crate) fn part_certainty(stream: &StreamCounts) -> Certainty {
    Certainty::of_flags(!stream.exact, stream.at_least)
}

/// Returns the certainty of a number that is computed from several others.
pub(crate) fn least_certain(all: impl Iterator<Item = Certainty>) -> Certainty {
    all.max().unwrap_or(Certainty::Exact)
}

/// Returns whether a byte can be one of a text: none of the control characters but those of lines, tabs and escapes.
pub(crate) fn is_plain(byte: u8) -> bool {
    byte >= b' ' || matches!(byte, b'\n' | b'\t' | b'\r' | 0x1b)
}

/// Returns the first bytes as text in quotes, with control characters escaped.
pub(crate) fn preview(bytes: &[u8]) -> String {
    const SHOWN: usize = 40;
    let text = weir_model::peek::escaped(&bytes[..bytes.len().min(SHOWN)]);
    let more = if bytes.len() > SHOWN { " …" } else { "" };
    format!("\"{text}\"{more}")
}

/// Returns the innermost function of the program and its caller, or None if only library frames are known.
pub(crate) fn own_functions(call_site: &CallSite) -> Option<String> {
    let mut frames = call_site.own_frames();
    let function = frames.next()?.words();
    let caller = frames.next().map_or(String::new(), |caller| format!(", called from {}", caller.words()));
    Some(function + &caller)
}

/// Returns the sentence that names the call site that wrote into a buffer, or None if only library frames are known.
pub(crate) fn call_site_sentence(call_site: &CallSite) -> Option<String> {
    let functions = own_functions(call_site)?;
    Some(match call_site.last {
        true => format!("The buffer was last written by {functions}."),
        false => format!("Written in {functions}, perhaps elsewhere too."),
    })
}

/// Returns the name of an error that writes and closes report, else its number.
pub(crate) fn errno_name(number: i64) -> String {
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

#[cfg(test)]
mod tests {
    use weir_model::trace::Frame;

    use super::*;

    #[test]
    fn a_call_site_is_named_as_far_as_it_is_known() {
        let frame = |function: &str, library| {
            let (file, line) = (Some("/src/report.c".into()), Some(42));
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
        let call_site = CallSite { at_s: 1.0, last: true, frames };
        let last =
            "The buffer was last written by report() at report.c:42, called from main() at report.c:42.";
        assert_eq!(call_site_sentence(&call_site).as_deref(), Some(last));
        let some = call_site_sentence(&CallSite { last: false, ..call_site.clone() }).expect("a sentence");
        assert!(some.contains("report() at report.c:42") && some.contains("perhaps elsewhere too"));
        assert_eq!(call_site_sentence(&CallSite { frames: vec![frame("printf", true)], ..call_site }), None);
    }

    #[test]
    fn sampled_figures_do_not_look_exact() {
        let stream = |exact, estimated| StreamCounts {
            exact,
            estimated,
            ..StreamCounts::new(1, 0, 1, 0, weir_model::Direction::Out)
        };
        let texts = |stream: &StreamCounts| [total(stream, 123_456), part(stream, 123_456)];
        assert_eq!(texts(&stream(true, false)), ["123,456", "123,456"]);
        assert_eq!(texts(&stream(false, false)), ["123,456", "about 123,000"]);
        assert_eq!(texts(&stream(false, true)), ["about 123,000", "about 123,000"]);
        let beside_unknown = StreamCounts { at_least: true, ..stream(false, true) };
        assert_eq!(texts(&beside_unknown), ["at least about 123,000", "at least about 123,000"]);
    }

    #[test]
    fn sentences_are_readable() {
        assert_eq!((count(1, "byte"), count(2000, "byte")), ("1 byte".into(), "2,000 bytes".into()));
        assert_eq!(preview(b"a\n\"\xff"), "\"a\\n\\\"\\xff\"");
        assert!(preview(&[b'x'; 100]).len() < 60);
        assert_eq!(
            (signal_name(9), signal_name(77), errno_name(28)),
            ("SIGKILL".into(), "signal 77".into(), "ENOSPC".into())
        );
    }
}
