# Leaves known bytes in Tcl's channels, writes a byte to stderr, and waits; when a file "go" exists, opens
# one more channel.
cd [lindex $argv 0]
set file [open input w]
puts -nonewline $file "first line\nsecond line\nthird"
close $file
foreach name {text full line none closed} { set kept($name) [open $name w] }
fconfigure $kept(line) -buffering line
fconfigure $kept(none) -buffering none
puts -nonewline $kept(text) {part one, }
puts -nonewline $kept(text) {part two}
puts -nonewline $kept(full) [string repeat x 300]
puts $kept(line) {a line}
puts -nonewline $kept(line) {and a part}
puts -nonewline $kept(none) {at once}
puts -nonewline $kept(closed) {at its place}
close $kept(closed)
set reader [open input]
gets $reader
set pipe [open {|cat > /dev/null} w]
puts -nonewline $pipe {into a pipe}
set accepted {}
proc accept {channel address port} { lappend ::accepted $channel }
set server [socket -server accept -myaddr 127.0.0.1 0]
set socket [socket 127.0.0.1 [lindex [fconfigure $server -sockname] 2]]
puts -nonewline $socket {into a socket}
if {![catch {zlib push gzip [set squeezed [open squeezed w]]}]} {
    puts -nonewline $squeezed {to be squeezed}
}
puts -nonewline {in stdout}
puts -nonewline stderr .
while {![file exists go]} { after 10 }
close $kept(text)
set late [open late w]
puts -nonewline $late later
puts -nonewline stderr .
while 1 { after 1000 }
