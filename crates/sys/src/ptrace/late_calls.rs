//! Threads of the calling tracer thread that make a call for it and do not return: they run with other registers, which only
//! their tracer can give back.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::PtraceStop;
use super::own_calls::OwnCalls;

/// Gets the result of a late call.
type Then = Box<dyn FnOnce(Option<i64>)>;

thread_local! {
    static KEPT: RefCell<Vec<(OwnCalls, Then)>> = const { RefCell::new(Vec::new()) };
}
/// The number of kept threads of all tracer threads: usually 0, and a stop needs no further look.
static COUNT: AtomicUsize = AtomicUsize::new(0);

pub(super) fn keep(calls: OwnCalls, then: Then) {
    COUNT.fetch_add(1, Relaxed);
    KEPT.with_borrow_mut(|kept| kept.push((calls, then)));
}

/// Returns the stop that the tracer sees instead of this one; None if it sees none yet.
pub(super) fn filter(stop: PtraceStop) -> Option<PtraceStop> {
    if COUNT.load(Relaxed) == 0 {
        return Some(stop);
    }
    let at = KEPT.with_borrow(|kept| kept.iter().position(|(calls, _)| calls.tid() == stop.tid));
    let Some(at) = at else { return Some(stop) };
    // No borrow is held: the tracer waits for stops of the thread meanwhile.
    let (mut calls, then) = KEPT.with_borrow_mut(|kept| kept.swap_remove(at));
    let Some((result, seen)) = calls.on_late_stop(stop) else {
        KEPT.with_borrow_mut(|kept| kept.push((calls, then)));
        return None;
    };
    COUNT.fetch_sub(1, Relaxed);
    then(result);
    seen
}

/// Returns whether the calling thread traces a thread whose call is late: until it returns, the tracer must not end.
pub fn is_any() -> bool {
    COUNT.load(Relaxed) > 0 && KEPT.with_borrow(|kept| !kept.is_empty())
}
