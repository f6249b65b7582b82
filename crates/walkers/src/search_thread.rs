//! Searches memory on a separate thread, so that a tracer can handle the stops of its tracees during a search.
//!
//! Each thread has one such helper, which makes its searches one after the other: they use at most one processor.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use weir_sys::signals::block_all;

use crate::heap_search;

type Work = Box<dyn FnOnce() + Send>;

thread_local! {
    /// Gives work to the thread that searches for this thread; None before the first search. That thread ends with this one.
    static SEARCHER: RefCell<Option<Sender<Work>>> = const { RefCell::new(None) };
}

/// The result of a search.
#[derive(Debug)]
pub(crate) struct SearchResult<T> {
    pub found: T,
    /// A part of the memory is left out.
    pub is_cut: bool,
    pub begun: Instant,
    pub took: Duration,
}

impl<T> SearchResult<T> {
    /// Makes a search on this thread, and measures it.
    pub fn of(search: impl FnOnce() -> T) -> SearchResult<T> {
        let begun = Instant::now();
        let (found, is_cut) = heap_search::with_cut(search);
        SearchResult { found, is_cut, begun, took: begun.elapsed() }
    }
}

/// A search that the other thread makes. It ends early if this is dropped.
#[derive(Debug)]
struct RunningSearch<T> {
    result: Receiver<SearchResult<T>>,
    is_unwanted: Arc<AtomicBool>,
}

impl<T> Drop for RunningSearch<T> {
    fn drop(&mut self) {
        self.is_unwanted.store(true, Relaxed);
    }
}

/// The search that runs for a walker, if one does. A copy has none: it is for another process.
#[derive(Debug)]
pub(crate) struct SearchBeside<T>(Option<RunningSearch<T>>);

impl<T> Default for SearchBeside<T> {
    fn default() -> Self {
        SearchBeside(None)
    }
}

impl<T> Clone for SearchBeside<T> {
    fn clone(&self) -> Self {
        SearchBeside(None)
    }
}

/// The state of [`SearchBeside`].
pub(crate) enum SearchState<T> {
    None,
    Running,
    Found(SearchResult<T>),
    /// The thread has ended before the search.
    Lost,
}

impl<T: Send + 'static> SearchBeside<T> {
    /// Begins a search on the other thread. Fails with the search itself if that thread cannot be started.
    pub fn begin<S: FnOnce() -> T + Send + 'static>(&mut self, search: S) -> Result<(), S> {
        let Some(searcher) = searcher() else { return Err(search) };
        let (give, result) = mpsc::channel();
        let is_unwanted = Arc::new(AtomicBool::new(false));
        let (bounds, unwanted) = (heap_search::bounds(), Arc::clone(&is_unwanted));
        let work = move || {
            heap_search::begin_for_other(bounds, unwanted);
            // The walker may be gone.
            let _gone = give.send(SearchResult::of(search));
        };
        self.0 = Some(RunningSearch { result, is_unwanted });
        if searcher.send(Box::new(work)).is_err() {
            // The thread has panicked; the next search starts another one.
            SEARCHER.set(None);
        }
        Ok(())
    }

    /// Returns the state of the search. A result is returned once; afterwards the state is [`SearchState::None`].
    pub fn poll(&mut self) -> SearchState<T> {
        let Some(running) = &self.0 else { return SearchState::None };
        let state = match running.result.try_recv() {
            Ok(result) => SearchState::Found(result),
            Err(TryRecvError::Empty) => return SearchState::Running,
            Err(TryRecvError::Disconnected) => SearchState::Lost,
        };
        self.0 = None;
        state
    }

    /// Ends the search without a result.
    pub fn end(&mut self) {
        self.0 = None;
    }
}

/// Returns the thread that searches for this one; None if it cannot be started.
fn searcher() -> Option<Sender<Work>> {
    SEARCHER.with_borrow_mut(|searcher| {
        if searcher.is_none() {
            let (give, take) = mpsc::channel::<Work>();
            let run = move || {
                // A signal must interrupt the wait of the thread that has the tracees, so this thread must not take it.
                block_all();
                take.into_iter().for_each(|work| work());
            };
            std::thread::Builder::new().name("weir-search".into()).spawn(run).ok()?;
            *searcher = Some(give);
        }
        searcher.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait<T: Send + 'static>(search: &mut SearchBeside<T>) -> SearchState<T> {
        loop {
            match search.poll() {
                SearchState::Running => std::thread::yield_now(),
                state => return state,
            }
        }
    }

    #[test]
    fn the_caller_goes_on_while_a_search_runs() {
        let (end, wait_for_end) = mpsc::channel();
        let mut search = SearchBeside::default();
        let own = std::thread::current().id();
        let begun = search.begin(move || {
            wait_for_end.recv().expect("the end");
            heap_search::cut_for_test();
            std::thread::current().id() != own
        });
        assert!(begun.is_ok() && matches!(search.poll(), SearchState::Running));
        assert!(matches!(search.clone().poll(), SearchState::None), "a copy is for another process");
        end.send(()).expect("it waits");
        let SearchState::Found(result) = wait(&mut search) else { panic!("it has ended") };
        assert!(result.found && result.is_cut);
        assert!(matches!(search.poll(), SearchState::None));
        assert!(!heap_search::take_search_cut(), "it was cut on the other thread");
    }

    #[test]
    fn a_search_that_is_not_wanted_any_more_is_told_so() {
        let ((begun, wait_for_begin), (give, take)) = (mpsc::channel(), mpsc::channel());
        let mut search = SearchBeside::default();
        let forever = move || {
            begun.send(()).expect("it waits");
            while !heap_search::is_unwanted() {
                std::thread::yield_now();
            }
            give.send(()).expect("it waits");
            true
        };
        assert!(search.begin(forever).is_ok());
        wait_for_begin.recv().expect("the begin");
        search.end();
        take.recv().expect("the end");
        assert!(search.begin(heap_search::is_unwanted).is_ok());
        assert!(matches!(wait(&mut search), SearchState::Found(SearchResult { found: false, .. })));
    }

    #[test]
    fn a_search_that_panics_does_not_stop_the_next_one() {
        let mut search = SearchBeside::default();
        assert!(search.begin(|| -> u8 { panic!("for the test") }).is_ok());
        assert!(matches!(wait(&mut search), SearchState::Lost));
        let mut again = || {
            assert!(search.begin(|| 7).is_ok());
            matches!(wait(&mut search), SearchState::Found(SearchResult { found: 7, .. }))
        };
        // Those that the thread gets before it is gone are lost with it.
        let mut is_made = || {
            std::thread::yield_now();
            again()
        };
        assert!((0..10_000).any(|_| is_made()));
    }
}
