on_terminal "$PROGRAM" &
traced dots "$PROGRAM" >file &
sleep 1.1
seen "on a terminal, half way" "$(bytes terminal)"
wait
seen "on a terminal, at the end" "$(bytes terminal)"
seen "writes into a file" "$(counted "$(calls dots 1)" write)"
