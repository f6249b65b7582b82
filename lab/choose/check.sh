# program NAME MODE ANSWER…: makes the program NAME: the one that weir advise gives for these answers, or broken.c in this mode.
# The questions are about a disk, also if this directory is in memory.
program() {
    name=$1 mode=$2
    shift 2
    if [ "$VERSION" = fixed ]; then
        "$WEIR" advise -y --medium ssd --latency 1s --code c "$@" >"$name.c"
        ${CC:-cc} -O1 -pthread -o "$name" "$name.c"
    else
        # shellcheck disable=SC2016 # the script expands $1
        printf '#!/bin/sh\nexec "%s" %s "$1"\n' "$PROGRAM" "$mode" >"$name"
        chmod +x "$name"
    fi
}

# fed NAME RECORDS: starts a program, writes records to its input and leaves it open, and waits for the last in the file NAME.out.
fed() {
    mkfifo "$1.in"
    "./$1" "$1.out" <"$1.in" &
    fed=$!
    exec 7>"$1.in"
    seq -f 'record %g' "$2" >&7
    until_there "$1.out" "record $2\$"
}

program throughput each --record-bytes 12 --rate 1000000 --loss buffer
seq -f 'record %g' 1000 >records
traced throughput ./throughput throughput.out <records
cmp records throughput.out
seen "throughput: calls for 1,000 records" "$(counted "$(calls throughput 3)" call)"

program prompt stdio --record-bytes 12 --rate 1 --loss buffer
fed prompt 1
seen "promptness: in the file while the program waits" "$(lines prompt.out)"
exec 7>&-
wait "$fed"

program survival stdio --record-bytes 12 --rate 5 --loss none
fed survival 20
kill -9 "$fed"
exec 7>&-
wait "$fed" || true
seen "survival: in the file after a kill" "$(lines survival.out)"

if [ "$VERSION" = fixed ]; then
    "$WEIR" advise -y --medium ssd --quiet --record-bytes 12 --rate 5 --loss none --json advice.json
    lost=$(figures advice.json choices predicted.at_risk_power_bytes | head -n 1)
    seen "survival: a power cut may lose, by the model of weir advise" "$(counted "$lost" byte)"
    exit
fi

budget=30s
[ -z "$QUICK" ] || budget=3s
benched choose log --method stdio --records 64 --mode none,full --sync none,fdatasync --size 256K --budget $budget
row() { echo "mode=$1 sync=$2"; }
seen "each record written at once, against gathered" "$(ratio choose "$(row none none)" "$(row full none)") times the time"
seen "each record synced, against written at once" "$(ratio choose "$(row none fdatasync)" "$(row none none)") times the time"
cost() { figures choose.json rows elapsed_s.median,bytes "mode=$1" "sync=$2" | awk '{ printf "%.0f", $1 / $2 * 64e9 }'; }
seen "throughput: stdio" "$(grouped "$(cost full none)") ns per record; a kill loses up to a buffer of them"
seen "low latency: one write per record" "$(grouped "$(cost none none)") ns per record; a kill loses none, a power cut up to about 35 s"
seen "each must survive: fdatasync" "$(grouped "$(cost none fdatasync)") ns per record; a power cut loses none"
