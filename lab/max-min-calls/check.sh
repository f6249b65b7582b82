# On a busy machine the wait for the tracer dominates such a short run and hides the cost of the calls: at most 5 tries.
tries=0
while [ $tries -lt 5 ]; do
    "$WEIR" trace --exact --quiet --json calls.json -- "$PROGRAM" >file
    tries=$((tries + 1))
    if [ "$VERSION" = fixed ] || [ "$(entries calls.json findings id=tiny-writes)" -gt 0 ]; then break; fi
done
seen "writes" "$(counted "$(calls calls 1)" write)"
seen "output" "$(bytes file) of $(fold -w 1 file | sort -u)"
name=maxcalls starts=1000
[ "$VERSION" = broken ] || name=mincalls
[ -z "$QUICK" ] || starts=100
timed $starts "$PROGRAM"
seen "one process start and exit" "$(grouped "$(awk '{ printf "%.0f", $1 * 1e6 }' timed)") µs"
# The published figures are totals of 1,000 starts.
ours_timed maxcalls-mincalls $name $starts 1000
