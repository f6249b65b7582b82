set records [open records rb]
set sum 0
for {set i 0} {$i < 250000} {incr i} {
    scan [read $records 32] %d number
    incr sum $number
}
puts $sum
