# mawk -W interactive uses each line as it comes.
(for i in 1 2 3; do echo "line $i"; sleep .8; done) | mawk -W interactive '{ print }' | cat
