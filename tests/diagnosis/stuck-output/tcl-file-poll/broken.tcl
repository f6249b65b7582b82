set log [open poller.log a]
for {set round 0} {$round < 8} {incr round} {
    puts $log "round $round: queue has [expr {$round * 7 % 5}] jobs"
    after 200
}
close $log
