# mawk fills its input buffer before it uses the first line of a pipe, and the limit of time ends it first.
(for i in 1 2 3 4 5; do echo "line $i"; sleep .5; done) | timeout -s KILL 2 mawk '{ print }' | cat
