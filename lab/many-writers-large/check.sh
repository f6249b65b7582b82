"$PROGRAM" >file
../runs <file >found
read -r runs ends whole <found
seen "bytes" "$(bytes file)"
seen "runs of one letter, no multiple of 9,999" "$(counted "$runs" run)"
seen "writers whose end is a torn block of 476" "$(counted "$ends" writer)"
ours lobster "25 writers" "records in one piece (expected: 2,500)" "$whole" 1 1
