traced bytes "$PROGRAM" >file
seen "writes of the kernel" "$(counted "$(calls bytes 1)" write)"
seen "bytes in the file" "$(bytes file)"
name=unbuffered_writer runs=20
[ "$VERSION" = broken ] || name=buffered_writer
[ -z "$QUICK" ] || runs=3
timed $runs "$PROGRAM"
ours_timed writers-100k $name $runs 1
