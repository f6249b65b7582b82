messages() { counted "$(grep -o '\[20' app.log | wc -l)" message; }
traced log "$PROGRAM" &
while [ ! -e app.log ]; do sleep 0.01; done
sleep 0.5
seen "after the 1st message, with a newline" "$(lines app.log)"
sleep 1
seen "after the 2nd, without one" "$(messages)"
wait
seen "after a kill" "$(messages)"
