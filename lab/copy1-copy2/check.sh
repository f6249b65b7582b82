bytes=100000000
set -- --rounds 20 --budget 60s
[ -z "$QUICK" ] || { bytes=10000000; set -- --budget 4s; }
benched five copy1-copy2 --size $bytes "$@"
row() { echo "record_bytes=$1 method=$2"; }
seen "at 1 byte: read/write against stdio" "$(ratio five "$(row 1 syscall)" "$(row 1 stdio)") times the time"
# shellcheck disable=SC2046 # the conditions are words
per_mib() { counted "$(figures five.json rows calls_per_mib $(row 65536 "$1") | awk '{ printf "%.0f", $1 }')" call; }
seen "at 64 KiB: calls per MiB, read/write" "$(per_mib syscall)"
seen "at 64 KiB: calls per MiB, stdio" "$(per_mib stdio)"
# The times of large records differ by less than a busy machine's noise: a verdict needs the interval of their ratio.
seen "at 1 MiB" "$(faster five "read/write" "$(row 1048576 syscall)" stdio "$(row 1048576 stdio)")"
seen "at 1 MiB: time of read/write, by that of stdio" "$(ratio_of five "$(row 1048576 syscall)" "$(row 1048576 stdio)")"
seen "bytes copied" "$(counted $bytes byte)"
seen "questions answered" "$(counted "$(entries five.json answers)" question)"
