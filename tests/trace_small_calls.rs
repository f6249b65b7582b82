//! `weir trace` names the function that makes many small calls, with each engine.

#[path = "common/call_sites.rs"]
mod call_sites;
mod common;
#[path = "common/trace.rs"]
mod trace;

use call_sites::{line, own};
use common::{is_root, skip};
use trace::{compile, for_each_engine, path, traced};

/// Reads bytes and writes bytes, each in a call, for three seconds: long enough for the samples on a busy machine.
const SMALL: &str = r#"#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static long __attribute__((noinline)) take(int file, char *byte)
{
    long got = read(file, byte, 1); /* reads */
    return got;
}

static void __attribute__((noinline)) emit(int file, const char *byte)
{
    long put = write(file, byte, 1); /* writes */
    if (put != 1)
        _exit(3);
}

int main(void)
{
    int in = open("bytes", O_RDWR | O_CREAT, 0600), out = open("copy", O_WRONLY | O_CREAT, 0600);
    char byte = 'x';
    if (ftruncate(in, 1L << 30))
        return 2;
    /* Beside other load a traced program makes few calls in 3 s, and they are a small part of the time. */
    long made = 0;
    time_t end = time(NULL) + 3;
    for (; time(NULL) < end || made < 50000 || clock() < CLOCKS_PER_SEC; made++) {
        if (take(in, &byte) != 1)
            return 1;
        emit(out, &byte);
    }
    return 0;
}
"#;

#[test]
fn small_calls_name_the_function_that_makes_them() {
    if !is_root() {
        return skip("small_calls_name_the_function_that_makes_them", "needs root to trace the kernel");
    }
    for_each_engine(|engine, dir| {
        let program = compile(dir, "small", SMALL, &["-g", "-O1"]).expect("cc");
        let (_, document) = traced(dir, &["-q", "--engine", engine], &[path(&program)]);
        let sampled = |id: &str, function: &str, mark: &str| {
            let found =
                trace::finding(&document, id).unwrap_or_else(|| panic!("{engine}: no {id}: {document:#}"));
            let frame = own(found)[0];
            assert_eq!(frame["function"], function, "{engine}: {found:#}");
            let (seen, next) = (frame["line"].as_u64(), line(SMALL, mark));
            assert!(seen == Some(next) || seen == Some(next + 1), "{engine}: {found:#}");
            let why = found["why"].as_str().expect("a sentence");
            assert!(why.contains("sampled call"), "{why}");
            assert!(why.contains(&format!("from {function}() at small.c:")), "{why}");
            assert!(why.contains("called from main() at small.c:"), "{why}");
        };
        sampled("tiny-writes", "emit", "writes");
        sampled("tiny-reads", "take", "reads");
    });
}
