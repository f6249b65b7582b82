package main

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
	"time"
)

func main() {
	file, err := os.Create("records.txt")
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriter(file)
	for i := 1; i <= 50; i++ {
		fmt.Fprintf(out, "record %d\n", i)
	}
	out.Flush()
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	time.Sleep(5 * time.Second)
	out.Flush()
}
