//! The questions: from a sensor to a firehose, each limit at least twice.

/// A question of the benchmark.
pub struct Question {
    pub name: &'static str,
    pub record_bytes: u64,
    pub rate: f64,
    pub loss: &'static str,
    pub latency: &'static str,
    pub sharers: u32,
    pub medium: &'static str,
}

const fn question(
    name: &'static str,
    record_bytes: u64,
    rate: f64,
    loss: &'static str,
    latency: &'static str,
) -> Question {
    Question { name, record_bytes, rate, loss, latency, sharers: 1, medium: "ssd" }
}

pub const QUESTIONS: [Question; 24] = [
    question("bulk lines", 100, 1e6, "buffer", "60s"),
    question("a sensor", 26, 0.2, "second", "1s"),
    question("transactions", 200, 50.0, "none", "1s"),
    question("tiny records", 16, 3e6, "buffer", "10s"),
    question("medium records", 512, 2e5, "buffer", "1s"),
    question("page records", 4096, 2e4, "buffer", "1s"),
    question("large records", 65_536, 1000.0, "buffer", "1s"),
    question("bulk within 100 ms", 100, 5e5, "buffer", "100ms"),
    question("bulk within 5 ms", 80, 2e5, "buffer", "5ms"),
    question("bulk within 1 ms", 80, 2e5, "buffer", "1ms"),
    question("a busy log", 120, 20_000.0, "buffer", "1s"),
    question("a busy log, prompt", 120, 20_000.0, "buffer", "2ms"),
    question("a busy log, a second", 120, 20_000.0, "second", "1s"),
    question("a fast log, a second", 100, 5e5, "second", "1s"),
    question("a fast log, a second, prompt", 100, 2e5, "second", "10ms"),
    question("large records, a second", 8192, 5000.0, "second", "500ms"),
    question("many transactions", 100, 500.0, "none", "1s"),
    question("large transactions", 16_384, 100.0, "none", "1s"),
    question("a prompt message", 20, 1.0, "buffer", "5ms"),
    question("a service log", 150, 300.0, "second", "1s"),
    Question { sharers: 4, ..question("four writers", 100, 2e5, "buffer", "1s") },
    Question { sharers: 4, ..question("four writers, a second", 100, 1e5, "second", "200ms") },
    Question { sharers: 8, ..question("eight committers", 200, 2000.0, "none", "1s") },
    Question { medium: "sd", ..question("a card", 60, 2000.0, "second", "1s") },
];
