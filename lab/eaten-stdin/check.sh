printf 'host%s\n' 1 2 3 4 5 >hosts
traced loop "$PROGRAM" >visited
seen "hosts visited of 5" "$(counted "$(wc -l <visited)" host)"
