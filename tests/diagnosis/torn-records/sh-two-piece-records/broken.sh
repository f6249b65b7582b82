for job in 1 2 3; do
    for record in 1 2 3 4 5 6 7 8 9 10; do
        printf 'job %d record %d ' $job $record
        sleep 0.01
        echo 'status ok'
    done >> jobs.log &
done
wait
