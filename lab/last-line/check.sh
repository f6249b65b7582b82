printf 'first\nsecond\nlast words' | "$PROGRAM" >log
seen "records logged of 3" "$(lines log)"
