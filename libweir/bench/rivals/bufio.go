// bufio.go: Go's bufio and fmt, with the same arguments and output as frame.c.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
)

var names = [8]string{"pressure", "temperature", "humidity", "wind", "battery", "rain", "light", "noise"}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	check(err)
	return n
}

// copyBytes copies byte by byte. Like copyLines it returns io.EOF on success.
func copyBytes(in *bufio.Reader, out *bufio.Writer) (units int64, err error) {
	for {
		c, err := in.ReadByte()
		if err != nil {
			return units, err
		}
		if err := out.WriteByte(c); err != nil {
			return units, err
		}
		units++
	}
}

func copyLines(in *bufio.Reader, out *bufio.Writer) (units int64, err error) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return units, err
		}
		if _, err := out.Write(line); err != nil {
			return units, err
		}
		units++
	}
}

func formatted(out *bufio.Writer, count int64) int64 {
	for i := int64(0); i < count; i++ {
		n := int(i*7919&0xfffff) - 500000
		_, err := fmt.Fprintf(out, "%s %d %f\n", names[i&7], n, float64(n)*0.00123456789)
		check(err)
	}
	return count
}

func run(job, in, out string, count int64) (units int64) {
	target, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE, 0o600)
	check(err)
	w := bufio.NewWriter(target)
	if job == "formatted" {
		units = formatted(w, count)
	} else {
		source, err := os.Open(in)
		check(err)
		r := bufio.NewReader(source)
		work := copyLines
		if job == "bytes" {
			work = copyBytes
		}
		if units, err = work(r, w); err != io.EOF {
			check(err)
		}
		check(source.Close())
	}
	check(w.Flush())
	check(target.Close())
	return
}

type instant struct {
	user, system int64
	at           time.Time
}

func now() instant {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return instant{usage.Utime.Nano(), usage.Stime.Nano(), time.Now()}
}

func main() {
	if len(os.Args) != 9 {
		fmt.Fprintln(os.Stderr, "usage: bufio JOB NAME IN OUT COUNT BUFFER_BYTES PASSES IDLE_THREADS")
		os.Exit(2)
	}
	var units int64
	start := now()
	for pass := number(os.Args[7]); pass > 0; pass-- {
		units += run(os.Args[1], os.Args[3], os.Args[4], number(os.Args[5]))
	}
	end := now()
	user, system := end.user-start.user, end.system-start.system
	// The kernel counts the sum exactly; it samples only the split into user and system time.
	fmt.Println(user, system, user+system, end.at.Sub(start.at).Nanoseconds(), units)
}
