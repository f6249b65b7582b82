"$PROGRAM" >>file
seen "lines" "$(lines file)"
seen "whole lines" "$(counted "$(grep -cE '^writer [0-9] of 10 was here$' file)" line)"
