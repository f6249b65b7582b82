//! The runtimes, their programs, and the abilities that weir must have for them.

use super::abilities::ABILITIES;

/// A runtime of a release, and what weir is to do with it.
pub struct Runtime {
    pub name: &'static str,
    /// Its interpreter or compiler in /usr/bin, or its path. A release without it has no row.
    pub program: &'static str,
    /// A shell command that prints its version, perhaps among other words.
    pub version: &'static str,
    /// The file of tests/runtimes that it runs or compiles.
    pub source: &'static str,
    /// The options of a compiler; None for an interpreter.
    pub compiles: Option<&'static [&'static str]>,
    expected: Expected,
}

/// The abilities that weir must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// In the order of [`ABILITIES`].
    pub abilities: [bool; ABILITIES.len()],
    /// Why some are missing.
    pub why: &'static str,
}

const ALL: Expected = Expected { abilities: [true; 5], why: "" };

const fn none(why: &'static str) -> Expected {
    Expected { abilities: [false; 5], why }
}

const fn without_flush(why: &'static str) -> Expected {
    Expected { abilities: [true, true, true, false, true], why }
}

const UNBUFFERED: Expected = Expected {
    abilities: [true, true, true, true, false],
    why: "it has no buffers, so nothing is lost that could be found",
};
/// Without the tables of functions it is unknown whether a killed goroutine had written its bytes, so nothing is claimed.
const OLD_GO: Expected = Expected {
    abilities: [true, true, false, false, false],
    why: "Go before 1.16 has other tables of functions, without which no goroutine is unwound",
};

const fn interpreter(
    name: &'static str,
    program: &'static str,
    version: &'static str,
    source: &'static str,
) -> Runtime {
    Runtime { name, program, version, source, compiles: None, expected: ALL }
}

const fn compiler(
    name: &'static str,
    program: &'static str,
    version: &'static str,
    source: &'static str,
    options: &'static [&'static str],
) -> Runtime {
    Runtime { name, program, version, source, compiles: Some(options), expected: ALL }
}

const GLIBC: &str = "/lib/$(uname -m)-linux-gnu/libc.so.6";
const MUSL: &str = "/lib/ld-musl-$(uname -m).so.1 2>&1";
/// The folder of libc.so in releases whose /lib is not /usr/lib. Without it libc.a is linked.
const MUSL_DYNAMIC: &[&str] = &["-O2", "-L/lib/x86_64-linux-musl", "-L/lib/aarch64-linux-musl"];
const JAVA: &str = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java";
/// Prints major and minor version. Up to 14 the macro has the form MMmmm, then MMmmpp.
const LIBCXX_VERSION: &str = "v=$(echo _LIBCPP_VERSION | g++ -nostdinc++ -isystem /usr/include/c++/v1 -E -P -x c++ -include version - |
    tail -n 1); [ $v -gt 99999 ] || v=$((v * 10)); echo $((v / 10000)).$((v / 100 % 100))";
const LIBCXX: &[&str] = &[
    "-O2",
    "-nostdinc++",
    "-isystem/usr/include/c++/v1",
    "-nodefaultlibs",
    "-lc++",
    "-lc++abi",
    "-lm",
    "-lc",
    "-lgcc_s",
    "-lgcc",
];
const LIBCXX_STATIC: &[&str] = &[
    "-O2",
    "-static",
    "-nostdinc++",
    "-isystem/usr/include/c++/v1",
    "-nodefaultlibs",
    "-Wl,--start-group",
    "-lc++",
    "-lc++abi",
    "-lpthread",
    "-lm",
    "-lc",
    "-lgcc",
    "-lgcc_eh",
    "-Wl,--end-group",
];
pub const TCL: &str = "echo 'puts [info patchlevel]' | ";

pub const RUNTIMES: &[Runtime] = &[
    compiler("glibc", "gcc", GLIBC, "program.c", &["-O2"]),
    compiler("glibc, static", "gcc", GLIBC, "program.c", &["-O2", "-static"]),
    compiler("musl", "musl-gcc", MUSL, "program.c", MUSL_DYNAMIC),
    compiler("musl, static", "musl-gcc", MUSL, "program.c", &["-O2", "-static"]),
    compiler("libstdc++", "g++", "g++ -dumpfullversion", "program.cc", &["-O2"]),
    compiler("libstdc++, static", "g++", "g++ -dumpfullversion", "program.cc", &["-O2", "-static"]),
    compiler("libc++", "g++", LIBCXX_VERSION, "program.cc", LIBCXX),
    compiler("libc++, static", "g++", LIBCXX_VERSION, "program.cc", LIBCXX_STATIC),
    interpreter("CPython", "python3", "python3 --version", "program.py"),
    interpreter("CPython", "python3.13", "python3.13 --version", "program.py"),
    interpreter("CPython", "python3.15", "python3.15 --version", "program.py"),
    interpreter(
        "CPython, free-threaded",
        "/opt/free-threaded-python/bin/python3.13t",
        "/opt/free-threaded-python/bin/python3.13t --version",
        "program.py",
    ),
    interpreter(
        "CPython, free-threaded",
        "/opt/free-threaded-python/bin/python3.14t",
        "/opt/free-threaded-python/bin/python3.14t --version",
        "program.py",
    ),
    Runtime {
        expected: none("no walker reads its io objects; standard output by PYTHONUNBUFFERED"),
        ..interpreter("PyPy", "pypy3", "pypy3 --version | tail -n 1", "program.py")
    },
    interpreter("Ruby", "ruby", "ruby --version", "program.rb"),
    interpreter("Ruby", "ruby3.4", "ruby3.4 --version", "program.rb"),
    interpreter("Perl", "perl", "perl -e 'printf \"%vd\", $^V'", "program.pl"),
    interpreter("Lua", "lua5.3", "lua5.3 -v", "program.lua"),
    interpreter("Lua", "lua5.4", "lua5.4 -v", "program.lua"),
    interpreter("LuaJIT", "luajit", "luajit -v | cut -d. -f1,2", "program.lua"),
    compiler("Go", "go", "go version | cut -d' ' -f3 | tr o ' '", "program.go", &[]),
    compiler(
        "Go, stripped",
        "go",
        "go version | cut -d' ' -f3 | tr o ' '",
        "program.go",
        &["-ldflags=-s -w"],
    ),
    Runtime {
        expected: without_flush("a BufWriter's number of bytes can be in a register"),
        ..compiler("Rust, -g", "rustc", "rustc --version", "program.rs", &["-g", "-O"])
    },
    Runtime {
        expected: none("no debug information, which describes the types"),
        ..compiler("Rust, without -g", "rustc", "rustc --version", "program.rs", &["-O"])
    },
    compiler("OCaml", "ocamlopt", "ocamlopt -version", "program.ml", &["-I", "+unix", "unix.cmxa"]),
    compiler("OCaml, bytecode", "ocamlc", "ocamlc -version", "program.ml", &["-I", "+unix", "unix.cma"]),
    interpreter("R", "Rscript", "grep ^Version: /usr/lib/R/library/base/DESCRIPTION", "program.R"),
    Runtime { expected: UNBUFFERED, ..interpreter("PHP", "php8.2", "php8.2 -v", "program.php") },
    Runtime {
        expected: none("no walker reads the queue of an fs.WriteStream"),
        ..interpreter("Node", "node", "node -e 'console.log(process.versions.node)'", "program.js")
    },
    Runtime {
        expected: none(
            "no walker reads a BufferedWriter: new PrintWriter(out, true), or immediateFlush of a logger",
        ),
        ..interpreter(
            "Java",
            JAVA,
            "cat /usr/lib/jvm/java-17-openjdk-amd64/release | tr '\"' ' '",
            "program.java",
        )
    },
    Runtime {
        expected: none("no walker reads its handles: hSetBuffering stdout LineBuffering"),
        ..compiler("Haskell", "ghc", "ghc --numeric-version", "program.hs", &[])
    },
    interpreter("Tcl", "tclsh8.6", TCL, "program.tcl"),
    interpreter("Tcl", "tclsh9.0", TCL, "program.tcl"),
    interpreter("Tcl", "tclsh9.1", TCL, "program.tcl"),
];

/// Versions that no release has, with the reason why they have no row.
pub const NOT_TRIED: &[(&str, &str)] = &[
    ("CPython 3.15, free-threaded", "weir does not read its buffers, and says so"),
    (
        "libc++ with musl",
        "no package of Debian or Ubuntu; weir does not read its file buffers there, and says so",
    ),
];

impl Runtime {
    /// Returns what weir must do with a version of the runtime.
    pub fn expected(&self, version: &str) -> Expected {
        match version.rsplit_once('.') {
            Some(("1.15", _)) if self.program == "go" => OLD_GO,
            _ => self.expected,
        }
    }
}
