i=0
while [ $i -lt 100000 ]; do
    echo "line $i"
    i=$((i + 1))
done >> log
