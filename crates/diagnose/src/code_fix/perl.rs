//! Perl: its own layers of buffers.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let standard = matches!(object, StreamObject::Stdin | StreamObject::Stdout);
    let (code, note) = match fix {
        CodeFix::BufferOutput => match object {
            StreamObject::Stdin | StreamObject::Stdout => {
                ("STDOUT->autoflush(0);", " (that is $| = 0) and print; no syswrite in the loop")
            }
            StreamObject::Stderr => {
                ("print STDERR join('', @lines);", " once for many lines: STDERR has no buffer")
            }
            StreamObject::File | StreamObject::Pipe => {
                ("$f->autoflush(0);", " and print {$f}; no $f->flush and no syswrite in the loop")
            }
            StreamObject::Socket => (
                "$f->autoflush(0);",
                ", because IO::Socket turns it on, and print {$f}; no syswrite or send in the loop",
            ),
        },
        CodeFix::BufferInput => match object {
            StreamObject::Stdin => {
                ("my $line = <STDIN>;", " or read(STDIN, my $data, 65536); no sysread of a few bytes")
            }
            _ => ("my $line = <$f>;", " or read($f, my $data, 65536); no sysread of a few bytes"),
        },
        CodeFix::Flush if standard => (
            "STDOUT->flush();",
            " before the program waits or ends, or STDOUT->autoflush(1) (that is $| = 1) at the start",
        ),
        CodeFix::Flush => {
            ("$f->flush();", " or close($f) before the program waits or ends, or $f->autoflush(1) after open")
        }
        CodeFix::FlushBeforeFork if standard => {
            ("STDOUT->flush();", " before fork, exec, system and syswrite")
        }
        CodeFix::FlushBeforeFork => ("$f->flush();", " before fork, exec, system and syswrite"),
        CodeFix::CheckErrors if standard => {
            ("close(STDOUT) or die $!;", " at the end; check print and syswrite too")
        }
        CodeFix::CheckErrors => ("print {$f} $data or die $!; close($f) or die $!;", "; check syswrite too"),
        CodeFix::SyncRename => (
            "$f->flush && $f->sync && close($f) && rename($temporary, $path) or die $!; \
                open(my $d, '<', $directory) or die $!; $d->sync; close($d);",
            "",
        ),
        CodeFix::WholeLines if object == StreamObject::Stdout => {
            ("STDOUT->autoflush(1);", " at the start, and each line in one print")
        }
        CodeFix::WholeLines => ("$f->autoflush(1);", " after open with '>>', and each line in one print"),
        CodeFix::ReadUnbuffered => {
            ("sysread(STDIN, my $character, 1);", " for each character up to the end of the line")
        }
    };
    CodeText::new(code, note)
}
