//! PHP: files have no output buffer; ob_start buffers what echo writes.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let standard = matches!(object, StreamObject::Stdin | StreamObject::Stdout);
    let (code, note) = match fix {
        CodeFix::BufferOutput if standard => {
            ("ob_start(null, 65536);", " at the start, and echo; no flush() in the loop")
        }
        CodeFix::BufferOutput => (
            "fwrite($f, implode('', $pieces));",
            " once for every 64 KiB, with small pieces collected in an array",
        ),
        CodeFix::BufferInput if object == StreamObject::Stdin => {
            ("$line = fgets(STDIN);", " or fread(STDIN, 65536)")
        }
        CodeFix::BufferInput => ("$line = fgets($f);", " or fread($f, 65536)"),
        CodeFix::Flush if standard => ("ob_flush();", " before the program waits or ends"),
        CodeFix::Flush => ("fflush($f);", " before the program waits or ends"),
        CodeFix::FlushBeforeFork => ("ob_flush();", " before pcntl_fork and exec"),
        CodeFix::CheckErrors => ("if (fwrite($f, $data) === false || !fclose($f)) exit(1);", ""),
        CodeFix::SyncRename => (
            "fflush($f) && fsync($f) && fclose($f) && rename($temporary, $path) || exit(1); \
                exec('sync ' . escapeshellarg($directory));",
            "",
        ),
        CodeFix::WholeLines if object == StreamObject::Stdout => ("echo $line;", " with each line whole"),
        CodeFix::WholeLines => ("fwrite($f, $line);", " with each line whole, after fopen with 'a'"),
        CodeFix::ReadUnbuffered => ("", "let the shell's read -r take the line, because PHP reads blocks"),
    };
    CodeText::new(code, note)
}
