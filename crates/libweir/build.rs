//! Compiles the C library into this crate and passes the path of its header to dependent crates.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let library = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../libweir");
    let mut files = Vec::new();
    sources(&library.join("src"), &mut files);
    files.sort();
    files.push(PathBuf::from("src/layout.c"));
    cc::Build::new()
        .std("c11")
        .define("_GNU_SOURCE", None)
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Werror")
        .flag("-fvisibility=hidden")
        .opt_level(2) // also in debug builds: streams are used where speed matters
        .include(library.join("include"))
        .files(files)
        .compile("weir");
    println!("cargo:include={}", library.join("include").display());
    println!("cargo:rerun-if-changed={}", library.join("src").display());
    println!("cargo:rerun-if-changed={}", library.join("include").display());
    println!("cargo:rerun-if-changed=src/layout.c");
}

/// Collects the C files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the library").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "c") {
            found.push(path);
        }
    }
}
