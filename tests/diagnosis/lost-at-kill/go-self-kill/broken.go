package main

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
)

func main() {
	file, err := os.Create("journal.txt")
	if err != nil {
		panic(err)
	}
	journal := bufio.NewWriter(file)
	balance := 100
	for step := 1; step < 30; step++ {
		balance -= step
		fmt.Fprintf(journal, "step %d: balance %d\n", step, balance)
		if balance < 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	journal.Flush()
}
