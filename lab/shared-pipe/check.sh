# The logger is slow now and then, as one that writes to a disk is: then the pipe is full.
traced pipe "$PROGRAM" | { sleep 0.2; cat; } >log
whole=$(awk 'length($0) == 5999 && ($0 !~ /[^a]/ || $0 !~ /[^b]/ || $0 !~ /[^c]/ || $0 !~ /[^d]/)' log | wc -l)
if [ "$whole" -lt 800 ] && [ "$VERSION" = broken ]; then whole=some; else whole="$whole of 800"; fi
seen "records of 6,000 bytes that are whole" "$whole"
