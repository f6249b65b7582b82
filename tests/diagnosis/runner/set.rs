//! Reads the labelled set: `FINDING/NAME/case.toml`, `ordinary.toml` and `packages.toml`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;
use weir_diagnose::{Rule, rules};
use weir_model::{FindingId, Severity};

use super::workspace::Workspace;

/// The kind of file that is a program's standard output.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StdoutKind {
    /// The file `out` in the program's directory.
    #[default]
    File,
    /// A pipe that is read without a pause.
    Pipe,
    /// A pseudo-terminal, read at the pace of a terminal.
    Terminal,
    /// `/dev/null`.
    Null,
}

fn warn() -> Severity {
    Severity::Warn
}

/// A program with a fault, and its fixed twin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelledCase {
    pub finding: FindingId,
    pub about: String,
    pub run: Vec<String>,
    pub fixed: Vec<String>,
    pub stdin: Option<String>,
    /// Compiles the programs that are not in C or have options of their own, once for all workspaces of the case.
    build: Option<String>,
    pub prepare: Option<String>,
    #[serde(default)]
    pub needs: Vec<String>,
    #[serde(default)]
    pub stdout: StdoutKind,
    /// Other findings that are true of the broken program.
    #[serde(default)]
    pub also: Vec<FindingId>,
    /// Findings of severity high that are true of the twin.
    #[serde(default)]
    pub also_fixed: Vec<FindingId>,
    /// The pair differs by its cost, which is measured.
    #[serde(default)]
    pub gain: bool,
    /// The least severity that counts as shown.
    #[serde(default = "warn")]
    pub severity: Severity,
    /// The word by which both the finding's fix and the twin name the change of the code.
    pub code: Option<String>,
    #[serde(default)]
    pub exit: i32,
    #[serde(default)]
    pub fixed_exit: i32,
    #[serde(default)]
    pub root: bool,
    /// The directory of the case's files.
    #[serde(skip)]
    pub dir: PathBuf,
    #[serde(skip)]
    built: OnceLock<Result<Workspace, String>>,
}

impl LabelledCase {
    /// Returns the name of the case: `FINDING/NAME`.
    pub fn name(&self) -> String {
        let name = self.dir.file_name().expect("a case has a name").to_string_lossy();
        format!("{}/{name}", self.finding)
    }

    /// Returns the workspace in which its programs were compiled. The first call compiles them.
    pub fn built(&self) -> Result<&Workspace, String> {
        let built = self.built.get_or_init(|| Workspace::compiled(&self.dir, self.build.as_deref()));
        built.as_ref().map_err(String::clone)
    }

    /// Returns the rule of its finding.
    pub fn rule(&self) -> &'static Rule {
        rules().iter().find(|rule| self.finding == rule.id).expect("checked when the case was read")
    }

    /// Returns the language of the case: the extension of its program, or sh if there is only a command.
    pub fn language(&self) -> String {
        let files = fs::read_dir(&self.dir).expect("the case's directory");
        let mut names =
            files.map(|file| file.expect("an entry").file_name().to_string_lossy().to_lowercase());
        names.find_map(|name| name.strip_prefix("broken.").map(str::to_owned)).unwrap_or("sh".to_owned())
    }
}

/// An ordinary run of an ordinary tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrdinaryRun {
    pub name: String,
    pub prepare: Option<String>,
    pub run: String,
    #[serde(default)]
    pub needs: Vec<String>,
    /// Findings of severity high that are true of it.
    #[serde(default, rename = "true")]
    pub truths: Vec<FindingId>,
    /// Findings that are untrue of it at any severity.
    #[serde(default)]
    pub never: Vec<FindingId>,
    /// The reason why these findings are true.
    pub why: Option<String>,
}

#[derive(Deserialize)]
struct OrdinaryRuns {
    run: Vec<OrdinaryRun>,
}

/// Returns the directory of the labelled set.
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/diagnosis");
    tests.canonicalize().expect("the labelled set")
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails if no rule has this identifier.
fn assert_known(id: &FindingId, path: &Path) {
    assert!(rules().iter().any(|rule| *id == rule.id), "{}: no finding is called {id}", path.display());
}

/// Returns every case, by finding and name. Fails if a case.toml names a finding other than its directory's.
pub fn cases() -> Vec<LabelledCase> {
    let mut all = Vec::new();
    for rule in rules() {
        let Ok(names) = fs::read_dir(root().join(rule.id)) else { continue };
        let mut dirs: Vec<_> = names.map(|name| name.expect("an entry").path()).collect();
        dirs.sort();
        for dir in dirs {
            let mut case: LabelledCase = parse(&dir.join("case.toml"));
            assert_eq!(case.finding, rule.id, "{}", dir.display());
            case.also.iter().chain(&case.also_fixed).for_each(|id| assert_known(id, &dir));
            case.dir = dir;
            all.push(case);
        }
    }
    all
}

/// Returns the ordinary runs in the order of the files.
pub fn ordinary() -> Vec<OrdinaryRun> {
    let read = |name: &&str| {
        let path = root().join(name);
        let runs = parse::<OrdinaryRuns>(&path).run;
        runs.iter()
            .flat_map(|run| run.truths.iter().chain(&run.never))
            .for_each(|id| assert_known(id, &path));
        runs
    };
    ["ordinary.toml", "packages.toml"].iter().flat_map(read).collect()
}
