seq 100 | {
    sed 1q
    cat
}
