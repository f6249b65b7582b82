#!/bin/sh
# Appends the lines of standard input to a file: @NAME@.
# Use: sh log.sh FILE < records
set -eu
file=${1:?usage: log.sh FILE}

%if gather
# A shell has no buffer of its own: weir log collects whole records and writes them.
%if period
exec weir log --quiet -o "$file" --buffer @BUFFER@ --flush @PERIOD_MS@ms --sync interval:@PERIOD_MS@ms
%else
%if timer
exec weir log --quiet -o "$file" --buffer @BUFFER@ --flush @PERIOD_MS@ms
%else
exec weir log --quiet -o "$file" --buffer @BUFFER@ --flush full
%end
%end
%else
exec 3>>"$file"
%if synced
sync "$file" "$(dirname "$file")" # without it, a power cut can lose the name of a new file
%end
%if period
# Syncs from the background, until this shell has ended; the last sync comes after the last record.
while sleep @PERIOD_S@ && kill -0 $$ 2>/dev/null; do sync -d "$file" || kill $$; done 3>&- &
timer=$!
trap 'kill $timer 2>/dev/null || true' EXIT
%end

while IFS= read -r record; do
    printf '%s\n' "$record" >&3
%if sync_record|dsync|group
    sync -d "$file" # fdatasync(2)
%end
done
%if sync_record|dsync|group
if [ -n "$record" ]; then # a last line without its end
    printf '%s' "$record" >&3
    sync -d "$file"
fi
%else
[ -z "$record" ] || printf '%s' "$record" >&3 # a last line without its end
%if period
sync -d "$file"
%end
%end
%end
