// As program.py, through bufio.Writers.
package main

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
	"time"
)

func main() {
	file, _ := os.Create("log")
	log, out := bufio.NewWriter(file), bufio.NewWriter(os.Stdout)
	for i := 0; i < 2; i++ {
		fmt.Fprintf(out, "out %d\n", i)
		fmt.Fprintf(log, "log %d\n", i)
	}
	ready, _ := os.Create("ready")
	ready.Close()
	if len(os.Args) > 1 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	time.Sleep(time.Minute)
	out.Flush()
	log.Flush()
}
