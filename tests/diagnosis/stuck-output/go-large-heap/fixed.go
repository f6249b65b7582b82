package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	var cache [][]byte
	for i := 1; i <= 12; i++ {
		for j := 0; j < 40; j++ {
			entry := make([]byte, 100<<10)
			for k := range entry {
				entry[k] = byte(i + j + k)
			}
			cache = append(cache, entry)
		}
		fmt.Fprintf(out, "%d entries in the cache\n", len(cache))
		out.Flush()
		time.Sleep(160 * time.Millisecond)
	}
}
