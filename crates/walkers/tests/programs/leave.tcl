# Leaves bytes in Tcl's channels, writes a byte to stderr; when a file "end" exists, adds a tail to each
# and exits. Tcl cannot handle signals.
cd [lindex $argv 0]
foreach {name how} {full w append a both w+ latin w} { set kept($name) [open $name $how] }
fconfigure $kept(latin) -encoding iso8859-1
for {set i 0} {$i < 3000} {incr i} { puts -nonewline $kept(full) [format %c [expr {97 + $i % 26}]] }
puts -nonewline $kept(append) appended
puts -nonewline $kept(both) {read and written}
puts -nonewline $kept(latin) gr\u00fc\u00dfe
puts -nonewline {in stdout}
puts -nonewline stderr .
while {![file exists end]} { after 10 }
foreach name {full append both latin} {
    puts $kept($name) { tail}
    close $kept($name)
}
puts { tail}
