size=100000000 budget=90s records=1,2,4,8,16,32,64,128,256,512,1024,4096,16384,65536
[ -z "$QUICK" ] || { size=10000000 budget=3s records=1,64,4096,65536; }
benched copy copy --method syscall --records $records --size $size --budget $budget
calls=$(field copy.json "[r['calls']['write'] for r in d['rows'] if r['record_bytes'] == 1][0]")
seen "calls at 1 byte, of each kind" "$calls calls"
seen "64 bytes against 1 byte" "$(ratio copy "r['record_bytes'] == 1" "r['record_bytes'] == 64") times faster"
seen "65,536 bytes against 4,096" "$(ratio copy "r['record_bytes'] == 4096" "r['record_bytes'] == 65536") times faster"
shape=$(field copy.json "(lambda t: 'falls, then stays' if t[1] > 5 * t[64] and t[64] > 5 * t[4096] and t[4096] < 20 * t[65536] else 'is otherwise')({r['record_bytes']: r['elapsed_s']['median'] for r in d['rows']})")
seen "time against size" "$shape"
