seq 1 100 >plain
printf 'one\ntwo\nthree' >no-newline
: >empty
head -c 100000 /dev/zero | tr '\0' x >huge-line
printf '\n\n\n\n' >newlines
seq 1 5 >few
same=0
for file in plain no-newline empty huge-line newlines few; do
    "$PROGRAM" 10 $file >ours
    tail -n 10 $file >theirs
    if cmp -s ours theirs; then same=$((same + 1)); fi
done
seen "as the system's tail, on 6 odd files" "$same of 6"
seq 1000000 1249999 >large
"$WEIR" trace --exact --quiet --json tail.json -- "$PROGRAM" 10 large >ours
read=$(total tail.json streams bytes "path=*/large")
seen "bytes read, for the last 10 lines of 2,000,000 bytes" "$(counted "$read" byte)"
