set journal [open journal.txt w]
set balance 100
for {set step 1} {$step < 30} {incr step} {
    incr balance -$step
    puts $journal "step $step: balance $balance"
    if {$balance < 0} {
        exec kill -9 [pid]
    }
}
