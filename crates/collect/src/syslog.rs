//! Messages of syslog, as programs send them to /dev/log or over UDP: RFC 5424, and the older form that RFC 3164 describes.

use serde::Serialize;

/// A message. Texts are as the sender gave them; only the header is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SyslogMessage<'a> {
    pub(crate) facility: &'static str,
    pub(crate) severity: &'static str,
    /// The time that the sender gave.
    #[serde(rename = "sent", skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) app: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) procid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) msgid: Option<&'a str>,
    /// The structured data of RFC 5424, with its brackets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<&'a str>,
    #[serde(skip)]
    pub(crate) text: &'a [u8],
}

/// The facilities by number (syslog(3), RFC 5424 table 1).
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
    "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
    "local7",
];

/// The severities by number (RFC 5424 table 2).
const SEVERITIES: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

/// Parses a message; none if it does not begin with a priority.
pub(crate) fn parse(message: &[u8]) -> Option<SyslogMessage<'_>> {
    let end = memchr::memchr(b'>', message.get(..5).unwrap_or(message))?;
    let digits = std::str::from_utf8(message.get(1..end)?).ok()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let priority: usize = digits.parse().ok().filter(|_| message[0] == b'<' && is_number)?;
    let rest = &message[end + 1..];
    let header = SyslogMessage {
        facility: FACILITIES.get(priority / 8)?,
        severity: SEVERITIES[priority % 8],
        time: None,
        host: None,
        app: None,
        procid: None,
        msgid: None,
        data: None,
        text: rest,
    };
    let newer = rest.strip_prefix(b"1 ").and_then(|rest| parse_5424(header, rest));
    Some(newer.unwrap_or_else(|| parse_3164(header, rest)))
}

/// Parses "TIME HOST APP PROCID MSGID DATA [TEXT]"; "-" stands for a missing value.
fn parse_5424<'a>(header: SyslogMessage<'a>, rest: &'a [u8]) -> Option<SyslogMessage<'a>> {
    let mut rest = rest;
    let mut word = || {
        let (word, behind) = split_word(rest)?;
        rest = behind;
        Some(if word == "-" { None } else { Some(word) })
    };
    let (time, host, app, procid, msgid) = (word()?, word()?, word()?, word()?, word()?);
    let end = structured_data(rest)?;
    let data = std::str::from_utf8(&rest[..end]).ok()?;
    let text = match &rest[end..] {
        [] => &[][..],
        [b' ', text @ ..] => text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text),
        _ => return None,
    };
    let data = (data != "-").then_some(data);
    Some(SyslogMessage { time, host, app, procid, msgid, data, text, ..header })
}

/// Returns the length of "-" or of "[ID NAME="VALUE"…]…", in whose values \ quotes the next byte.
fn structured_data(bytes: &[u8]) -> Option<usize> {
    if bytes.first() == Some(&b'-') {
        return Some(1);
    }
    let mut at = 0;
    while bytes.get(at) == Some(&b'[') {
        let mut quoted = false;
        loop {
            at += 1;
            match (bytes.get(at)?, quoted) {
                (b'\\', true) => at += 1,
                (b'"', _) => quoted = !quoted,
                (b']', false) => break,
                _ => {}
            }
        }
        at += 1;
    }
    (at > 0).then_some(at)
}

/// Parses "[Mmm dd hh:mm:ss ][HOST ]APP[PID]: TEXT". Programs on this machine send no host; each part may be missing.
fn parse_3164<'a>(header: SyslogMessage<'a>, rest: &'a [u8]) -> SyslogMessage<'a> {
    let (time, rest) = match rest.split_at_checked(16) {
        Some((time, behind)) if is_old_time(time) => (std::str::from_utf8(&time[..15]).ok(), behind),
        _ => (None, rest),
    };
    let tagged = |host, rest: &'a [u8]| {
        let (app, procid, text) = tag(rest)?;
        Some(SyslogMessage { time, host, app: Some(app), procid, text, ..header })
    };
    tagged(None, rest)
        .or_else(|| {
            split_word(rest)
                .and_then(|(host, behind)| tagged(time.and(Some(host)), behind).filter(|_| time.is_some()))
        })
        .unwrap_or(SyslogMessage { time, text: rest, ..header })
}

/// Returns whether the bytes are "Mmm dd hh:mm:ss ".
fn is_old_time(bytes: &[u8]) -> bool {
    let form = b"Aaa 00 00:00:00 ";
    bytes.iter().zip(form).all(|(byte, form)| match form {
        b'A' | b'a' => byte.is_ascii_alphabetic(),
        b'0' => byte.is_ascii_digit() || *byte == b' ',
        _ => byte == form,
    })
}

/// Divides "APP: TEXT" or "APP[PID]: TEXT".
fn tag(bytes: &[u8]) -> Option<(&str, Option<&str>, &[u8])> {
    let end = bytes.iter().position(|&byte| matches!(byte, b'[' | b':' | b' '))?;
    let app = std::str::from_utf8(&bytes[..end]).ok().filter(|app| !app.is_empty())?;
    let (procid, behind) = match bytes[end] {
        b'[' => {
            let length = memchr::memchr(b']', &bytes[end..])?;
            (Some(std::str::from_utf8(&bytes[end + 1..end + length]).ok()?), &bytes[end + length + 1..])
        }
        _ => (None, &bytes[end..]),
    };
    let text = behind.strip_prefix(b":")?;
    Some((app, procid, text.strip_prefix(b" ").unwrap_or(text)))
}

fn split_word(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr::memchr(b' ', bytes).filter(|&end| end > 0)?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

impl SyslogMessage<'_> {
    /// Returns the message as a line: "facility.severity [host ]app[procid]: text". Control bytes become #ooo, as rsyslog
    /// writes them, so that the line stays one.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mut line = format!("{}.{} ", self.facility, self.severity).into_bytes();
        if let Some(host) = self.host {
            line.extend_from_slice(host.as_bytes());
            line.push(b' ');
        }
        if let Some(app) = self.app {
            line.extend_from_slice(app.as_bytes());
            if let Some(procid) = self.procid {
                line.extend_from_slice(format!("[{procid}]").as_bytes());
            }
            line.extend_from_slice(b": ");
        }
        if let Some(data) = self.data {
            line.extend_from_slice(data.as_bytes());
            line.push(b' ');
        }
        line.extend_from_slice(self.text);
        let is_plain = |byte: &u8| *byte >= 0x20 && *byte != 0x7f || *byte == b'\t';
        if line.iter().all(is_plain) {
            return line;
        }
        let escaped =
            |byte: u8| if is_plain(&byte) { vec![byte] } else { format!("#{byte:03o}").into_bytes() };
        line.into_iter().flat_map(escaped).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &str) -> String {
        String::from_utf8(parse(message.as_bytes()).expect("a message").line()).expect("text")
    }

    #[test]
    fn messages_of_both_forms_are_understood() {
        // glibc's syslog(3), RFC 3164 section 5.4, and RFC 5424 section 6.5.
        assert_eq!(line("<30>Nov 25 10:00:00 sshd[71]: hello"), "daemon.info sshd[71]: hello");
        assert_eq!(
            line("<34>Oct 11 22:14:15 mymachine su: 'su root' failed"),
            "auth.crit mymachine su: 'su root' failed"
        );
        assert_eq!(line("<13>no header at all"), "user.notice no header at all");
        assert_eq!(line("<13>app: two\nlines\x1b"), "user.notice app: two#012lines#033");
        let message = "<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut=\"3\" eventSource=\"A \\\"]\\\" B\"] \u{feff}An event";
        let parsed = parse(message.as_bytes()).expect("a message");
        assert_eq!((parsed.facility, parsed.severity), ("local4", "notice"));
        assert_eq!(
            (parsed.time, parsed.host),
            (Some("2003-10-11T22:14:15.003Z"), Some("mymachine.example.com"))
        );
        assert_eq!((parsed.app, parsed.procid, parsed.msgid), (Some("evntslog"), None, Some("ID47")));
        assert_eq!(parsed.data, Some("[exampleSDID@32473 iut=\"3\" eventSource=\"A \\\"]\\\" B\"]"));
        assert_eq!(parsed.text, b"An event");
        assert_eq!(parse(b"<14>1 - - - - - -").expect("a message").text, b"");
    }

    #[test]
    fn other_texts_are_no_messages() {
        for text in ["", "<", "<>x", "<1", "13>x", "<192>x", "<+1>x", "<1234>x", "text <13>"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        // A broken header of RFC 5424 loses no byte of the message.
        assert!(line("<14>1 - - - [").ends_with("1 - - - ["));
    }
}
