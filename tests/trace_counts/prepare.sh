# Makes the files of tests/trace_counts/commands.txt in the working directory.
set -e
seq 20000 > in
cp in copy.in
seq 20000 | sort > words
sed 's/^5$/five/' words > words.new
diff -u words words.new > words.diff || [ $? = 1 ]
yes 'a	line of text with a tab' | head -n 5000 > text
gzip -c in > in.gz
mkdir tree into
for i in $(seq 60); do seq "$i" 2000 > "tree/file$i"; done
tar cf whole.tar tree
cat > lines.awk <<'END'
{ sum += $1; print sum } END { print "end" > "awk.out" }
END
cat > lines.py <<'END'
import os
with open("in") as source, open("python.out", "w") as sink:
    for line in source:
        sink.write(line[::-1])
os.write(1, b"a line\n")
END
cat > lines.pl <<'END'
open my $source, '<', 'in' or die; open my $sink, '>', 'perl.out' or die;
while (<$source>) { print $sink scalar reverse }
syswrite STDOUT, "x" for 1 .. 100;
END
cat > lines.rb <<'END'
File.open('ruby.out', 'w') { |sink| File.foreach('in') { |line| sink.write(line.reverse) } }
END
cat > lines.tcl <<'END'
set source [open in]; set sink [open tcl.out w]
while {[gets $source line] >= 0} { puts $sink [string reverse $line] }
close $sink
END
cat > lines.lua <<'END'
local sink = io.open('lua.out', 'w')
for line in io.lines('in') do sink:write(line:reverse(), '\n') end
sink:close()
END
cat > lines.sh <<'END'
i=0
while read -r line && [ $i -lt 300 ]; do i=$((i + 1)); echo "$line $i"; done < in
tail -n 3 < words > sh.out
wc -l < words >> sh.out
END
printf 'all:\n\t@wc -l < in\n\t@cat words > make.out\n' > rules.mk
for i in $(seq 200); do echo "$i * $i"; done > sums.bc
echo quit >> sums.bc
cat > table.sql <<'END'
create table t(a, b);
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000) insert into t select i, i * i from n;
commit;
select sum(b) from t;
drop table t;
END
cat > prog.c <<'END'
#include <stdio.h>
int main(void) { return printf("%d\n", 3) < 0; }
END
echo '#include <sys/uio.h>
#include <unistd.h>
#include <fcntl.h>
int main(void) {
    struct iovec parts[3] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    char bytes[64];
    int in = open("in", O_RDONLY);
    for (int i = 0; i < 50; i++)
        if (writev(1, parts, 3) != 5 || pread(in, bytes, 64, i * 7) != 64 || pwrite(1, bytes, 9, 1000 + i) != 9) return 1;
    struct iovec into[2] = {{bytes, 30}, {bytes + 30, 34}};
    for (int i = 0; i < 40; i++)
        if (readv(in, into, 2) != 64 || preadv(in, into, 2, i) != 64 || pwritev(1, parts, 3, 5000 + i) != 5) return 1;
    return read(99, bytes, 1) != -1;
}' > writev.c
cc -o writev writev.c
if command -v git > git.path; then
    git init -q repository
    cd repository
    for i in 1 2 3; do
        seq "$i" 500 > file
        git add file
        GIT_COMMITTER_DATE='2024-01-01 00:00:00 +0000' git -c user.name=n -c user.email=e commit -q -m "commit $i" \
            --date '2024-01-01 00:00:00 +0000'
    done
fi
