// Appends standard input to a file: @NAME@.
// Build: go build -o log log.go      Use: ./log FILE < SOURCE
// The target must not be open with os.O_APPEND, and only one process may write it: copy_file_range(2) refuses O_APPEND.
package main

import (
	"fmt"
	"io"
	"os"
)

func appendStdin(path string) error {
	target, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	if _, err := target.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	// Between two *os.File it calls copy_file_range(2) or splice(2), and read(2) and write(2) where these do not work.
	if _, err := io.Copy(target, os.Stdin); err != nil {
		return err
	}
	return target.Close()
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: log FILE")
		os.Exit(2)
	}
	if err := appendStdin(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
