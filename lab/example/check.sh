# `sh -eu` runs this check in an empty directory, once for broken.c and once for fixed.c. $PROGRAM is that program,
# $VERSION is broken or fixed, and $QUICK is not empty for small sizes. Both programs go through the same steps.
#
#   traced NAME COMMAND…   runs a command under weir trace and leaves the result as NAME.json
#   calls NAME FD          prints the number of calls on a descriptor in that trace
#   seen WHAT VALUE        reports an outcome, by its name in lab.toml
#   lines, bytes FILE      print the number of lines or bytes, with the word after it
#   on_terminal COMMAND…   runs a command on a terminal and leaves the output as the file terminal
#   until_there FILE TEXT  waits until the file contains the text, at most 2 s
traced count "$PROGRAM" >file
seen "writes into a file" "$(counted "$(calls count 1)" write)"
seen "lines in the file" "$(lines file)"
