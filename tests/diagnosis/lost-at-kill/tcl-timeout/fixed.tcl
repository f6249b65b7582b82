set data [open data.csv w]
for {set n 1} {1} {incr n} {
    puts $data "$n;[expr {$n * 7 % 5}]"
    flush $data
    after 20
}
