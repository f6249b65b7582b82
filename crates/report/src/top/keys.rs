//! The keys of the live screen, for the last line and for the help.

/// A key and its function, in one word and in a sentence.
pub(super) struct KeyHelp {
    pub key: &'static str,
    pub short: &'static str,
    pub long: &'static str,
}

const fn key(key: &'static str, short: &'static str, long: &'static str) -> KeyHelp {
    KeyHelp { key, short, long }
}

/// All keys. The last line leaves out keys without a short name, and the last ones if they do not fit.
pub(super) const KEYS: [KeyHelp; 11] = [
    key("q", "quit", "quit; also Ctrl-C"),
    key("?", "help", "this help"),
    key("s", "sort", "sort by the next column"),
    key("/", "filter", "show only what has a text in command, path or number"),
    key("p", "peek", "weir peek: show its buffers"),
    key("f", "flush", "weir flush: write its pending bytes now; asks first"),
    key("t", "trace", "weir trace: record five seconds of its calls, with findings"),
    key("space", "pause", "pause; again: continue"),
    key("< >", "", "sort by the previous or next column"),
    key("up down", "", "select a process; also k j, page up, page down, home, end"),
    key("Ctrl-L", "", "redraw the screen"),
];
