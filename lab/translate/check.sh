bytes=5000000 times=1 name=tr2u exact=
[ -z "$QUICK" ] || exact=--exact
if [ "$VERSION" = fixed ]; then name=tr2b; elif [ -n "$QUICK" ]; then bytes=500000 times=10; fi
yes "$(printf %049d 0 | tr 0 a)" | head -c $bytes >input
head -n 100 input >lines

# Sampled on a busy machine, a few calls belong to no stream; a quick run has none to spare.
"$WEIR" trace $exact --quiet --json file.json -- "$PROGRAM" <input >output
tr a w <input | cmp - output
seen "reads, to a file" "$(counted "$(calls file 0)" read)"
seen "writes, to a file" "$(counted "$(calls file 1)" write)"
script -qec "'$WEIR' trace --exact --quiet --json terminal.json -- '$PROGRAM' <lines" /dev/null </dev/null >terminal
seen "writes of 100 lines of 50, to a terminal" "$(counted "$(calls terminal 1)" write)"

# beside OUTPUT: reports the counts of OUTPUT.json and the measured times for the published table.
beside() {
    # The last read finds the end of the file, once however large the file is.
    ours tr2b-tr2u "$name, $1" reads $((($(calls "$1" 0) - 1) * times + 1)) 1 $times
    ours tr2b-tr2u "$name, $1" writes $(($(calls "$1" 1) * times)) 1 $times
    ours_timed tr2b-tr2u "$name, $1" 1 $times
}
timed 1 "$PROGRAM" <input
beside file
# Byte by byte to a terminal takes too long for a quick run.
if [ -z "$QUICK" ]; then
    script -qec "'$WEIR' trace --quiet --json terminal.json -- '$PROGRAM' <input" /dev/null </dev/null >terminal
    script -qec "'$WEIR' lab-tool time timed 1 '$PROGRAM' <input" /dev/null </dev/null >terminal
    beside terminal
fi
