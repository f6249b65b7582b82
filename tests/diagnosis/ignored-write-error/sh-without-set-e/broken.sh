for host in alpha beta gamma; do
    echo "$host is up" >> /dev/full
done 2> /dev/null
echo "results saved"
