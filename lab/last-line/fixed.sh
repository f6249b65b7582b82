#!/bin/sh
# Logs every line of its input with a number, also a last one without an end.
exec "${WEIR:-weir}" log --quiet -o - --sequence
