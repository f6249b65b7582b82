while read -r what file; do
    echo "$what $file $(wc -l $file)"
done
