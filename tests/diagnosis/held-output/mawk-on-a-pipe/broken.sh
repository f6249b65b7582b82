# mawk fills its input buffer before it uses the first line of a pipe.
(for i in 1 2 3; do echo "line $i"; sleep .8; done) | mawk '{ print }' | cat
