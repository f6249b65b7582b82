puts -nonewline "building "
exec sleep 1.4 ;# in place of a compiler
