// As numbers.c, through a bufio.Writer: prints numbered lines, with pauses if the second argument is not 0, until it is
// killed. The shared file that the last but one argument names holds the number of complete lines. With a further argument
// before them other goroutines compute, allocate and collect garbage.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func disturb() {
	for kept := []string{}; ; {
		kept = append(kept, strings.Repeat("garbage ", 1+len(kept)*100))
		if len(kept) > 100 {
			kept = nil
			runtime.Gosched()
		}
	}
}

func main() {
	file, err := os.OpenFile(os.Args[len(os.Args)-2], os.O_RDWR, 0)
	check(err)
	memory, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check(err)
	complete := (*uint64)(unsafe.Pointer(&memory[0]))
	every, err := strconv.ParseUint(os.Args[len(os.Args)-1], 10, 64)
	check(err)
	if len(os.Args) > 3 {
		for i := 0; i < 3; i++ {
			go disturb()
		}
	}
	lines := make(chan bool)
	go func() {
		out := bufio.NewWriter(os.Stdout)
		for number := uint64(0); ; number++ {
			switch {
			case number%97 == 0:
				fmt.Fprintf(out, "%d %s\n", number, strings.Repeat("x", 1500))
			case number%3 > 0:
				fmt.Fprintf(out, "%d a line that ends here\n", number)
			default:
				for _, char := range strconv.FormatUint(number, 10) + " by its characters\n" {
					out.WriteByte(byte(char))
				}
			}
			atomic.StoreUint64(complete, number+1)
			if every > 0 && number%every == 0 {
				time.Sleep(200 * time.Microsecond)
			}
			if every > 0 && number%(37*every) == 0 {
				check(out.Flush())
			}
		}
	}()
	<-lines
}
