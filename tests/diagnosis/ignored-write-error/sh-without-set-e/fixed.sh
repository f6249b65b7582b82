for host in alpha beta gamma; do
    echo "$host is up" >> /dev/full || exit 1
done
echo "results saved"
