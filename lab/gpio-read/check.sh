on_terminal "$PROGRAM" &
sleep 0.9
seen "redraws seen in a second" "$(counted "$(tr '\r' '\n' <terminal | grep -c "GPIO value: [01]" || true)" redraw)"
wait
