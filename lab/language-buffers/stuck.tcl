puts -nonewline line
after 60000
