budget=30s
[ -z "$QUICK" ] || budget=3s
benched choose log --method stdio --records 64 --mode none,full --sync none,fdatasync --size 256K --budget $budget
row() { echo "r['mode'] == '$1' and r['sync'] == '$2'"; }
seen "each record written at once, against gathered" "$(ratio choose "$(row none none)" "$(row full none)") times the time"
seen "each record synced, against written at once" "$(ratio choose "$(row none fdatasync)" "$(row none none)") times the time"
cost() { field choose.json "round([r['elapsed_s']['median'] / r['bytes'] * 64e9 for r in d['rows'] if $1][0])"; }
seen "throughput: stdio" "$(cost "$(row full none)") ns a record; a kill loses up to a buffer of them"
seen "low latency: one write a record" "$(cost "$(row none none)") ns a record; a kill loses none, a power cut up to 30 s"
seen "each must survive: fdatasync" "$(cost "$(row none fdatasync)") ns a record; a power cut loses none"
