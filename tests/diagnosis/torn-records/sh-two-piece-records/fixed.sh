for job in 1 2 3; do
    for record in 1 2 3 4 5 6 7 8 9 10; do
        sleep 0.01
        printf '%s\n' "job $job record $record status ok"
    done >> jobs.log &
done
wait
