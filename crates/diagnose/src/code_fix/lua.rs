//! Lua: C's stdio under other names. setvbuf has no size: Lua passes no buffer, and C libraries ignore the size without one.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let standard = matches!(object, StreamObject::Stdin | StreamObject::Stdout);
    let (code, note) = match fix {
        CodeFix::BufferOutput if standard => {
            ("io.stdout:setvbuf('full')", " at the start, and io.write; no io.flush() in the loop")
        }
        CodeFix::BufferOutput if object == StreamObject::Stderr => (
            "io.stderr:setvbuf('full')",
            " at the start, and io.stderr:flush() where a message must appear at once",
        ),
        CodeFix::BufferOutput => {
            ("f:setvbuf('full')", " after io.open, and f:write; no f:flush() in the loop")
        }
        CodeFix::BufferInput if object == StreamObject::Stdin => {
            ("io.stdin:setvbuf('full')", " at the start, and io.lines() or io.read(65536)")
        }
        CodeFix::BufferInput => ("f:setvbuf('full')", " after io.open, and f:lines() or f:read(65536)"),
        CodeFix::Flush if standard => (
            "io.stdout:flush()",
            " before the program waits or ends, or io.stdout:setvbuf('line') once at the start",
        ),
        CodeFix::Flush => {
            ("f:flush()", " before the program waits or ends, or f:setvbuf('line') once after io.open")
        }
        CodeFix::FlushBeforeFork if standard => ("io.stdout:flush()", " before os.execute and io.popen"),
        CodeFix::FlushBeforeFork => ("f:flush()", " before os.execute and io.popen"),
        CodeFix::CheckErrors if standard => (
            "assert(io.write(data)); assert(io.stdout:flush())",
            " at the end; io.write in place of print, which flushes by itself and ignores the error",
        ),
        CodeFix::CheckErrors if object == StreamObject::Stderr => ("assert(io.stderr:write(data))", ""),
        CodeFix::CheckErrors => ("assert(f:write(data)); assert(f:close())", ""),
        CodeFix::SyncRename => (
            "assert(f:close()); assert(os.execute(\"sync '\" .. temporary .. \"'\")); assert(os.rename(temporary, path)); \
                assert(os.execute(\"sync '\" .. directory .. \"'\"))",
            ", with names that have no apostrophe; in Lua 5.1 and LuaJIT compare the result of os.execute with 0",
        ),
        CodeFix::WholeLines if object == StreamObject::Stdout => {
            ("io.stdout:setvbuf('line')", " at the start, and no flush within a line")
        }
        CodeFix::WholeLines => ("f:setvbuf('line')", " after io.open(path, 'a'), and no flush within a line"),
        CodeFix::ReadUnbuffered => ("io.stdin:setvbuf('no')", " before the first input"),
    };
    CodeText::new(code, note)
}
