//! Root directories of releases of Debian and Ubuntu. mmdebstrap(1) makes them in the target directory, where they stay.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A release, and the packages of its root directory. A word in `more` with a colon is `SUITE:PACKAGE`, from another suite.
pub struct Release {
    pub distribution: Distribution,
    pub suite: &'static str,
    pub packages: &'static [&'static str],
    /// A suite whose packages the release gets too.
    pub more: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    Debian,
    /// Has versions of CPython and Ruby between those of Debian.
    Ubuntu,
}
use Distribution::{Debian, Ubuntu};

impl Release {
    /// Returns the name of the release in the list of skipped things.
    pub fn name(&self) -> String {
        format!("{:?} {}", self.distribution, self.suite)
    }
}

/// The packages of every release.
const COMMON: &[&str] = &[
    "base-files",
    "bash",
    "coreutils",
    "dash",
    "procps",
    "perl-base",
    "libc6-dev",
    "gcc",
    "g++",
    "python3",
    "ruby",
    "musl-dev",
    "musl-tools",
    "pypy3",
    "golang-go",
    "rustc",
    "libc++-dev",
    "libc++abi-dev",
];

/// The key of Ubuntu's archive of 2018, F6ECB3762474EDA9D21B7022871920D1991BC93C, from Debian's package ubuntu-keyring, which
/// Debian 12 does not have.
const UBUNTU_KEY: &str = "tests/runtimes/ubuntu-archive-2018.asc";

pub const RELEASES: &[Release] = &[
    Release {
        distribution: Debian,
        suite: "bullseye",
        packages: &["ocaml-nox", "lua5.3", "tcl8.6"],
        more: None,
    },
    Release {
        distribution: Ubuntu,
        suite: "jammy",
        packages: &["ocaml-nox", "lua5.4", "luajit", "tcl8.6"],
        more: None,
    },
    // The runtimes without a walker, which are large, are in one release only.
    Release {
        distribution: Debian,
        suite: "bookworm",
        packages: &[
            "ocaml-nox",
            "lua5.4",
            "luajit",
            "tcl8.6",
            "php8.2-cli",
            "grep",
            "sed",
            "r-base-core",
            "nodejs",
            "openjdk-17-jdk-headless",
            "ghc",
        ],
        more: None,
    },
    Release {
        distribution: Ubuntu,
        suite: "noble",
        packages: &["ocaml-nox", "lua5.4", "luajit", "tcl8.6"],
        more: None,
    },
    Release {
        distribution: Debian,
        suite: "trixie",
        packages: &["ocaml-nox", "lua5.4", "luajit", "tcl8.6", "tcl9.0"],
        more: None,
    },
    Release {
        distribution: Debian,
        suite: "sid",
        packages: &[
            "ocaml",
            "lua5.4",
            "luajit",
            "tcl8.6",
            "tcl9.0",
            "tcl9.1",
            "python3.13",
            "python3.15",
            "ruby3.4",
        ],
        more: Some("experimental"),
    },
];

/// Returns the root directory of a release, which it makes if it does not exist or has other packages. Fails with the reason.
pub fn root(release: &Release, folder: &Path) -> Result<PathBuf, String> {
    let (root, unfinished) = (folder.join(release.suite), folder.join(format!("{}.new", release.suite)));
    let packages = [COMMON, release.packages].concat().join(",");
    let list = |root: &Path| root.join("packages-of-root");
    if fs::read_to_string(list(&root)).is_ok_and(|made_of| made_of == packages) {
        return Ok(root);
    }
    for old in [&root, &unfinished] {
        let _ = fs::remove_dir_all(old);
    }
    fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let output = mmdebstrap(release, &packages, &unfinished)?.output();
    let output = output.map_err(|why| format!("mmdebstrap: {why}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let why = text.lines().find(|line| line.starts_with("E:")).unwrap_or("mmdebstrap failed").to_owned();
        let _ = fs::remove_dir_all(&unfinished);
        return Err(why);
    }
    for name in ["proc", "dev", "sys", "tmp", "run"] {
        fs::create_dir_all(unfinished.join(name)).map_err(|why| format!("mkdir {name}: {why}"))?;
    }
    fs::write(list(&unfinished), packages).map_err(|why| format!("packages-of-root: {why}"))?;
    fs::rename(&unfinished, &root).map_err(|why| format!("rename: {why}"))?;
    Ok(root)
}

/// Returns the command that makes a root directory with these packages. Fails if the mirror of a release is unknown.
fn mmdebstrap(release: &Release, packages: &str, to: &Path) -> Result<Command, String> {
    let mut command = Command::new("mmdebstrap");
    command.args(["--variant=extract", "--quiet", "--aptopt=Acquire::Check-Valid-Until \"false\""]);
    if release.distribution == Ubuntu {
        let key = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(UBUNTU_KEY);
        command.arg("--components=main,universe").arg("--keyring").arg(key);
    }
    command.args(["--include", packages, release.suite]).arg(to);
    if let Some(more) = release.more {
        let mirror = mirror().ok_or("apt's sources name no mirror")?;
        command.args([release.suite, more].map(|suite| format!("deb {mirror} {suite} main")));
    }
    Ok(command)
}

/// Returns the address from which apt gets the packages of this machine.
fn mirror() -> Option<String> {
    let folder =
        fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|file| file.path());
    let files = folder.chain([PathBuf::from("/etc/apt/sources.list")]);
    let texts = files.filter_map(|file| fs::read_to_string(file).ok());
    texts.into_iter().find_map(|text| {
        let lines = text.lines().filter(|line| line.starts_with("deb ") || line.starts_with("URIs:"));
        let mut words = lines.flat_map(str::split_whitespace);
        words
            .find(|word| word.contains("://") && word.trim_end_matches('/').ends_with("/debian"))
            .map(str::to_owned)
    })
}
