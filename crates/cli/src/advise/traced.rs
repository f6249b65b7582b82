//! `weir advise --for`: what a traced program does.

use std::fs::File;
use std::io::ErrorKind::PermissionDenied;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Access, access};
use weir_advise::{TracedQuestion, traced_question};
use weir_bench::Error;
use weir_model::trace::TraceDocument;

use super::{Args, Halt};

/// A document of weir trace begins so; a program does not.
const JSON_START: u8 = b'{';
/// Largest document: a trace of a large build has 100 MB.
const MAX_BYTES: u64 = 1 << 30;

/// Reads a trace, or traces a program, and returns the question that it answers.
pub fn read(program: &Path, args: &Args) -> Result<TracedQuestion, Halt> {
    let is_document =
        std::fs::metadata(program).is_ok_and(|found| found.is_file()) && begins_with_json(program)?;
    let (text, name) = match is_document {
        true if !args.arguments.is_empty() => {
            return Err(Halt::Usage(format!("{}: a trace takes no arguments", program.display())));
        }
        true => (read_document(program)?, program.display().to_string()),
        false if args.output.documents_on_stdout() > 0 || args.code.is_some() => {
            return Err(Halt::Usage(
                "the program's own output would mix with the result: trace it first with weir trace --json"
                    .into(),
            ));
        }
        false => (trace(program, args)?, format!("the trace of {}", program.display())),
    };
    let document = parse(&text).map_err(|problem| Halt::Failed(format!("{name}: {problem}")))?;
    traced_question(&document).map_err(|problem| Halt::Failed(format!("{name}: {problem}")))
}

/// Returns whether a file is a document. One that can be executed but not read is a program.
fn begins_with_json(path: &Path) -> Result<bool, Halt> {
    let mut first = [0; 64];
    let read = match File::open(path).and_then(|mut file| file.read(&mut first)) {
        Ok(read) => read,
        Err(error) if error.kind() == PermissionDenied && access(path, Access::EXEC_OK).is_ok() => {
            return Ok(false);
        }
        Err(error) => return Err(Error::system("read", path, &error, "give a trace or a program").into()),
    };
    Ok(first[..read].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&JSON_START))
}

fn read_document(path: &Path) -> Result<String, Halt> {
    let failed =
        |error: &std::io::Error| Halt::from(Error::system("read", path, error, "give a trace or a program"));
    let bytes = std::fs::metadata(path).map_err(|error| failed(&error))?.len();
    if bytes > MAX_BYTES {
        return Err(Halt::Failed(format!("{}: {bytes} bytes are too many for a trace", path.display())));
    }
    std::fs::read_to_string(path).map_err(|error| failed(&error))
}

fn parse(text: &str) -> Result<TraceDocument, String> {
    const ADVICE: &str = "give a file that 'weir trace --json' wrote";
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}; {ADVICE}"))?;
    match value["schema"].as_str() {
        Some(weir_model::trace::document::SCHEMA) => {}
        Some(other) => return Err(format!("its schema is {other:?}; {ADVICE}")),
        None => return Err(format!("it has no schema; {ADVICE}")),
    }
    serde_json::from_value(value).map_err(|error| format!("{error}; {ADVICE}"))
}

/// Runs `weir trace` on the program, which keeps its input, output and terminal, and returns the document.
fn trace(program: &Path, args: &Args) -> Result<String, Halt> {
    let file = tempfile::NamedTempFile::new()
        .map_err(|error| Halt::from(Error::system("create", &std::env::temp_dir(), &error, "set TMPDIR")))?;
    let status = Command::new("/proc/self/exe")
        .args(["trace", "--quiet", "--json"])
        .arg(file.path())
        .arg("--")
        .arg(program)
        .args(&args.arguments)
        .stdin(Stdio::inherit())
        .status()
        .map_err(|error| Halt::Failed(format!("weir trace: {error}")))?;
    let text = std::fs::read_to_string(file.path()).unwrap_or_default();
    match text.is_empty() {
        true => Err(Halt::Failed(format!("{}: weir trace ended with {status}", program.display()))),
        false => Ok(text),
    }
}
