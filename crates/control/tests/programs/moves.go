// Writes 480 lines to a file by a Writer that was copied or moved, and ends without a flush, or waits for
// a file and flushes. Arguments: the folder, and whether the Writer is a part of another object, on a stack that grows, or idle.
package main

import (
	"bufio"
	"os"
	"strconv"
	"syscall"
	"time"
)

const lines = 480

type logger struct {
	bufio.Writer
	name string
}

func line(number int) string {
	return strconv.Itoa(number) + " hello world, this is a line of a log\n"
}

func open() *os.File {
	file, err := os.Create(os.Args[1] + "/0")
	if err != nil {
		panic(err)
	}
	return file
}

// Uses some of the stack.
func deep(depth int) int {
	var room [256]byte
	room[depth%256] = 1
	if depth == 0 {
		return int(room[0])
	}
	return deep(depth-1) + int(room[depth%256])
}

func main() {
	if os.Args[2] == "part" {
		one := &logger{Writer: *bufio.NewWriter(open()), name: "0"}
		for number := 0; number < lines; number++ {
			one.WriteString(line(number))
		}
		os.Exit(1)
	}
	if os.Args[2] == "idle" {
		writer := bufio.NewWriter(open())
		for number := 0; number < lines; number++ {
			writer.WriteString(line(number))
		}
		for {
			if _, err := os.Stat(os.Args[1] + "/stop"); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		writer.WriteString(line(lines))
		writer.Flush()
		return
	}
	go func() {
		writer := bufio.NewWriter(open())
		for number := 0; number < lines; number++ {
			writer.WriteString(line(number))
			if number%50 == 0 {
				deep(10 * number)
				time.Sleep(time.Millisecond)
			}
		}
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}()
	time.Sleep(time.Minute)
}
