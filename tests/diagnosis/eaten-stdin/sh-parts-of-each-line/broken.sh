while read -r name; do
    echo "converting $name"
    dd bs=3 count=1 > /dev/null 2>&1
done
