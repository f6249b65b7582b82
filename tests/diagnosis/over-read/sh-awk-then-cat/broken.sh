{
    awk '{ print toupper($0); exit }'
    cat
} < input
