# As program.py. Tcl's standard output is line-buffered by default.
set log [open log w]
fconfigure stdout -buffering full
foreach i {0 1} {
    puts "out $i"
    puts $log "log $i"
}
close [open ready w]
if {$argc > 0} { exec kill -9 [pid] }
after 60000
