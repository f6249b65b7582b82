{
    mawk '{ print; exit }'
    cat
} < input
