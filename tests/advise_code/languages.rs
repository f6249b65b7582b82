//! The languages of the programs of `weir advise`, and how each is built and run.

/// A language: its key, file, build and run. `@LIBWEIR@` is the folder of libweir.
pub struct ProgramLanguage {
    pub key: &'static str,
    pub needs: &'static [&'static str],
    pub file: &'static str,
    pub build: &'static [&'static str],
    pub run: &'static [&'static str],
}

pub const LANGUAGES: [ProgramLanguage; 9] = [
    ProgramLanguage {
        key: "c",
        needs: &["gcc"],
        file: "log.c",
        build: &["gcc", "-Wall", "-Wextra", "-Werror", "-O2", "-pthread", "-o", "log", "log.c"],
        run: &["./log"],
    },
    ProgramLanguage {
        key: "c-libweir",
        needs: &["gcc"],
        file: "log.c",
        build: &[
            "gcc",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O2",
            "-pthread",
            "-I@HEADERS@",
            "-o",
            "log",
            "log.c",
            "@LIBWEIR@",
        ],
        run: &["./log"],
    },
    ProgramLanguage {
        key: "cpp",
        needs: &["g++"],
        file: "log.cpp",
        build: &[
            "g++",
            "-std=c++17",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O1",
            "-pthread",
            "-o",
            "log",
            "log.cpp",
        ],
        run: &["./log"],
    },
    ProgramLanguage {
        key: "python",
        needs: &["python3"],
        file: "log.py",
        build: &["true"],
        run: &["python3", "log.py"],
    },
    ProgramLanguage {
        key: "rust",
        needs: &["rustc"],
        file: "log.rs",
        build: &["rustc", "--edition", "2021", "-Dwarnings", "-o", "log", "log.rs"],
        run: &["./log"],
    },
    ProgramLanguage {
        key: "go",
        needs: &["go"],
        file: "log.go",
        build: &["go", "build", "-o", "log", "log.go"],
        run: &["./log"],
    },
    ProgramLanguage {
        key: "java",
        needs: &["javac", "java"],
        file: "Log.java",
        build: &["javac", "-Xlint:all,-try", "-Werror", "Log.java"],
        run: &["java", "-cp", ".", "Log"],
    },
    ProgramLanguage {
        key: "node",
        needs: &["node"],
        file: "log.js",
        build: &["true"],
        run: &["node", "log.js"],
    },
    ProgramLanguage {
        key: "shell",
        needs: &[],
        file: "log.sh",
        build: &["sh", "-n", "log.sh"],
        run: &["sh", "log.sh"],
    },
];
