printf '%s\n' '/bin/echo one' '/bin/echo two' '/bin/echo three' >script
how() { # NAME: what the calls on descriptor 0 of the shell were
    python3 - "$1.json" <<'P'
import json, sys
document = json.load(open(sys.argv[1]))
shell = document["streams"][0]["pid"]
stream = next(s for s in document["streams"] if s["fd"] == 0)
back = stream["seeks"]
one = stream["sizes"].get("1", 0)
print("byte by byte" if one > 20 else "whole, seeking back to each next line" if back else "whole")
P
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
