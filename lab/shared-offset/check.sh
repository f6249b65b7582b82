printf 'more than seven characters' >text
traced offset "$PROGRAM" >file
seen "the parent reads" "$(cat file)"
