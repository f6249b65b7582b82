//! Tracees whose call for weir has not returned yet. They run with the registers of that call; only their tracer can restore the
//! program's.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::PtraceStop;
use super::own_calls::OwnCalls;

/// Gets the result of a late call.
type OnResult = Box<dyn FnOnce(Option<i64>)>;

thread_local! {
    static LATE: RefCell<Vec<(OwnCalls, OnResult)>> = const { RefCell::new(Vec::new()) };
}
/// The number of late calls of all tracer threads. It is usually 0, and [`filter`] then returns at once.
static COUNT: AtomicUsize = AtomicUsize::new(0);

pub(super) fn add(calls: OwnCalls, on_result: OnResult) {
    COUNT.fetch_add(1, Relaxed);
    LATE.with_borrow_mut(|late| late.push((calls, on_result)));
}

/// Returns the stop that the tracer sees instead of this one; None if it sees none yet.
pub(super) fn filter(stop: PtraceStop) -> Option<PtraceStop> {
    if COUNT.load(Relaxed) == 0 {
        return Some(stop);
    }
    let at = LATE.with_borrow(|late| late.iter().position(|(calls, _)| calls.tid() == stop.tid));
    let Some(at) = at else { return Some(stop) };
    // No borrow is held: the tracer waits for stops of the thread meanwhile.
    let (mut calls, on_result) = LATE.with_borrow_mut(|late| late.swap_remove(at));
    let Some((result, seen)) = calls.on_late_stop(stop) else {
        LATE.with_borrow_mut(|late| late.push((calls, on_result)));
        return None;
    };
    COUNT.fetch_sub(1, Relaxed);
    on_result(result);
    seen
}

/// Returns whether the calling thread has a tracee with a late call. The tracer must not end before that call returns.
pub fn exist() -> bool {
    COUNT.load(Relaxed) > 0 && LATE.with_borrow(|late| !late.is_empty())
}
