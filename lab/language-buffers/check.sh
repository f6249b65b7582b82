# try NAME COMMAND…: reports whether the line arrives through a pipe while the program waits, and after a kill.
try() {
    try_name=$1
    shift
    if ! command -v "$1" >/dev/null; then
        seen "$try_name" "not installed"
        seen "$try_name, after a kill" "not installed"
        return
    fi
    rm -f fifo output
    mkfifo fifo
    cat fifo >output &
    "$@" >fifo 2>errors &
    try_pid=$!
    try_tries=0
    while [ ! -s output ] && [ $try_tries -lt $((waits * 10)) ]; do
        sleep 0.1
        try_tries=$((try_tries + 1))
    done
    if [ -s output ]; then seen "$try_name" seen; else seen "$try_name" stuck; fi
    kill -9 $try_pid
    wait $try_pid 2>/dev/null || true
    wait # for cat
    if [ -s output ]; then seen "$try_name, after a kill" there; else seen "$try_name, after a kill" lost; fi
}
# try_cpp SOURCE: the same for a C++ program.
try_cpp() {
    if command -v c++ >/dev/null; then
        c++ -O1 -o cpp-line "../$1"
        try C++ ./cpp-line
    else
        try C++ c++
    fi
}
waits=1
[ "$VERSION" = fixed ] && waits=10
try C "$PROGRAM"
if [ "$VERSION" = broken ]; then
    try_cpp stuck.cc
    try Python "$(python3 -c 'import sys; print(sys.executable)')" -c 'import time; print("line"); time.sleep(60)'
    try Perl perl -e 'print "line\n"; sleep 60'
    try Ruby ruby -e 'puts "line"; sleep 60'
    try "Tcl, text without a newline" tclsh ../stuck.tcl
    mkfifo never # a pipe, because mawk flushes before it starts a command
    try awk awk 'BEGIN { print "line"; while ((getline < "never") > 0); }'
    waits=10
    try shell sh -c 'echo line; exec sleep 60'
    try Node node -e 'console.log("line"); setTimeout(() => {}, 60000)'
    if command -v go >/dev/null; then
        cp ../line.go.txt line.go
        # By default in a new cache, so that nothing stays outside of this directory.
        GOFLAGS=-mod=mod GOCACHE=${GOCACHE:-$PWD/cache} go build -o go-line line.go
        try Go ./go-line
        [ ! -d cache ] || chmod -R u+w cache
    else
        seen Go "not installed"
    fi
    try Java java -XX:-UsePerfData ../Line.java # no perf data: a kill would leave its file in /tmp
else
    try_cpp mended.cc
    try Python "$(python3 -c 'import sys; print(sys.executable)')" -u -c 'import time; print("line"); time.sleep(60)'
    try Perl perl -e '$| = 1; print "line\n"; sleep 60'
    try Ruby ruby -e '$stdout.sync = true; puts "line"; sleep 60'
    try "Tcl, text without a newline" tclsh ../mended.tcl
    mkfifo never
    try awk awk 'BEGIN { print "line"; fflush(); while ((getline < "never") > 0); }'
fi
