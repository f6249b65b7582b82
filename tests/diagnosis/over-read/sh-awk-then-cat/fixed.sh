{
    IFS= read -r heading
    echo "$heading" | awk '{ print toupper($0) }'
    cat
} < input
