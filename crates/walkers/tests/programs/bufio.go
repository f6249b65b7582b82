// Leaves known bytes in bufio's buffers, writes a byte to stderr, waits until the files "go" and
// "end" exist, and exits without a flush.
package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type record struct {
	number int
	out    bufio.Writer
}

var kept []*bufio.Writer

// With a second argument: 64 MiB of other objects.
var others []*[1024]byte

func create(name string) *os.File {
	file, err := os.Create(filepath.Join(os.Args[1], name))
	if err != nil {
		panic(err)
	}
	return file
}

func await(name string) {
	for {
		if _, err := os.Stat(filepath.Join(os.Args[1], name)); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// deep makes the stack grow, which moves all objects on it.
func deep(depth int, out *bufio.Writer) int {
	var room [512]byte
	room[depth%512] = 1
	if depth == 0 {
		out.WriteString("and after it moved")
		return int(room[1])
	}
	return deep(depth-1, out) + int(room[depth%512])
}

func main() {
	// Does not escape: it is on the goroutine's stack.
	out := bufio.NewWriter(os.Stdout)
	out.WriteString("in stdout, ")
	deep(200, out)
	heap := bufio.NewWriterSize(create("heap"), 100)
	for range 20 {
		heap.WriteString("flushed ")
	}
	heap.WriteString("in the heap")
	kept = append(kept, heap)
	inside := &record{number: 7}
	inside.out.Reset(create("inside"))
	inside.out.WriteString("in a struct")
	copied := new(record)
	copied.out = *bufio.NewWriter(create("copied"))
	copied.out.WriteString("in a copy")
	kept = append(kept, &copied.out)
	kept = append(kept, &inside.out)
	empty := bufio.NewWriter(create("empty"))
	empty.WriteString("all of it")
	empty.Flush()
	closed := create("closed")
	lost := bufio.NewWriter(closed)
	lost.WriteString("to nowhere")
	closed.Close()
	kept = append(kept, empty, lost)
	large := bufio.NewWriterSize(create("large"), 65536)
	large.WriteString(strings.Repeat("x", 300))
	kept = append(kept, large)

	if len(os.Args) > 2 {
		others = make([]*[1024]byte, 64<<10)
		for i := range others {
			others[i] = new([1024]byte)
			others[i][1] = 'x'
		}
	}
	input, _ := os.Open(filepath.Join(os.Args[1], "input"))
	reader := bufio.NewReader(input)
	reader.ReadString('\n')
	again, _ := os.Open(filepath.Join(os.Args[1], "input"))
	scanner := bufio.NewScanner(again)
	scanner.Scan()
	scanner.Scan()
	os.Stderr.WriteString(".")

	await("go")
	late := bufio.NewWriter(create("late"))
	late.WriteString("later")
	kept = append(kept, late)
	heap.WriteString(", more")
	os.Stderr.WriteString(".")
	await("end")
	out.Flush()
	reader.ReadString('\n')
	scanner.Scan()
}
