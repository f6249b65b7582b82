messages() { counted "$(grep -o '\[20' app.log | wc -l)" message; }
traced log "$PROGRAM" &
while [ ! -e app.log ]; do sleep 0.01; done
sleep 0.5
seen "after the first message" "$(messages)"
sleep 1
seen "after the second" "$(messages)"
wait
seen "after a kill" "$(messages)"
rm app.log
"$PROGRAM" without || true
seen "the second without newline, after a kill" "$(messages)"
