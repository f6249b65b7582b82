rest() { if [ -s "$1" ]; then cat "$1"; else echo nothing; fi; }
printf abcdefgh | traced ahead "$PROGRAM" >short
seen "abcd, efgh through a pipe" "$(rest short)"
# abcd and 4,092 bytes fill the block that stdio reads. All input is in the pipe before the program starts.
{ printf abcd; head -c 4092 /dev/zero | tr '\0' .; printf efgh; } >input
cat input | { sleep 0.1; "$PROGRAM"; } >long
if [ "$(head -c 1 long)" = . ]; then
    seen "a block of 4,096 before efgh" "the padding, then $(tail -c 4 long)"
else
    seen "a block of 4,096 before efgh" "$(rest long)"
fi
