{ echo "error: disk is hot"; sleep 1.6; echo "ok"; } | grep error | cat
