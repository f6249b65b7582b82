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

# figures FILE ARRAY FIGURE,… KEY=VALUE…: a line with these figures of each such entry of an array of a JSON file.
# total FILE ARRAY FIGURE KEY=VALUE…: their sum. entries FILE ARRAY KEY=VALUE…: how many there are.
figures() { "$WEIR" lab-tool look "$@"; }
total() { "$WEIR" lab-tool sum "$@"; }
entries() { "$WEIR" lab-tool count "$@"; }

# ours TABLE ROW FIGURE VALUE RUNS TIMES: a figure that stands beside that of a published table; TIMES is 1, or what it
# was multiplied with because less was measured than there.
ours() { printf 'ours\t%s\t%s\t%s\t%s\t%s\t%s\n' "$@"; }

# timed RUNS COMMAND…: what COMMAND takes, the mean of RUNS; its output is left as the file timed-output.
timed() { "$WEIR" lab-tool time timed "$@" >timed-output; }

# ours_timed TABLE ROW RUNS TIMES: what timed has measured, times TIMES, beside a published table.
ours_timed() {
    awk -v table="$1" -v row="$2" -v runs="$3" -v times="$4" -v OFS='\t' '{
        print "ours", table, row, "elapsed", $1 * times, runs, times
        print "ours", table, row, "user", $2 * times, runs, times
        print "ours", table, row, "system", $3 * times, runs, times }' timed
}

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
calls() { total "$1.json" streams calls "fd=$2"; }

# benched NAME WORKLOAD OPTION…: measures; the result is left as NAME.json.
benched() {
    benched_name=$1
    shift
    "$WEIR" bench --quiet --json "$benched_name.json" "$@"
}

# median NAME "KEY=VALUE…": the median time of a row in seconds.
# shellcheck disable=SC2086 # the conditions are words
median() { figures "$1.json" rows elapsed_s.median $2 | head -n 1; }

# ratio NAME A B: how many times the median time of row A is that of row B; rows are "KEY=VALUE…".
ratio() { awk -v a="$(median "$1" "$2")" -v b="$(median "$1" "$3")" 'BEGIN { printf "%.1f\n", a / b }'; }

# sizes WORKLOAD OPTION…: its time by the size of its records, from 1 byte to 65,536.
sizes() {
    sizes_name=$1
    set -- "$@" --method syscall
    if [ -n "$QUICK" ]; then
        set -- "$@" --size 10000000 --records 1,64,4096,65536 --budget 3s
    else
        set -- "$@" --size 100000000 --records 1,2,4,8,16,32,64,128,256,512,1024,4096,16384,65536 --rounds 20 --budget 120s
    fi
    benched "$sizes_name" "$@"
    row() { echo "record_bytes=$1 cache=warm"; }
    # shellcheck disable=SC2046 # the conditions are words
    seen "calls at 1 byte, of each kind" "$(figures "$sizes_name.json" rows calls.write $(row 1)) calls"
    seen "64 bytes against 1 byte" "$(ratio "$sizes_name" "$(row 1)" "$(row 64)") times faster"
    seen "65,536 bytes against 4,096" "$(ratio "$sizes_name" "$(row 4096)" "$(row 65536)") times faster"
    seen "time against size" "$(figures "$sizes_name.json" rows record_bytes,elapsed_s.median cache=warm | awk '
        { time[$1] = $2 }
        END { falls = time[1] > 5 * time[64] && time[64] > 5 * time[4096] && time[4096] < 20 * time[65536]
              print falls ? "falls, then stays" : "is otherwise" }')"
}
