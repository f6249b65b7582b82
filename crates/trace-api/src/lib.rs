//! The interface between tracing backends and the rest of weir: the trait [`TraceBackend`], its options, and its events.

mod backend;
pub mod breakpoint_traps;
pub mod event;
mod last_write;
mod options;

pub use backend::{
    BackendReport, BufferSnapshots, DeferredCleanup, TickHook, TraceBackend, TraceHooks, TraceRoot,
};
pub use event::{
    EventSink, MAX_ARGUMENT_BYTES, RawCall, RawCounts, RawEvent, RawEventKind, RawFile, WorkingDirectory,
};
pub use last_write::{remove_unknown, remove_written};
pub use options::{BackendChoice, TraceOptions, TraceTarget};
