while read -r host; do
    echo "asking $host"
    python3 -c 'import sys; sys.stdin.readline()' > /dev/null 2>&1
done
