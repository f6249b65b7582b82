set -- --size 100000000 --rounds 20 --budget 60s
[ -z "$QUICK" ] || set -- --size 10000000 --budget 4s
benched five copy1-copy2 "$@"
row() { echo "record_bytes=$1 method=$2"; }
seen "at 1 byte: read/write against stdio" "$(ratio five "$(row 1 syscall)" "$(row 1 stdio)") times the time"
seen "at 1 MiB: read/write against stdio" "$(ratio five "$(row 1048576 syscall)" "$(row 1048576 stdio)") times the time"
seen "questions answered" "$(counted "$(entries five.json answers)" question)"
