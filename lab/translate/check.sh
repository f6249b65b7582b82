bytes=5000000
[ -z "$QUICK" ] || bytes=500000
seq 1 999999 | tr 0-9 a-j | head -c $bytes >input
traced file "$PROGRAM" <input >output
tr a w <input | cmp - output
seen "reads, to a file" "$(counted "$(calls file 0)" read)"
seen "writes, to a file" "$(counted "$(calls file 1)" write)"
yes "$(printf %049d 0)" | head -n 100 >lines
script -qec "'$WEIR' trace --exact --quiet --json terminal.json -- '$PROGRAM' <lines" /dev/null </dev/null >terminal
seen "writes of 100 lines of 50, to a terminal" "$(counted "$(calls terminal 1)" write)"
