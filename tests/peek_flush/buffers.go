// buffers.go: as buffers.cc, through a bufio.Writer. `lines N` prints N numbered lines by two goroutines in turn, beside
// garbage collections, and sleeps now and then. `read` leaves bytes in the buffer, writes a byte to stderr, waits until
// stdin ends, and prints the rest; with a second argument it leaves that many bytes, in a buffer of 64 KiB. `inside`
// leaves a goroutine in ReadFrom. `created` leaves bytes for a file that os.Create opens for reading and writing.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func lines(count int) {
	to := bufio.NewWriter(os.Stdout)
	turn, done := make(chan int), make(chan bool)
	go func() {
		for kept := []string{}; ; time.Sleep(time.Millisecond) {
			if kept = append(kept, strings.Repeat("garbage ", 512)); len(kept) > 50 {
				kept = nil
				runtime.GC()
			}
		}
	}()
	for i := 0; i < 2; i++ {
		go func() {
			for number := range turn {
				if number == count {
					done <- true
					return
				}
				switch number % 3 {
				case 0:
					fmt.Fprintf(to, "line %d\n", number)
				case 1:
					to.WriteString("line " + strconv.Itoa(number))
					to.WriteByte('\n')
				default:
					to.ReadFrom(strings.NewReader(fmt.Sprintf("line %d\n", number)))
				}
				if number%200 == 0 {
					time.Sleep(200 * time.Microsecond)
				}
				turn <- number + 1
			}
		}()
	}
	turn <- 0
	<-done
	check(to.Flush())
}

func main() {
	how, number := os.Args[1], 0
	if len(os.Args) > 2 {
		number, _ = strconv.Atoi(os.Args[2])
	}
	if how == "lines" {
		lines(number)
		return
	}
	out := os.Stdout
	if how == "created" {
		file, err := os.Create("created")
		check(err)
		out = file
	}
	to := bufio.NewWriterSize(out, 65536)
	if number == 0 {
		fmt.Fprint(to, "one\ntwo\nthree")
	}
	for i := 0; i < number; i++ {
		to.WriteByte('a' + byte(i%26))
	}
	os.Stderr.WriteString(".")
	if how == "inside" {
		_, err := to.ReadFrom(os.Stdin)
		check(err)
	} else if n, _ := os.Stdin.Read(make([]byte, 1)); n != 0 {
		os.Exit(2)
	}
	fmt.Fprint(to, " end\n")
	check(to.Flush())
}
