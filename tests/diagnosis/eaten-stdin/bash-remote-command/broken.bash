while read -r host; do
    sh ./remote "$host"
done
