set -- --records 1,16,256,4096 --sync none,end,o_sync,o_dsync,fdatasync,fsync,rwf_dsync --rounds 20 --budget 60s
[ -z "$QUICK" ] || set -- --records 4096 --sync none,end,o_sync --budget 3s
benched sync write --method syscall --size 1000000 "$@"
row() { echo "record_bytes=4096 sync=$1"; }
seen "O_SYNC at 4,096 bytes against none" "$(ratio sync "$(row o_sync)" "$(row none)") times the time"
# shellcheck disable=SC2046 # the conditions are words
wait=$(figures sync.json rows elapsed_s.median,user_s.mean,system_s.mean $(row o_sync) | awk '{ printf "%.1f", $1 / ($2 + $3) }')
seen "O_SYNC at 4,096: elapsed against processor" "$wait times"
for sync in o_dsync fdatasync fsync rwf_dsync; do
    # A quick run has no rows of the variants, and some file systems lack RWF_DSYNC.
    [ -n "$(median sync "$(row $sync)")" ] || continue
    seen "$sync at 4,096 bytes against none" "$(ratio sync "$(row $sync)" "$(row none)") times the time"
done
seen "one fsync at the end against O_SYNC" "$(ratio sync "$(row o_sync)" "$(row end)") times faster"
