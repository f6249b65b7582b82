bytes=4000000
[ -z "$QUICK" ] || bytes=400000
head -c $bytes "$WEIR" >binary
traced copy "$PROGRAM" binary copy
if cmp -s binary copy; then seen "the copy" "is equal"; else seen "the copy" "differs"; fi
writes=$(total copy.json streams calls direction=out)
seen "writes" "$(counted "$writes" write)"
