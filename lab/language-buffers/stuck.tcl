puts line
after 60000
