//! The keys of the live screen: what the lowest line and the help say of them.

/// A key and what it does, in a word or two and in a sentence.
pub(super) struct Key {
    pub key: &'static str,
    pub short: &'static str,
    pub long: &'static str,
}

const fn key(key: &'static str, short: &'static str, long: &'static str) -> Key {
    Key { key, short, long }
}

/// Those without a short word stand in the help only; where there is no room, the last ones give way.
pub(super) const KEYS: [Key; 11] = [
    key("q", "quit", "quit; Ctrl-C too"),
    key("?", "help", "this help; any key ends it"),
    key("s", "sort", "sort by the next column"),
    key("/", "filter", "show only what has a text in command, path or number"),
    key("p", "peek", "weir peek: what is in its buffers"),
    key("f", "flush", "weir flush: write that out now, after a question"),
    key("t", "trace", "weir trace: five seconds of its calls, with findings"),
    key("space", "pause", "stop looking; again: go on"),
    key("< >", "", "sort by the column before or behind"),
    key("up down", "", "choose a process; also k j, page up, page down, home, end"),
    key("Ctrl-L", "", "draw the screen anew"),
];
