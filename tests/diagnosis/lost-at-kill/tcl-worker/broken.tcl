set log [open worker.log a]
for {set job 1} {$job < 1000} {incr job} {
    puts $log "job $job finished"
    after 20
}
