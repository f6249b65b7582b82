# What every check.sh may use. A check is run by sh -eu in an empty directory, once for the broken program and
# once for the fixed one; $PROGRAM is the one whose turn it is, $VERSION its name, $QUICK not empty for small sizes.

trap 'exit 143' TERM # the trap for EXIT of a check tidies up

# seen WHAT VALUE: one thing that was looked at.
seen() { printf '%s\t%s\n' "$1" "$2"; }

# traced NAME COMMAND…: runs it under weir's tracer; what that found is left as NAME.json.
traced() {
    traced_name=$1
    shift
    "$WEIR" trace --quiet --json "$traced_name.json" -- "$@"
}

# How many lines, bytes a file has, with the word behind.
lines() { counted "$(wc -l <"$1")" line; }
bytes() { counted "$(wc -c <"$1")" byte; }
counted() { if [ "$1" = 1 ]; then echo "1 $2"; else echo "$1 $2s"; fi; }

# field FILE PYTHON: what an expression over the JSON document d is.
field() { python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }

# on_terminal COMMAND…: runs it with a terminal as its standard output; what came, with a
# carriage return before each newline, is left as the file terminal.
on_terminal() { script -qec "$*" /dev/null </dev/null >terminal; }

# until_there FILE TEXT: waits until the file holds the text, at most 2 s.
until_there() {
    until_tries=0
    until grep -q "$2" "$1" 2>/dev/null || [ $until_tries -ge 200 ]; do
        sleep 0.01
        until_tries=$((until_tries + 1))
    done
}

# calls NAME FD: how many calls a trace saw on a descriptor, over all processes.
calls() { field "$1.json" "sum(s['calls'] for s in d['streams'] if s['fd'] == $2)"; }

# benched NAME WORKLOAD OPTION…: measures; the result is left as NAME.json.
benched() {
    benched_name=$1
    shift
    "$WEIR" bench --quiet --json "$benched_name.json" "$@"
}

# ratio NAME A B: how many times the median time of row A is that of row B; rows are Python conditions over r.
ratio() {
    python3 - "$1.json" "$2" "$3" <<'P'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
time = [next(r["elapsed_s"]["median"] for r in rows if eval(which)) for which in sys.argv[2:]]
print(f"{time[0] / time[1]:.1f}")
P
}

# sizes WORKLOAD: its time by the size of its records, from 1 byte to 65,536.
sizes() {
    sizes_total=100000000 budget=90s records=1,2,4,8,16,32,64,128,256,512,1024,4096,16384,65536
    [ -z "$QUICK" ] || { sizes_total=10000000 budget=3s records=1,64,4096,65536; }
    benched "$1" "$1" --method syscall --records $records --size $sizes_total --budget $budget
    calls=$(field "$1.json" "[r['calls']['write'] for r in d['rows'] if r['record_bytes'] == 1][0]")
    seen "calls at 1 byte, of each kind" "$calls calls"
    seen "64 bytes against 1 byte" "$(ratio "$1" "r['record_bytes'] == 1" "r['record_bytes'] == 64") times faster"
    seen "65,536 bytes against 4,096" "$(ratio "$1" "r['record_bytes'] == 4096" "r['record_bytes'] == 65536") times faster"
    shape=$(field "$1.json" "(lambda t: 'falls, then stays' if t[1] > 5 * t[64] and t[64] > 5 * t[4096] and t[4096] < 20 * t[65536] else 'is otherwise')({r['record_bytes']: r['elapsed_s']['median'] for r in d['rows']})")
    seen "time against size" "$shape"
}
