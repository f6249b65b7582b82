#!/usr/bin/env bash
# fails nothing: a solution may be a script.
[ $# = 2 ] || { echo "usage: copy FROM TO" >&2; exit 2; }
[ -e "$1" ] || { echo "copy: there is no $1" >&2; exit 1; }
[ "$(realpath "$1")" != "$(realpath "$2")" ] || { echo "copy: $1 and $2 are the same file" >&2; exit 1; }
exec cat -- "$1" >"$2"
