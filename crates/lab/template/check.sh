# Run by sh -eu in an empty directory, once for broken.c and once for fixed.c: $PROGRAM is the one whose turn it is,
# $VERSION says broken or fixed, $QUICK is not empty for small sizes. Both are looked at in the same way.
#
#   traced NAME COMMAND…   runs it under weir trace; the result is NAME.json
#   calls NAME FD          how many calls that trace saw on a descriptor
#   seen WHAT VALUE        what was looked at, as lab.toml names it, and what it was
#   lines, bytes FILE      how many there are, with the word behind
#   on_terminal COMMAND…   runs it on a terminal; what came is the file terminal
#   until_there FILE TEXT  waits until the file holds the text, at most 2 s
traced count "$PROGRAM" >file
seen "writes into a file" "$(counted "$(calls count 1)" write)"
seen "lines in the file" "$(lines file)"
