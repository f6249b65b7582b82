# Functions for every check.sh. `sh -eu` runs a check in an empty directory, once for the broken program and once for
# the fixed one. $PROGRAM is that program, $VERSION is broken or fixed, and $QUICK is not empty for small sizes.

trap 'exit 143' TERM # so that a check's trap for EXIT cleans up

# seen WHAT VALUE: reports one outcome of lab.toml.
seen() { printf '%s\t%s\n' "$1" "$2"; }

# traced NAME COMMAND…: runs a command under weir's tracer and leaves the result as NAME.json.
traced() {
    traced_name=$1
    shift
    "$WEIR" trace --quiet --json "$traced_name.json" -- "$@"
}

# lines FILE, bytes FILE: print the number of lines or bytes with the word after it.
lines() { counted "$(wc -l <"$1")" line; }
bytes() { counted "$(wc -c <"$1")" byte; }
counted() { if [ "$1" = 1 ]; then echo "1 $2"; else echo "$(grouped "$1") $2s"; fi; }

# grouped NUMBER: prints a whole number with a comma after the thousands, millions …
grouped() { echo "$1" | sed -e :a -e 's/\([0-9]\)\([0-9]\{3\}\)\(,.*\)*$/\1,\2\3/' -e ta; }

# figures FILE ARRAY FIGURE,… KEY=VALUE…: prints a line with these figures for each matching entry of an array in a
# JSON file. total FILE ARRAY FIGURE KEY=VALUE…: prints their sum. entries FILE ARRAY KEY=VALUE…: prints their number.
figures() { "$WEIR" lab-tool figures "$@"; }
total() { "$WEIR" lab-tool sum "$@"; }
entries() { "$WEIR" lab-tool count "$@"; }

# ours TABLE ROW FIGURE VALUE RUNS TIMES: reports a figure for comparison with a published table. TIMES is 1, or the
# factor by which the figure was scaled because less was measured than in the publication.
ours() { printf 'ours\t%s\t%s\t%s\t%s\t%s\t%s\n' "$@"; }

# timed RUNS COMMAND…: writes the mean time of RUNS runs to the file timed, and COMMAND's output to timed-output.
timed() { "$WEIR" lab-tool time timed "$@" >timed-output; }

# ours_timed TABLE ROW RUNS TIMES: reports the times that timed measured, multiplied by TIMES. Without user and system time if
# the runs were too short for a division of CPU time.
ours_timed() {
    awk -v table="$1" -v row="$2" -v runs="$3" -v times="$4" -v OFS='\t' '{
        print "ours", table, row, "elapsed", $1 * times, runs, times
        if (NF < 3) exit
        print "ours", table, row, "user", $2 * times, runs, times
        print "ours", table, row, "system", $3 * times, runs, times }' timed
}

# on_terminal COMMAND…: runs a command with a terminal as its standard output and leaves the output as the file
# terminal, with a carriage return before each newline.
on_terminal() { script -qec "$*" /dev/null </dev/null >terminal; }

# until_there FILE TEXT: waits until the file contains the text, at most 2 s.
until_there() {
    until_tries=0
    until grep -q "$2" "$1" 2>/dev/null || [ $until_tries -ge 200 ]; do
        sleep 0.01
        until_tries=$((until_tries + 1))
    done
}

# calls NAME FD: prints the number of calls on a descriptor in the trace NAME.json, over all processes.
calls() { total "$1.json" streams calls "fd=$2"; }

# benched NAME WORKLOAD OPTION…: runs weir bench and leaves the result as NAME.json.
benched() {
    benched_name=$1
    shift
    "$WEIR" bench --quiet --json "$benched_name.json" "$@"
}

# median NAME "KEY=VALUE…": prints the median time of a row in seconds.
# shellcheck disable=SC2086 # the conditions are words
median() { figures "$1.json" rows elapsed_s.median $2 | head -n 1; }

# ratio NAME A B: prints the median time of row A divided by that of row B; rows are "KEY=VALUE…".
ratio() { awk -v a="$(median "$1" "$2")" -v b="$(median "$1" "$3")" 'BEGIN { printf "%.1f\n", a / b }'; }

# faster NAME WORDS_A A WORDS_B B: prints which of two rows is faster, in its words, or "a tie": by the interval of the ratio of
# their times and the noise of the run.
faster() {
    case $("$WEIR" lab-tool faster "$1.json" "$3" "$5") in
    first*) echo "$2 is faster" ;;
    second*) echo "$4 is faster" ;;
    *) echo "a tie" ;;
    esac
}

# ratio_of NAME A B: prints the ratio of the times of two rows with its interval.
ratio_of() { "$WEIR" lab-tool faster "$1.json" "$2" "$3" | awk '{ print $2 " times [" $3 ", " $4 "]" }'; }

# speedups CACHE SUFFIX: reports how much faster larger records are in the rows of this cache. SUFFIX ends the names of the outcomes.
speedups() {
    speedup() {
        # On tmpfs there is no cold cache.
        if [ -z "$(figures "$sizes_name.json" rows elapsed_s.median record_bytes=1 cache="$1")" ]; then
            echo "not measured"
        else
            echo "$(ratio "$sizes_name" "record_bytes=$2 cache=$1" "record_bytes=$3 cache=$1") times faster"
        fi
    }
    seen "64 bytes against 1 byte$2" "$(speedup "$1" 1 64)"
    seen "65,536 bytes against 4,096$2" "$(speedup "$1" 4096 65536)"
}

# savings SUFFIX: reports how much CPU time larger records save with a warm cache, where almost all time is CPU time. Other programs
# that run meanwhile make the elapsed time longer, but hardly the CPU time.
savings() {
    cpu() { figures "$sizes_name.json" rows cpu_s.median record_bytes="$1" cache=warm | head -n 1; }
    saving() { awk -v a="$(cpu "$1")" -v b="$(cpu "$2")" 'BEGIN { printf "%.1f times less CPU time", a / b }'; }
    seen "64 bytes against 1 byte$1" "$(saving 1 64)"
    seen "65,536 bytes against 4,096$1" "$(saving 4096 65536)"
    speedups warm "$1, elapsed"
}

# sizes WORKLOAD OPTION…: measures a workload with records of 1 to 65,536 bytes and reports the outcomes.
sizes() {
    sizes_name=$1
    set -- "$@" --method syscall
    if [ -n "$QUICK" ]; then
        set -- "$@" --size 10000000 --records 1,64,4096,65536 --budget 3s
    else
        set -- "$@" --size 100000000 --records 1,2,4,8,16,32,64,128,256,512,1024,4096,16384,65536 --rounds 20 --budget 120s
    fi
    benched "$sizes_name" "$@"
    seen "calls at 1 byte, of each kind" "$(counted "$(figures "$sizes_name.json" rows calls.write record_bytes=1 cache=warm)" call)"
    sizes_warm=
    if [ "$sizes_name" = copy ]; then
        # The published table is of a cold cache, so the outcomes say of which cache they are.
        sizes_warm=", warm"
        speedups cold ", cold"
    fi
    savings "$sizes_warm"
    seen "CPU time against size$sizes_warm" "$(figures "$sizes_name.json" rows record_bytes,cpu_s.median cache=warm | awk '
        { time[$1] = $2 }
        END { falls = time[1] > 5 * time[64] && time[64] > 5 * time[4096] && time[4096] < 20 * time[65536]
              print falls ? "falls, then stays" : "is otherwise" }')"
}
