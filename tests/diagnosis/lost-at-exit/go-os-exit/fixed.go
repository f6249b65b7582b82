package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	bad := 0
	for i := 1; i <= 200; i++ {
		if i*i%61 == 5 {
			fmt.Fprintf(out, "record %d is bad\n", i)
			bad++
		}
	}
	fmt.Fprintf(out, "%d of 200 records are bad\n", bad)
	if bad > 0 {
		out.Flush()
		os.Exit(1)
	}
}
