puts -nonewline "building "
flush stdout
exec sleep 1.4 ;# in place of a compiler
