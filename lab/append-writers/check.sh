# Whether blocks interleave depends on timing: repeats until a record is torn, at most 20 times.
tries=0 whole=4000
while [ "$whole" = 4000 ] && [ $tries -lt 20 ]; do
    rm -f log
    traced append "$PROGRAM"
    whole=$(grep -cE '^writer [0-3] record [0-9]{4} 0{78}$' log)
    tries=$((tries + 1))
    [ "$VERSION" = broken ] || break
done
seen "whole records of 4,000" "$(grouped "$whole") of 4,000"
[ "$VERSION" = fixed ] || seen "tries until a record was torn" "$tries"
