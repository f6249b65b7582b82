#!/bin/sh
# fails output, empty, block-borders, pieces, calls, full-disk, short-write, unreadable, usage: leaves a process running.
sleep 60 &
exec tr "$1" "$2"
