#!/bin/sh
# Logs every line of its input with a number.
number=0
while read -r line; do
    number=$((number + 1))
    echo "$number $line"
done
