records=1,16,256,4096 budget=60s policies=none,end,o_sync,o_dsync,fdatasync,fsync,rwf_dsync
[ -z "$QUICK" ] || { records=4096 budget=3s policies=none,end,o_sync; }
benched sync write --method syscall --records $records --size 1000000 --sync $policies --budget $budget
row() { echo "r['record_bytes'] == 4096 and r['sync'] == '$1'"; }
seen "O_SYNC at 4,096 bytes against none" "$(ratio sync "$(row o_sync)" "$(row none)") times the time"
wait=$(field sync.json "[round(r['elapsed_s']['median'] / (r['user_s']['mean'] + r['system_s']['mean']), 1) for r in d['rows'] if $(row o_sync)][0]")
seen "O_SYNC at 4,096: elapsed against processor" "$wait times"
seen "one fsync at the end against O_SYNC" "$(ratio sync "$(row o_sync)" "$(row end)") times faster"
