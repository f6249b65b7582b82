#!/bin/sh
# Eight writers of 100 records each, into one file.
for writer in 1 2 3 4 5 6 7 8; do
    (for record in $(seq 100 199); do echo "writer $writer record $record"; done) >file &
done
wait
