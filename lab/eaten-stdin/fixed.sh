#!/bin/sh
# Visits every host in the list.
while read -r host; do
    ../ssh-like "$host" </dev/null
done <hosts
