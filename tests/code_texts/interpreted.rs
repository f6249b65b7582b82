//! Programs of interpreted languages around the code of fixes, one for each case. `@@` is the code.

use weir_diagnose::CodeFix::{
    BufferInput, BufferOutput, CheckErrors, Flush, FlushBeforeFork, ReadUnbuffered, SyncRename, WholeLines,
};
use weir_diagnose::StreamObject::{File, Pipe, Socket, Stderr, Stdin, Stdout};
use weir_model::SourceLanguage;

use super::TestLanguage;

pub const PYTHON: TestLanguage = TestLanguage {
    language: SourceLanguage::Python,
    needs: &["python3"],
    file: "prog.py",
    prelude: "import os, signal, socket, subprocess, sys\n\
        path, temporary, directory, data = 'out', 'tmp', '.', 'x'\n\
        def die(): os.kill(os.getpid(), signal.SIGKILL)\n",
    run: &["python3", "prog.py"],
    bodies: &[
        (BufferOutput, Stdout, "@@\nfor i in range(3000): print('%08d' % i)"),
        (BufferOutput, Stderr, "@@\nfor i in range(3000): print('%08d' % i, file=sys.stderr)"),
        (BufferOutput, File, "@@\nfor i in range(3000): f.write(b'%08d\\n' % i)"),
        (
            BufferOutput,
            Pipe,
            "fd = os.open(path, os.O_WRONLY | os.O_CREAT)\n@@\nfor i in range(3000): f.write(b'%08d\\n' % i)",
        ),
        (
            BufferOutput,
            Socket,
            "sock, peer = socket.socketpair()\n@@\nfor i in range(3000): f.write(b'%08d\\n' % i)\nf.close(); sock.close()\nblock = peer.makefile('rb').read()\nopen(path, 'wb').write(block)",
        ),
        (BufferInput, Stdin, "@@\nn = 0\nwhile f.read(1): n += 1\nprint(n, end='')"),
        (BufferInput, File, "path = 'in'\n@@\nn = 0\nwhile f.read(1): n += 1\nprint(n, end='')"),
        (
            BufferInput,
            Pipe,
            "fd = os.open('in', os.O_RDONLY)\n@@\nn = 0\nwhile f.read(1): n += 1\nprint(n, end='')",
        ),
        (
            BufferInput,
            Socket,
            "peer, sock = socket.socketpair()\npeer.sendall(open('in', 'rb').read()); peer.close()\n@@\nn = 0\nwhile f.read(1): n += 1\nprint(n, end='')",
        ),
        (Flush, Stdout, "print('kept', end='')\n@@\ndie()"),
        (Flush, File, "f = open(path, 'w'); f.write('kept')\n@@\ndie()"),
        (
            FlushBeforeFork,
            Stdout,
            "print('kept ', end='')\n@@\nif os.fork() == 0:\n    print('child ', end=''); sys.exit()\nos.wait(); print('end', end='')",
        ),
        (
            FlushBeforeFork,
            File,
            "f = open(path, 'w'); f.write('kept ')\n@@\nif os.fork() == 0:\n    f.write('child '); sys.exit()\nos.wait(); f.write('end')",
        ),
        (CheckErrors, Stdout, "print('x')\n@@"),
        (CheckErrors, File, "path = '/dev/full'\n@@"),
        (SyncRename, File, "f = open(temporary, 'w'); f.write('new')\n@@"),
        (CheckErrors, Pipe, "f = open('/dev/full', 'w'); f.write(data)\n@@"),
        (ReadUnbuffered, Stdin, "@@\nf.readline()\nsubprocess.run(['cat'])"),
        (WholeLines, Stdout, "@@\nfor i in range(5): print('%08d' % i)"),
        (WholeLines, File, "@@\nfor i in range(5): f.write('%08d\\n' % i)"),
    ],
    ..TestLanguage::INTERPRETED
};

pub const PERL: TestLanguage = TestLanguage {
    language: SourceLanguage::Perl,
    needs: &["perl"],
    file: "prog.pl",
    prelude: "use strict; use warnings;\nmy ($path, $temporary, $directory, $data) = ('out', 'tmp', '.', 'x');\n\
        sub opened { open(my $f, $_[0], $_[1]) or die $!; return $f }\n",
    run: &["perl", "prog.pl"],
    bodies: &[
        (BufferOutput, Stdout, "@@ printf(\"%08d\\n\", $_) for 0..2999;"),
        (BufferOutput, Stderr, "my @lines = map { sprintf(\"%08d\\n\", $_) } 0..2999; @@"),
        (BufferOutput, File, "my $f = opened('>', $path); @@ printf {$f} (\"%08d\\n\", $_) for 0..2999;"),
        (
            BufferInput,
            Stdin,
            "@@ my $n = length($line); while (defined(my $c = getc(STDIN))) { $n++ } print $n;",
        ),
        (
            BufferInput,
            File,
            "my $f = opened('<', 'in'); @@ my $n = length($line); while (defined(my $c = getc($f))) { $n++ } print $n;",
        ),
        (Flush, Stdout, "print 'kept'; @@ kill('KILL', $$);"),
        (Flush, File, "my $f = opened('>', $path); print {$f} 'kept'; @@ kill('KILL', $$);"),
        (FlushBeforeFork, Stdout, "print 'kept '; @@ syswrite(STDOUT, 'child '); print 'end';"),
        (
            FlushBeforeFork,
            File,
            "my $f = opened('>', $path); print {$f} 'kept '; @@ syswrite($f, 'child '); print {$f} 'end';",
        ),
        (CheckErrors, Stdout, "print 'x'; @@"),
        (CheckErrors, File, "my $f = opened('>', '/dev/full'); @@"),
        (SyncRename, File, "my $f = opened('>', $temporary); print {$f} 'new'; @@"),
        (ReadUnbuffered, Stdin, "for (1..10) { @@ } system('cat');"),
        (WholeLines, Stdout, "@@ printf(\"%08d\\n\", $_) for 0..4;"),
        (WholeLines, File, "my $f = opened('>>', $path); @@ printf {$f} (\"%08d\\n\", $_) for 0..4;"),
    ],
    ..TestLanguage::INTERPRETED
};

pub const RUBY: TestLanguage = TestLanguage {
    language: SourceLanguage::Ruby,
    needs: &["ruby"],
    file: "prog.rb",
    prelude: "path, temporary, directory = 'out', 'tmp', '.'\n",
    run: &["ruby", "prog.rb"],
    bodies: &[
        (BufferOutput, Stdout, "@@\n3000.times { |i| printf(\"%08d\\n\", i) }"),
        (BufferOutput, Stderr, "@@\n3000.times { |i| $stderr.printf(\"%08d\\n\", i) }"),
        (BufferOutput, File, "f = File.open(path, 'w')\n@@\n3000.times { |i| f.printf(\"%08d\\n\", i) }"),
        (BufferInput, Stdin, "@@\nn = line.size\nn += 1 while $stdin.getc\nprint n"),
        (BufferInput, File, "f = File.open('in')\n@@\nn = line.size\nn += 1 while f.getc\nprint n"),
        (Flush, Stdout, "print 'kept'\n@@\nProcess.kill(:KILL, $$)"),
        (Flush, File, "f = File.open(path, 'w'); f.write('kept')\n@@\nProcess.kill(:KILL, $$)"),
        (FlushBeforeFork, Stdout, "print 'kept '\n@@\n$stdout.syswrite('child '); print 'end'"),
        (
            FlushBeforeFork,
            File,
            "f = File.open(path, 'w'); f.write('kept ')\n@@\nf.syswrite('child '); f.write('end')",
        ),
        (CheckErrors, Stdout, "print 'x'\n@@"),
        (CheckErrors, File, "f = File.open('/dev/full', 'w'); f.write('x')\n@@"),
        (SyncRename, File, "f = File.open(temporary, 'w'); f.write('new')\n@@"),
        (ReadUnbuffered, Stdin, "10.times {\n@@\n}\nsystem('cat')"),
        (WholeLines, Stdout, "@@\n5.times { |i| printf(\"%08d\\n\", i) }"),
        (WholeLines, File, "f = File.open(path, 'a')\n@@\n5.times { |i| f.printf(\"%08d\\n\", i) }"),
    ],
    ..TestLanguage::INTERPRETED
};

pub const TCL: TestLanguage = TestLanguage {
    language: SourceLanguage::Tcl,
    needs: &["tclsh"],
    file: "prog.tcl",
    prelude: "set path out; set temporary tmp; set directory .\n\
        proc lines {to} { for {set i 0} {$i < 3000} {incr i} { puts $to [format %08d $i] } }\n\
        proc count {from} { set n 0; while {[string length [read $from 1]]} { incr n }; puts -nonewline $n }\n\
        proc die {} { exec kill -9 [pid] }\n",
    run: &["tclsh", "prog.tcl"],
    bodies: &[
        (BufferOutput, Stdout, "@@\nlines stdout"),
        (BufferOutput, Stderr, "@@\nlines stderr"),
        (BufferOutput, File, "set f [open $path w]\n@@\nlines $f; close $f"),
        (BufferInput, Stdin, "@@\ncount stdin"),
        (BufferInput, File, "set f [open in]\n@@\ncount $f"),
        (Flush, Stdout, "puts -nonewline kept\n@@\ndie"),
        (Flush, File, "set f [open $path w]; puts -nonewline $f kept\n@@\ndie"),
        (
            FlushBeforeFork,
            Stdout,
            "puts -nonewline {kept }\n@@\nexec printf {child } >@stdout; puts -nonewline end",
        ),
        (
            FlushBeforeFork,
            File,
            "set f [open $path w]; puts -nonewline $f {kept }\n@@\nexec printf {child } >@$f; puts -nonewline $f end; close $f",
        ),
        (CheckErrors, Stdout, "puts x\n@@"),
        (CheckErrors, File, "set f [open /dev/full w]; puts $f x\n@@"),
        (SyncRename, File, "set f [open $temporary w]; puts -nonewline $f new\n@@"),
        (ReadUnbuffered, Stdin, "@@\ngets stdin; exec cat <@stdin >@stdout"),
        (WholeLines, Stdout, "@@\nforeach i {0 1 2 3 4} { puts [format %08d $i] }"),
        (WholeLines, File, "set f [open $path a]\n@@\nforeach i {0 1 2 3 4} { puts $f [format %08d $i] }"),
    ],
    ..TestLanguage::INTERPRETED
};

pub const LUA: TestLanguage = TestLanguage {
    language: SourceLanguage::Lua,
    needs: &["lua5.4"],
    file: "prog.lua",
    prelude: "local path, temporary, directory, data = 'out', 'tmp', '.', 'x'\n\
        local function lines(to) for i = 0, 2999 do to:write(string.format('%08d\\n', i)) end end\n\
        local function count(from) local n = 0; while from:read(1) do n = n + 1 end; io.write(n) end\n\
        local function die() os.execute('kill -9 $PPID') end\n",
    run: &["lua5.4", "prog.lua"],
    bodies: &[
        (BufferOutput, Stdout, "@@\nlines(io.stdout)"),
        (BufferOutput, Stderr, "@@\nlines(io.stderr)"),
        (BufferOutput, File, "local f = io.open(path, 'w')\n@@\nlines(f)"),
        (BufferInput, Stdin, "@@\ncount(io.stdin)"),
        (BufferInput, File, "local f = io.open('in')\n@@\ncount(f)"),
        (Flush, Stdout, "io.write('kept')\n@@\ndie()"),
        (Flush, File, "local f = io.open(path, 'w'); f:write('kept')\n@@\ndie()"),
        (FlushBeforeFork, Stdout, "io.write('kept ')\n@@\nos.execute(\"printf 'child '\"); io.write('end')"),
        (CheckErrors, Stdout, "io.write('x')\n@@"),
        (CheckErrors, File, "local f = io.open('/dev/full', 'w')\n@@"),
        (SyncRename, File, "local f = io.open(temporary, 'w'); f:write('new')\n@@"),
        (ReadUnbuffered, Stdin, "@@\nio.read(); os.execute('cat')"),
        (WholeLines, Stdout, "@@\nfor i = 0, 4 do io.write(string.format('%08d\\n', i)) end"),
        (
            WholeLines,
            File,
            "local f = io.open(path, 'a')\n@@\nfor i = 0, 4 do f:write(string.format('%08d\\n', i)) end",
        ),
    ],
    ..TestLanguage::INTERPRETED
};

pub const NODE: TestLanguage = TestLanguage {
    language: SourceLanguage::Node,
    needs: &["node"],
    file: "prog.js",
    prelude: "const fs = require('fs'), child = require('child_process');\n\
        const temporary = 'tmp', directory = '.', data = 'kept';\nlet path = 'out', total = 0;\n\
        const pieces = Array.from({ length: 3000 }, (_, i) => String(i).padStart(8, '0') + '\\n');\n\
        const use = block => { total += block.length; };\n\
        const report = () => process.on('exit', () => fs.writeSync(1, String(total)));\n",
    run: &["node", "prog.js"],
    bodies: &[
        (BufferOutput, Stdout, "@@"),
        (BufferOutput, Stderr, "@@"),
        (BufferOutput, File, "const fd = fs.openSync(path, 'w');\n@@"),
        (BufferOutput, Socket, "const socket = fs.createWriteStream(path);\n@@"),
        (BufferInput, Stdin, "report();\n@@"),
        (BufferInput, File, "path = 'in'; report();\n@@"),
        (BufferInput, Pipe, "const fd = fs.openSync('in');\n@@\nuse(block.subarray(0, count)); report()"),
        (BufferInput, Socket, "const socket = fs.createReadStream('in'); report();\n@@"),
        (Flush, Stdout, "@@"),
        (Flush, File, "const out = fs.createWriteStream(path); out.write(data);\n@@"),
        (
            FlushBeforeFork,
            Stdout,
            "const start = () => { child.spawnSync('printf', [' child'], { stdio: 'inherit' }); process.stdout.write(' end'); };\n@@",
        ),
        (CheckErrors, Stdout, "@@\nprocess.stdout.write('x')"),
        (CheckErrors, File, "const out = fs.createWriteStream('/dev/full'); out.write('x');\n@@"),
        (SyncRename, File, "const fd = fs.openSync(temporary, 'w'); fs.writeSync(fd, 'new');\n@@"),
        (
            FlushBeforeFork,
            File,
            "const out = fs.createWriteStream(path, { flags: 'a' }); const start = () => { child.spawnSync('sh', ['-c', \"printf ' child ' >> out\"]); out.write('end'); };\n@@",
        ),
        (
            ReadUnbuffered,
            Stdin,
            "for (let i = 0; i < 10; i++) {\n@@\n}\nchild.spawnSync('cat', [], { stdio: 'inherit' })",
        ),
        (WholeLines, Stdout, "for (const line of pieces.slice(0, 5)) {\n@@\n}"),
        (
            WholeLines,
            File,
            "const fd = fs.openSync(path, 'a');\nfor (const line of pieces.slice(0, 5)) {\n@@\n}",
        ),
    ],
    ..TestLanguage::INTERPRETED
};

pub const PHP: TestLanguage = TestLanguage {
    language: SourceLanguage::Php,
    needs: &["php"],
    file: "prog.php",
    prelude: "<?php $path = 'out'; $temporary = 'tmp'; $directory = '.'; $data = 'x';\n\
        $pieces = []; for ($i = 0; $i < 3000; $i++) $pieces[] = sprintf(\"%08d\\n\", $i);\n\
        function count_bytes($f, $n) { while (fgetc($f) !== false) $n++; echo $n; }\n\
        function stop() { exec('kill -9 ' . getmypid()); }\n",
    run: &["php", "prog.php"],
    bodies: &[
        (BufferOutput, Stdout, "@@ foreach ($pieces as $piece) echo $piece;"),
        (BufferOutput, File, "$f = fopen($path, 'w'); @@"),
        (BufferInput, Stdin, "@@ count_bytes(STDIN, strlen($line));"),
        (BufferInput, File, "$f = fopen('in', 'r'); @@ count_bytes($f, strlen($line));"),
        (Flush, Stdout, "ob_start(null, 65536); echo 'kept'; @@ stop();"),
        (Flush, File, "$f = fopen($path, 'w'); fwrite($f, 'kept'); @@ stop();"),
        (
            FlushBeforeFork,
            Stdout,
            "ob_start(null, 65536); echo 'kept '; @@ passthru(\"printf 'child '\"); echo 'end';",
        ),
        (CheckErrors, File, "$f = fopen('/dev/full', 'w'); @@"),
        (SyncRename, File, "$f = fopen($temporary, 'w'); fwrite($f, 'new') === 3 || exit(1); @@"),
        (WholeLines, Stdout, "foreach (array_slice($pieces, 0, 5) as $line) { @@ }"),
        (WholeLines, File, "$f = fopen($path, 'a'); foreach (array_slice($pieces, 0, 5) as $line) { @@ }"),
    ],
    ..TestLanguage::INTERPRETED
};

pub const SHELL: TestLanguage = TestLanguage {
    language: SourceLanguage::Shell,
    needs: &["sh", "awk"],
    file: "prog.sh",
    prelude: "input=numbers output=out temporary=tmp path=out directory=. data=x\n",
    run: &["sh", "prog.sh"],
    bodies: &[
        (BufferOutput, File, "@@"),
        (BufferInput, File, "input=in\n@@ | wc -c | tr -d '\\n'"),
        (CheckErrors, Stdout, "@@"),
        (SyncRename, File, "printf new > $temporary || exit 1\n@@"),
        (ReadUnbuffered, Stdin, "@@\ncat"),
        (WholeLines, Stdout, "for line in 00000000 00000001 00000002 00000003 00000004; do\n@@\ndone"),
    ],
    ..TestLanguage::INTERPRETED
};

pub const AWK: TestLanguage = TestLanguage {
    language: SourceLanguage::Awk,
    needs: &["awk"],
    file: "prog.awk",
    prelude: "BEGIN { path = \"out\"; temporary = \"tmp\"; directory = \".\" }\n",
    run: &["awk", "-f", "prog.awk"],
    bodies: &[
        (BufferOutput, Stdout, "BEGIN { ARGV[ARGC++] = \"numbers\" }\n@@"),
        (Flush, Stdout, "BEGIN { ARGV[ARGC++] = \"word\"; ARGV[ARGC++] = \"-\" }\n@@\nNR > 1 { exit }"),
        (Flush, File, "BEGIN { ARGV[ARGC++] = \"word\" }\n@@"),
        (CheckErrors, File, "BEGIN { path = \"/dev/full\"; printf \"x\" > path }\n@@"),
        (SyncRename, File, "BEGIN { printf \"new\" > temporary }\n@@"),
        (CheckErrors, Stdout, "BEGIN { printf \"x\" }\n@@"),
        (WholeLines, Stdout, "BEGIN { ARGV[ARGC++] = \"lines\" }\n@@"),
        (WholeLines, File, "BEGIN { ARGV[ARGC++] = \"lines\" }\n@@"),
    ],
    ..TestLanguage::INTERPRETED
};
