traced bytes "$PROGRAM" >file
seen "writes of the kernel" "$(counted "$(calls bytes 1)" write)"
seen "bytes in the file" "$(bytes file)"
