package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func main() {
	file, err := os.OpenFile("worker.log", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriter(file)
	for job := 1; ; job++ {
		fmt.Fprintf(out, "job %d finished\n", job)
		out.Flush()
		time.Sleep(20 * time.Millisecond)
	}
}
