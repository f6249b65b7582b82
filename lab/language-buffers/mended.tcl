chan configure stdout -buffering none
puts -nonewline line
after 60000
