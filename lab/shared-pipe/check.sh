# Whether the pipe is full when a record comes depends on timing: repeats until a record is torn, at most 20 times.
tries=0 whole=800
while [ "$whole" -eq 800 ] && [ $tries -lt 20 ]; do
    # The logger starts late, as if it waited for a disk, so that the pipe is full.
    traced pipe "$PROGRAM" | { sleep 0.2; cat; } >log
    whole=$(awk 'length($0) == 5999 && ($0 !~ /[^a]/ || $0 !~ /[^b]/ || $0 !~ /[^c]/ || $0 !~ /[^d]/)' log | wc -l)
    tries=$((tries + 1))
    [ "$VERSION" = broken ] || break
done
seen "records of 6,000 bytes that are whole" "$whole of 800"
[ "$VERSION" = fixed ] || seen "tries until a record was torn" "$tries"
