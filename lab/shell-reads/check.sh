printf '%s\n' '/bin/echo one' '/bin/echo two' '/bin/echo three' >script
how() { # NAME: prints how the shell reads its descriptor 0, by its calls
    if [ "$(total "$1.json" streams sizes.1 fd=0)" -gt 20 ]; then echo "byte by byte"
    elif [ "$(total "$1.json" streams seeks fd=0)" -gt 0 ]; then echo "whole, seeking back to each next line"
    else echo whole; fi
}
for shell in dash mksh bash; do
    "$WEIR" trace --exact --quiet --json file.json -- $shell <script >output
    seen "$shell, from a file" "$(how file)"
    cat script | "$WEIR" trace --exact --quiet --json pipe.json -- $shell >output
    seen "$shell, from a pipe" "$(how pipe)"
done
printf '%s\n' 'head -n 1' 'next' >takes
took=
for shell in dash mksh bash; do
    took="$took, $($shell <takes 2>/dev/null | head -n 1 | grep next || echo nothing)"
done
seen "what a child reads next: dash, mksh, bash" "${took#, }"
