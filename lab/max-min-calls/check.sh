"$WEIR" trace --exact --quiet --json calls.json -- "$PROGRAM" >file
seen "writes" "$(counted "$(calls calls 1)" write)"
seen "output" "$(wc -c <file) bytes of $(fold -w 1 file | sort -u)"
starts=1000
[ -z "$QUICK" ] || starts=100
begin=$(date +%s%N)
for _ in $(seq $starts); do "$PROGRAM" >file; done
end=$(date +%s%N)
seen "a start, with all it does" "$(((end - begin) / starts / 1000)) µs"
