{
    IFS= read -r heading
    echo "$heading"
    cat
} < input
