//! Loggers of C++: their FILEs are private, so only their own functions flush them.

use weir_model::Logger;

use super::CodeText;

/// Returns how a program flushes the log that a logger writes; None if that is unknown. `is_sure`: the logger wrote the bytes.
/// Otherwise the program contains the logger, and its own FILE may be meant.
pub fn logger_flush(logger: Logger, is_sure: bool) -> Option<CodeText> {
    Some(match (logger, is_sure) {
        (Logger::Spdlog, true) => CodeText::new(
            "logger->flush_on(spdlog::level::info);",
            " or spdlog::flush_every(std::chrono::seconds(1)) at the start: the FILE is spdlog's",
        ),
        (Logger::Spdlog, false) => CodeText::new(
            "logger->flush_on(spdlog::level::info);",
            " or spdlog::flush_every(std::chrono::seconds(1)) at the start, if spdlog writes the file; else fflush(f) before \
             the program waits or ends",
        ),
        (Logger::Glog, true) => CodeText::new(
            "FLAGS_logbufsecs = 0;",
            " at the start, or google::FlushLogFiles(google::INFO) before the program waits or ends: the FILE is glog's",
        ),
        (Logger::Glog, false) => CodeText::new(
            "FLAGS_logbufsecs = 0;",
            " at the start, or google::FlushLogFiles(google::INFO) before the program waits or ends, if glog writes the file; \
             else fflush(f)",
        ),
        (Logger::Other, _) => return None,
    })
}
