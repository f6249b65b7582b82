//! Recognises library code that reads or writes on behalf of a program: the C library's stdio, and the standard
//! libraries of C++, Rust and Go. A report shows the first frame that is not such code.

/// Prefixes of these libraries' file names.
const MODULES: [&str; 10] = [
    "libc.so",
    "libc-2.",
    "ld-linux",
    "ld-musl-",
    "libc.musl-",
    "libpthread",
    "libstdc++",
    "libc++",
    "libgcc_s",
    "libweir",
];

/// Prefixes of these libraries' function names: those of the C library in a static program, and those of the
/// languages' libraries.
const PREFIXES: [&str; 34] = [
    "_IO_",
    "__",
    "_start",
    "std::",
    "core::",
    "alloc::",
    "<std::",
    "<core::",
    "<alloc::",
    "<&std::",
    "<&mut std::",
    "<&core::",
    "<&mut core::",
    "void std::",
    "weir__",
    "weir_put",
    "weir_write",
    "weir_print",
    "bufio.",
    "fmt.",
    "io.",
    "os.",
    "log.",
    "runtime.",
    "runtime/",
    "internal/",
    "strings.",
    "bytes.",
    "encoding/",
    "compress/",
    "text/",
    "reflect.",
    "syscall.",
    "log/",
];

/// Functions of the C library that read, write or format on behalf of a program, and the internal ones that they call, with the
/// names of glibc and musl.
const FUNCTIONS: [&str; 57] = [
    "read",
    "write",
    "getc",
    "fgetc",
    "getchar",
    "fgets",
    "fread",
    "getline",
    "getdelim",
    "printf",
    "fprintf",
    "vprintf",
    "vfprintf",
    "dprintf",
    "vdprintf",
    "puts",
    "fputs",
    "fputs_unlocked",
    "putc",
    "fputc",
    "putchar",
    "putc_unlocked",
    "fputc_unlocked",
    "putchar_unlocked",
    "fwrite",
    "fwrite_unlocked",
    "putw",
    "perror",
    "fputws",
    "fputwc",
    "putwc",
    "putwchar",
    "wprintf",
    "fwprintf",
    "vfwprintf",
    "vwprintf",
    "fflush",
    "fflush_unlocked",
    "fclose",
    "setvbuf",
    "fseek",
    "fseeko",
    "rewind",
    "exit",
    "psignal",
    "psiginfo",
    "error",
    "memcpy",
    "memmove",
    "mempcpy",
    "printf_core",
    "out",
    "pad",
    "locking_putc",
    "buffered_vfprintf",
    "new_do_write",
    "do_puts",
];

/// Returns whether a function, its image or its source file belongs to such a library.
pub(super) fn is_library(module: &str, function: Option<&str>, source: Option<&str>) -> bool {
    let file = module.rsplit('/').next().unwrap_or(module);
    // A program can have functions of its own with these names.
    let may_be_of_c = source.is_none_or(is_c_library_source);
    let named = |name: &str| {
        PREFIXES.iter().any(|start| name.starts_with(start))
            || may_be_of_c && FUNCTIONS.contains(&name)
            || is_of_primitive(name)
    };
    MODULES.iter().any(|start| file.starts_with(start))
        || function.is_some_and(named)
        || source.is_some_and(is_library_source)
}

/// Returns whether a source file is of the standard library of Rust or C++, whose inlined functions have names without a path.
fn is_library_source(path: &str) -> bool {
    path.starts_with("/rustc/") || path.contains("/include/c++/")
}

/// Returns whether a source file can be one of the C library: a header with inline functions, or a file of glibc or musl.
fn is_c_library_source(path: &str) -> bool {
    const FOLDERS: [&str; 6] = ["/glibc", "/musl", "/libio/", "/stdio-common/", "/src/stdio/", "/sysdeps/"];
    path.starts_with("/usr/include/") || FOLDERS.iter().any(|folder| path.contains(folder))
}

/// Returns whether a Rust function is a method of a library's trait for a primitive type: `<u32 as core::fmt::Display>::fmt`.
fn is_of_primitive(name: &str) -> bool {
    let implemented = name.strip_prefix('<').and_then(|name| name.split_once(" as "));
    implemented.is_some_and(|(of, method)| {
        let is_trait = ["core::", "std::", "alloc::"].iter().any(|start| method.starts_with(start));
        is_trait && !of.contains("::")
    })
}

/// Returns whether this function is the language's entry point: its callers are not the program's.
pub(super) fn is_outermost(function: Option<&str>) -> bool {
    const STARTS: [&str; 3] = ["std::rt::lang_start", "__libc_start", "runtime.main"];
    function.is_some_and(|name| STARTS.iter().any(|start| name.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_distinguished_from_programs() {
        let library = [
            ("/lib/x86_64-linux-gnu/libc.so.6", None),
            ("/lib/ld-musl-x86_64.so.1", Some("fwrite")),
            ("/usr/bin/prog", Some("_IO_new_file_xsputn")),
            ("/usr/bin/prog", Some("printf")),
            (
                "/usr/bin/prog",
                Some("<std::io::buffered::bufwriter::BufWriter<W> as std::io::Write>::write_all"),
            ),
            ("/usr/bin/prog", Some("bufio.(*Writer).WriteString")),
            ("/usr/bin/prog", Some("<u32 as core::fmt::Display>::fmt")),
        ];
        assert!(library.iter().all(|(module, function)| is_library(module, *function, None)));
        let own = [
            "report",
            "main",
            "main.report",
            "weir_diagnose::report",
            "printf_report",
            "out_of_memory",
            "<app::Row as core::fmt::Display>::fmt",
        ];
        assert!(!own.iter().any(|name| is_library("/usr/bin/prog", Some(name), None)));
        assert!(
            !is_library("/usr/bin/prog", None, None)
                && !is_library("/usr/lib/libcurl.so.4", Some("log"), None)
        );
    }

    #[test]
    fn inlined_functions_are_distinguished_by_their_source_files() {
        let write_all = |source| is_library("/usr/bin/prog", Some("write_all<std::fs::File>"), Some(source));
        assert!(write_all("/rustc/59807616e1fa/library/std/src/io/mod.rs"));
        assert!(write_all("/usr/include/c++/12/ostream"));
        assert!(!write_all("/home/user/prog/src/io/mod.rs"));
    }

    #[test]
    fn a_program_may_have_functions_with_names_of_the_c_library() {
        let out = |source| is_library("/usr/bin/prog", Some("out"), source);
        assert!(!out(Some("/home/user/prog/report.c")));
        assert!(out(None), "musl's, in a static program");
        assert!(out(Some("/build/musl-1.2.3/src/stdio/vfprintf.c")));
        let read = |source| is_library("/usr/bin/prog", Some("read"), Some(source));
        assert!(
            read("/usr/include/x86_64-linux-gnu/bits/unistd.h"),
            "the inline function of _FORTIFY_SOURCE"
        );
        assert!(!read("/home/user/prog/input.c"));
    }

    #[test]
    fn callers_of_the_entry_point_are_library_code() {
        assert!(
            is_outermost(Some("std::rt::lang_start::{{closure}}"))
                && is_outermost(Some("__libc_start_call_main"))
        );
        assert!(!is_outermost(Some("main")) && !is_outermost(None));
    }
}
