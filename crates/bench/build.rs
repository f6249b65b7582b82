//! Compiles the methods (measured loops in C) and generates their table from the file names, so that a new method is one
//! new file in methods/.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let methods = sources("methods");
    let table = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("methods_table.c");
    fs::write(&table, method_table(&methods)).expect("OUT_DIR is writable");

    cc::Build::new()
        .std("c11")
        .define("_GNU_SOURCE", None)
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Werror")
        // The measured loops have the same optimisation in every cargo profile.
        .opt_level(2)
        .include("frame")
        .include(env::var_os("DEP_WEIR_INCLUDE").expect("set by the build of crates/libweir"))
        .files(sources("frame"))
        .files(methods)
        .file(table)
        .compile("weir_bench_loops");
    // Linked statically, the binary runs where no liburing is installed.
    println!("cargo:rustc-link-lib=static=uring");
    println!("cargo:rustc-link-search=native={}", uring_folder().display());
    println!("cargo:rerun-if-env-changed=LIBURING_DIR");
    println!("cargo:rerun-if-changed=frame");
    println!("cargo:rerun-if-changed=methods");
}

/// Returns the folder of liburing.a: $LIBURING_DIR, or the one that the C compiler finds.
fn uring_folder() -> PathBuf {
    if let Some(folder) = env::var_os("LIBURING_DIR").filter(|folder| !folder.is_empty()) {
        return folder.into();
    }
    let found = cc::Build::new().get_compiler().to_command().arg("-print-file-name=liburing.a").output();
    let file =
        found.map(|found| String::from_utf8_lossy(&found.stdout).trim().to_owned()).unwrap_or_default();
    // A compiler that finds nothing prints the name alone.
    match Path::new(&file).parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => "/usr/lib".into(),
    }
}

/// Returns the C files of a folder, sorted.
fn sources(folder: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder of this crate")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    found.sort();
    found
}

/// Returns the C source of the table `wb_methods`.
fn method_table(methods: &[PathBuf]) -> String {
    let names: Vec<_> = methods
        .iter()
        .map(|path| format!("wb_method_{}", path.file_stem().expect("a file").to_string_lossy()))
        .collect();
    let declared: String =
        names.iter().map(|name| format!("extern const struct wb_method {name};\n")).collect();
    let listed: String = names.iter().map(|name| format!("    &{name},\n")).collect();
    format!(
        "#include \"method.h\"\n{declared}\nextern const struct wb_method *const wb_methods[];\n\
         extern const size_t wb_methods_count;\n\
         const struct wb_method *const wb_methods[] = {{\n{listed}}};\n\
         const size_t wb_methods_count = sizeof wb_methods / sizeof wb_methods[0];\n"
    )
}
