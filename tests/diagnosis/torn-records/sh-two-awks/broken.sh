feed() { for round in 1 2 3 4 5 6 7 8; do seq 400; sleep 0.04; done; }
feed | awk '{ print "first filter saw record number", $1 }' >> both.log &
feed | awk '{ print "second filter saw record number", $1 }' >> both.log &
wait
