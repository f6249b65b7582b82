seq 100 | {
    IFS= read -r heading
    echo "$heading"
    cat
}
