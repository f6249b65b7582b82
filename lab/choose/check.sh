budget=30s
[ -z "$QUICK" ] || budget=3s
benched choose log --method stdio --records 64 --mode none,full --sync none,fdatasync --size 256K --budget $budget
row() { echo "mode=$1 sync=$2"; }
seen "each record written at once, against gathered" "$(ratio choose "$(row none none)" "$(row full none)") times the time"
seen "each record synced, against written at once" "$(ratio choose "$(row none fdatasync)" "$(row none none)") times the time"
cost() { figures choose.json rows elapsed_s.median,bytes "mode=$1" "sync=$2" | awk '{ printf "%.0f", $1 / $2 * 64e9 }'; }
seen "throughput: stdio" "$(cost full none) ns per record; a kill loses up to a buffer of them"
seen "low latency: one write per record" "$(cost none none) ns per record; a kill loses none, a power cut up to 30 s"
seen "each must survive: fdatasync" "$(cost none fdatasync) ns per record; a power cut loses none"
