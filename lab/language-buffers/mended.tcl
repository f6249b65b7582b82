chan configure stdout -buffering line
puts line
after 60000
