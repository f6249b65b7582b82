# Shell commands, one per line. tests/run_differential.rs runs each in a directory with the files `in` (the numbers 1 to
# 3000, also standard input), `words`, `lines.csv`, `prog.c`, `text` and others, and the directory `tree`.
cat in
cat < in > out
cat in words > out; wc out
head -n 3
head -n 3; head -n 2
head -c 10; cat | tail -n 1
tail -n 5 in
tail -c 100 in
tac in
tac words | head -n 2
nl in
nl -ba words
od -c in | tail -n 3
od -An -tx1 -N 64 in
od -t d4 -j 8 -N 32 in
base64 in
base64 in | base64 -d | cmp - in
base32 words | head -n 4
md5sum in words
sha256sum in | cut -d' ' -f1
cksum in words
sum in
b2sum words
split -l 1000 in part.; ls part.*
split -b 1000 in p.; cat p.* | cmp - in
csplit -s in 10 20 30; wc xx*
wc in
wc -l < in
wc -c in words
fmt text
fold -w 20 text
fold -s -w 30 text
pr -t -2 -l 20 in | head -n 30
expand words
unexpand -a text
join lines.csv lines.csv -t,
comm words words | head -n 3
paste in words | head -n 5
paste -s -d, words
paste - - - < in | head -n 4
cut -c1-2 in
cut -d, -f2 lines.csv
cut -d, -f1,3 --output-delimiter=: lines.csv
tr a-z A-Z < words
tr -d 0-4 < in
tr -s e < words
tr '\n' ' ' < in
tr -cs A-Za-z '\n' < text | sort | uniq -c | sort -rn | head
sort in | head -n 5
sort -n -r in | head -n 5
sort -u words
sort -t, -k2 lines.csv
sort -R --random-source=in words
sort -c in
sort -n -c in
shuf --random-source=in words
uniq in | tail -n 1
sort words | uniq -c
sort words | uniq -d
tsort lines.pairs
tee copy < words
tee copy1 copy2 < in > copy3; cmp copy1 copy3
tee -a words < lines.csv | tail -n 1
dd if=in of=out bs=1 count=100 2>/dev/null; cat out
dd if=in of=out bs=7 skip=3 count=9 2>/dev/null; od -c out
dd bs=1 count=5 2>/dev/null; head -n 1
dd if=in bs=512 conv=ucase status=none | cksum
dd if=in of=words bs=16 seek=2 count=3 conv=notrunc status=none; cat words
cp in out; cmp in out
cp -r tree tree2; find tree2 | sort
mv in moved; ls
ln -s in link; cat link | tail -n 1
ls tree
ls -1 tree/*
ls -R tree
ls nowhere
stat -c '%n %s %F' in words
du -b in
truncate -s 100 in; cat in
mkdir -p a/b/c; rmdir a/b/c; find a
mktemp -d tmp.XXXXXX | cut -c1-4
seq 1 20000 | tail -n 1
seq -s, 1 100
seq 1 100000 | cksum
seq 5 | while read a; do echo "<$a>"; done
yes | head -n 1000 | cksum
yes no | head -c 12345 | cksum
printf '%s-%d\n' a 1 b 2
printf 'no newline'
echo one; echo two >&2; echo three
factor 12 360 97
numfmt --to=iec 1024 1048576
expr 3 + 4
expr length abcdef
date -u -d @0 +%Y
basename /a/b/c.txt .txt
dirname /a/b/c.txt
realpath --relative-to=. tree
test -f in && echo yes
timeout 5 cat in | tail -n 1
timeout 0.2 sleep 5
nice cat words
nohup cat words 2>/dev/null
env -i /bin/echo x
true
false
sh -c 'exit 42'
sh -c 'kill -TERM $$'
sh -c 'echo bye; kill -KILL $$'
find . -type f | sort
find tree -name '*.txt' -exec cat {} +
find tree -name '*.txt' -exec wc -c {} \; | sort
find . -type f -print0 | sort -z | xargs -0 wc -c | tail -n 1
find tree -type f -size +1c -printf '%f %s\n' | sort
find tree -name b.txt -delete; find tree | sort
xargs -n 100 < in | tail -n 2
xargs -n 1 echo item < words
xargs -P 2 -n 1500 sh -c 'echo $#' sh < in | sort
seq 10 | xargs -I{} sh -c 'echo "n {}"'
grep 7 in
grep -c 7 in
grep -n -m 3 99 in
grep -m 1 5; head -n 1
grep -v a words
grep -o '[aeiou]' words | sort | uniq -c
grep -E '^(1|2)+$' in
grep -r needle tree
grep -l needle -r tree | sort
grep -q nothing in
grep -A1 -B1 '^1000$' in
grep -F -f words text
grep -z a words
sed -n '5,7p' in
sed s/1/one/g in
sed 3q
sed 3q; head -n 1
sed -u 2q; cat | head -n 2
sed -n '$=' in
sed -i s/a/A/ words; cat words
sed -e 's/^/> /' -e '2d' words
sed -n '/10/w found' in; wc found
sed '1~3d' words
sed = words
sed G words
sed 'N;s/\n/+/' in | head -n 3
sed y/abc/xyz/ words
awk '{ s += $1 } END { print s }' in
awk '{ print $1 * 2 }' in
awk -F, '{ print $2 > ($1 ".out") }' lines.csv; cat *.out
awk 'NR == 2 { exit } { print }'; head -n 1
awk '{ print | "sort -rn" } END { close("sort -rn"); print "done" }' in | tail -n 2
awk 'BEGIN { while (("cat words" | getline a) > 0) print "got " a }'
awk 'BEGIN { printf "a"; system("echo b"); printf "c\n" }'
awk 'BEGIN { print "err" > "/dev/stderr"; print "out" }'
gawk '{ a[NR % 7] += $1 } END { for (i = 0; i < 7; i++) print i, a[i] }' in
gawk 'BEGIN { printf "%c%c", 0, 255 }' | od -c
gawk -v RS= '{ print NR ": " $1 }' text
gawk '{ print; fflush() }' words
mawk '{ print length($0) }' words
mawk 'NR < 5' in
tar cf out.tar --mtime=@0 --owner=0 --group=0 tree; tar tf out.tar
tar cf - --mtime=@0 --owner=0 --group=0 --sort=name tree | cksum
tar czf out.tgz tree; tar tzf out.tgz | sort
tar cf - tree | (mkdir t2; cd t2; tar xf -; find . | sort)
tar cf out.tar --mtime=@0 in words; tar xOf out.tar words
tar xf nothing.tar
gzip -nk in; gzip -l in.gz | tail -n 1 | tr -s ' ' | cut -d' ' -f2,3
gzip -c words | gzip -d
gzip -n9 < in | cksum
gzip -nc in > x.gz; zcat x.gz | cmp - in
gunzip < words
bzip2 -c in | bzip2 -d | cksum
xz -c words | xz -d
zcat nothing.gz
git init -q .; git add in words; git commit -qm one; git log --format=%s; git status --short
git init -q .; git add .; git ls-files; git hash-object in
git init -q .; git add words; git commit -qm one; echo more >> words; git diff; git stash -q; git diff
git init -q .; git add .; git commit -qm one; git archive HEAD tree | tar tf - | sort
git init -q .; for i in 1 2 3; do echo $i > n; git add n; git commit -qm $i; done; git log --oneline --format=%s; git rev-list --count HEAD
git init -q .; git add .; git commit -qm one; git gc -q 2>/dev/null; git fsck 2>&1 | head -n 3; git cat-file -p HEAD:words
git log
git diff --no-index words text
sqlite3 x.db 'create table t(a,b); insert into t values(1,2),(3,4); select * from t;'
sqlite3 x.db '.import --csv lines.csv t' 'select count(*) from t'; sqlite3 -csv x.db 'select * from t order by 1'
sqlite3 x.db 'create table t(a); with recursive n(i) as (select 1 union all select i+1 from n where i<1000) insert into t select i from n; select sum(a) from t;'
sqlite3 x.db 'begin; create table t(a); rollback; select name from sqlite_master;'
echo 'select 1+1; select 2*3;' | sqlite3
sqlite3 :memory: 'select nothing'
gcc -c prog.c -o prog.o; nm prog.o | cut -d' ' -f2-
gcc -O1 prog.c -o prog; ./prog; ./prog x | cat
gcc -S -O1 -o - prog.c | grep -c .
gcc -E -P prog.c | tail -n 3
echo 'int main(void) { return 5; }' | gcc -x c - -o five; ./five
gcc broken.c
gcc -MM prog.c
make -s -f rules
make -s -f rules -j2 all
make -f rules missing
make -n -f rules
python3 -c 'print("x"); import sys; sys.stderr.write("y\n"); sys.exit(3)'
python3 -c 'for i in range(5000): print(i)'
python3 -c 'import os; print("a"); os.write(1, b"b\n"); print("c")'
python3 -c 'import os; print("once", flush=True); p = os.fork(); print("both"); p and os.wait()' | sort
python3 -c 'import sys; print(sys.stdin.readline(), end=""); import os; os.system("head -n 1")'
python3 -c 'import subprocess; print(subprocess.run(["cat", "words"], capture_output=True).stdout)'
python3 -c 'import sys; [sys.stdout.write(c) or sys.stdout.flush() for c in "one by one\n"]'
python3 -c 'import os; f = os.open("o", os.O_CREAT | os.O_WRONLY); [os.write(f, b"%d" % i) for i in range(1000)]; os.close(f)'; cat o
python3 -c 'import os; f = os.open("in", os.O_RDONLY); print(len(b"".join(iter(lambda: os.read(f, 1), b""))))'
python3 -c 'open("o", "w").write("x" * 100000); import os; print(os.stat("o").st_size)'
python3 -c 'import json, csv; print(json.dumps(list(csv.reader(open("lines.csv")))))'
python3 -c 'raise SystemExit("bad")'
python3 -c 'import threading; t = [threading.Thread(target=print, args=("t",)) for _ in range(4)]; [x.start() for x in t]; [x.join() for x in t]' | sort | uniq
python3 -m json.tool --compact nothing.json
python3 -c 'import zlib, sys; sys.stdout.buffer.write(zlib.compress(open("in", "rb").read()))' | cksum
perl -ne 'print if /9$/' in
perl -pe 's/1/one/' words in | tail -n 3
perl -e '$| = 1; print "a"; print STDERR "b"; print "c\n"'
perl -e 'print "a\n"; system("echo b"); print "c\n"'
perl -e 'print "before\n"; exec "echo", "after"'
perl -e 'my $l = <STDIN>; print $l; exec "head", "-n", "1"'
perl -i -pe 's/a/b/' words; cat words
perl -e 'syswrite STDOUT, "x" for 1 .. 1000' | wc -c
perl -e 'while (sysread STDIN, $b, 1) { $n++; last if $n == 20 } print "$n\n"'; head -n 1
perl -e 'if (fork) { wait; print "parent\n" } else { print "child\n" }'
perl -e 'open F, ">", "o"; print F $_ x 100 for 1 .. 50; close F'; cksum o
perl -e 'die "dead\n"'
dash -c 'read a; read b; echo "$a$b"; cat | head -n 2'
dash -c 'while read a; do [ $a = 5 ] && break; done; head -n 1'
dash < script.sh
bash -c 'read a; read b; echo "$a$b"; cat | head -n 2'
bash -c 'mapfile -n 3 a; echo "${a[@]}"; head -n 1'
bash -c 'for i in {1..500}; do echo $i; done > o; wc -l < o'
bash -c 'while read -r a; do echo "$a"; done < words'
bash -c 'cat <(seq 3) <(seq 4)'
bash -c 'coproc cat; echo hi >&${COPROC[1]}; read a <&${COPROC[0]}; echo $a'
bash -c 'echo a >&2; echo b; exec 3> o; echo c >&3; cat o'
bash -c 'trap "echo trapped" EXIT; echo body; exit 4'
bash -c 'set -o pipefail; false | cat; echo $?'
bash -c 'printf "%s\n" "$(cat words)" | wc -l; echo ${#RANDOM} | wc -l'
bash < script.sh
mksh -c 'read a; echo $a; head -n 1'
mksh -c 'while read a; do print -r -- "$a"; done < words'
mksh < script.sh
sh script.sh < in
sh -c 'cat script.sh | sh'
(read a; echo $a; (read b; echo $b; cat)) | tail -n 2
exec 3< in; read a <&3; cat <&3 | head -n 1; echo $a
for f in tree/*; do cat $f; done | sort
cat in | (head -n 1; cat > /dev/null)
{ echo a; echo b >&2; } 2>&1 | cat
seq 3000 | cmp - in && echo same
diff in words | head -n 5
diff -u words text | tail -n 3
cmp in words
file -b in
tclsh ask.tcl
ruby -e 'STDIN.each_line.first(2).each { |l| print l }; puts "end"'
ruby -e 'puts "a"; system("echo b"); puts "c"'
strings -n 4 prog.c | tail -n 2
bc -l < sums
tput -T xterm cols
