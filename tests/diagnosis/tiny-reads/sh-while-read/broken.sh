sum=0
while read -r name size; do
    : "$name"
    sum=$((sum + size))
done
echo "$sum"
