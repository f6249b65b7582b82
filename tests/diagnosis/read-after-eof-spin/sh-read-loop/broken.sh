: > answer
(sleep 0.8; echo yes >> answer) &
exec 3< answer
until read -r line <&3; do :; done
echo "answer: $line"
wait
