while read -r host; do
    sh ./remote "$host" < /dev/null
done
