size=100000000 budget=60s
[ -z "$QUICK" ] || { size=10000000 budget=4s; }
benched five copy1-copy2 --size $size --budget $budget
row() { echo "r['record_bytes'] == $1 and r['method'] == '$2'"; }
seen "at 1 byte: read/write against stdio" "$(ratio five "$(row 1 syscall)" "$(row 1 stdio)") times the time"
seen "at 1 MiB: read/write against stdio" "$(ratio five "$(row 1048576 syscall)" "$(row 1048576 stdio)") times the time"
seen "questions answered" "$(counted "$(field five.json "len(d['answers'])")" question)"
