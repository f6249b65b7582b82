# mawk -W interactive uses each line as it comes.
(for i in 1 2 3 4 5; do echo "line $i"; sleep .5; done) | timeout -s KILL 2 mawk -W interactive '{ print }' | cat
