set -- --rounds 500 --budget 120s
[ -z "$QUICK" ] || set -- --budget 3s
benched log log --method stdio --records 64,4096 --mode none,full "$@"
row() { echo "record_bytes=$1 mode=$2"; }
seen "64 bytes: unbuffered against full" "$(ratio log "$(row 64 none)" "$(row 64 full)") times"
seen "4,096 bytes: unbuffered against full" "$(ratio log "$(row 4096 none)" "$(row 4096 full)") times"
