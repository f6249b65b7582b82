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
	for i := 1; i <= 8; i++ {
		fmt.Fprintf(out, "load %d.%d\n", i%3, i*7%10)
		out.Flush()
		time.Sleep(200 * time.Millisecond)
	}
}
