// As restless.c, through bufio.Writer: writes output that only the seed determines, at a changing speed. The first
// argument is the mode: p plain, w with direct writes, g beside garbage collections, r with ReadFrom, s seeks, 2 two
// Writers, t goroutines, m a Writer on a stack that moves, d drops many Writers, x resets one Writer, e executes itself;
// the second the seed, the third the number of lines, the fourth a file for mode s.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type random uint64

func (r *random) draw(below uint64) uint64 {
	*r = *r*6364136223846793005 + 1442695040888963407
	return uint64(*r>>33) % below
}

// The kind of pause does not affect the output.
func (r *random) idle(below uint64) {
	pause := time.Duration(r.draw(below)) * time.Microsecond
	compute := func(pause time.Duration) {
		for end := time.Now().Add(pause); time.Now().Before(end); {
		}
	}
	switch pause.Microseconds() % 4 {
	case 0:
		time.Sleep(pause)
	case 1:
		compute(pause)
	case 2:
		compute(pause / 2)
		time.Sleep(pause / 2)
	}
}

func line(r *random, to *bufio.Writer, number uint64) {
	length := int(r.draw(60))
	switch r.draw(5) {
	case 0:
		fmt.Fprintf(to, "%d %s\n", number, strings.Repeat("7", length))
	case 1:
		for i := 0; i < length; i++ {
			to.WriteByte('a' + byte(r.draw(26)))
		}
		to.WriteByte('\n')
	case 2:
		to.WriteString(strings.Repeat("z", length))
		to.WriteRune('\n')
	case 3:
		if r.draw(8) == 0 {
			length = 1000 + 140*length
		}
		to.Write(bytes.Repeat([]byte("w"), length))
		to.WriteByte('\n')
	default:
		to.WriteString("the quick brown fox\n")
	}
}

// Returns a file of its own over standard output's description.
func out() *os.File {
	fd, err := syscall.Dup(1)
	check(err)
	return os.NewFile(uintptr(fd), "out")
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func size(r *random) int { return []int{8192, 1024, 256, 4096, 65536}[r.draw(5)] }

func plain(r *random, to *bufio.Writer, file *os.File, lines uint64, mode string) {
	for number := uint64(0); number < lines; number++ {
		line(r, to, number)
		if r.draw(12) == 0 {
			r.idle(6000)
		}
		if r.draw(40) == 0 {
			check(to.Flush())
		}
		if mode == "w" && r.draw(30) == 0 {
			check(to.Flush())
			file.WriteString("without a buffer\n")
		}
		if mode == "r" && r.draw(30) == 0 {
			to.ReadFrom(strings.NewReader(strings.Repeat("read ", int(r.draw(2000))) + "\n"))
		}
	}
}

// Makes garbage of the sizes of buffers, and collects it.
func litter() {
	for kept := [][]byte{}; ; {
		for size := 16; size < 100000; size *= 2 {
			kept = append(kept, bytes.Repeat([]byte("litter "), size/7))
		}
		if len(kept) > 200 {
			kept = nil
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	}
}

func seek(r *random, to *bufio.Writer, path string, lines uint64) {
	file, err := os.Create(path)
	check(err)
	buffered := bufio.NewWriterSize(file, size(r))
	for number := uint64(0); number < lines; number++ {
		line(r, buffered, number)
		if r.draw(8) == 0 {
			check(buffered.Flush())
			at, err := file.Seek(-int64(r.draw(2)), io.SeekCurrent)
			check(err)
			fmt.Fprintf(to, "at %d\n", at)
		}
		if r.draw(4) == 0 {
			r.idle(3000)
		}
	}
	check(buffered.Flush())
	text, err := os.ReadFile(path)
	check(err)
	to.Write(text)
}

func two(r *random, first *bufio.Writer, lines uint64) {
	second := bufio.NewWriterSize(out(), 512)
	for number := uint64(0); number < lines; number++ {
		line(r, first, number)
		if r.draw(5) == 0 {
			r.idle(4000)
			first.Flush()
			line(r, second, number)
			r.idle(4000)
			second.Flush()
		}
	}
}

func goroutines(lines uint64) {
	to, lock := bufio.NewWriter(out()), sync.Mutex{}
	print := func() {
		for number := uint64(0); number < lines; number++ {
			lock.Lock()
			to.WriteString("goroutine\n")
			lock.Unlock()
			if number%16 == 0 {
				time.Sleep(500 * time.Microsecond)
			}
		}
	}
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() { print(); all.Done() }()
	}
	all.Wait()
	to.Flush()
}

// Uses more stack at each call, so the stack and a Writer on it move.
func deep(r *random, to *bufio.Writer, depth uint64) byte {
	var room [600]byte
	room[depth] = byte(depth)
	if depth > 0 {
		return deep(r, to, depth-1) + room[depth]
	}
	to.WriteString("in the depth\n")
	r.idle(4000)
	return room[0]
}

func moves(r *random, lines uint64) {
	for number := uint64(0); number < lines; number++ {
		var done sync.WaitGroup
		done.Add(1)
		go func() {
			to := bufio.NewWriterSize(os.Stdout, 512)
			for each := uint64(0); each < 3; each++ {
				to.WriteString("before " + strconv.FormatUint(number, 10) + "\n")
				r.idle(3000)
				deep(r, to, 10+r.draw(100))
			}
			to.Flush()
			done.Done()
		}()
		done.Wait()
	}
}

func dropped(r *random, lines uint64) {
	for number := uint64(0); number < lines; number++ {
		file := out()
		one := bufio.NewWriterSize(file, size(r))
		for each := r.draw(4); each > 0; each-- {
			line(r, one, number)
			r.idle(4000)
		}
		one.Flush()
		r.idle(2000)
		if r.draw(2) == 0 {
			file.WriteString("without a buffer\n")
		}
		file.Close()
	}
}

func resets(r *random, lines uint64) {
	one := bufio.NewWriterSize(nil, size(r))
	for number := uint64(0); number < lines; number++ {
		file := out()
		one.Reset(file)
		for each := r.draw(4); each > 0; each-- {
			line(r, one, number)
			r.idle(4000)
		}
		one.Flush()
		file.Close()
		one.Reset(io.Discard)
		one.WriteString("discarded\n")
		r.idle(2000)
	}
}

func main() {
	mode := os.Args[1]
	seed, _ := strconv.ParseUint(os.Args[2], 10, 64)
	lines, _ := strconv.ParseUint(os.Args[3], 10, 64)
	r, file := random(seed), out()
	to := bufio.NewWriterSize(file, size(&r))
	switch mode {
	case "g":
		go litter()
		plain(&r, to, file, lines, mode)
	case "s":
		seek(&r, to, os.Args[4], lines)
	case "2":
		two(&r, to, lines)
	case "t":
		goroutines(lines)
	case "m":
		moves(&r, lines)
	case "d":
		dropped(&r, lines)
	case "x":
		go litter()
		resets(&r, lines)
	case "e":
		plain(&r, to, file, lines, mode)
		to.Flush()
		check(syscall.Exec("/proc/self/exe", append([]string{"restless", "p"}, os.Args[2:]...), os.Environ()))
	default:
		plain(&r, to, file, lines, mode)
	}
	to.Flush()
}
