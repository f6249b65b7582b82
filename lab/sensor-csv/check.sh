traced sensor "$PROGRAM" &
while [ ! -e temperatures.csv ]; do sleep 0.01; done
sleep 1.4
seen "readings after 3 were taken" "$(counted "$(grep -cE '^[0-9-]+T[0-9:]+,[0-9.]+$' temperatures.csv || true)" line)"
wait
seen "readings after a kill" "$(counted "$(grep -cE '^[0-9-]+T[0-9:]+,[0-9.]+$' temperatures.csv || true)" line)"
