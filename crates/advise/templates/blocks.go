// Appends the lines of standard input to a file: @NAME@.
// Build: go build -o log log.go      Use: ./log FILE < records
// In a program of your own, use RecordLog with each record and its newline. Only one goroutine of one process may write
// the file.
%if mmap
// A kill leaves NULs at the end of the file: cut them off before the next use.
%else
// A write has whole blocks, which divide records: a kill can leave a part of one at the end of the file.
%end
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"syscall"
)

%if mmap
const windowBytes = 4 << 20 // the file grows by so many bytes; a multiple of the page size

type RecordLog struct {
	file   *os.File
	window []byte
	start  int64 // offset of the window
	end    int64 // offset of the end of the records
}

func OpenLog(path string) (*RecordLog, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	log := &RecordLog{file: file, end: end}
	return log, log.mapWindow()
}

// mapWindow moves the window to the end of the records.
func (log *RecordLog) mapWindow() error {
	if err := log.unmap(); err != nil {
		return err
	}
	log.start = log.end - log.end%int64(os.Getpagesize())
	fd := int(log.file.Fd())
	// With reserved blocks a full disk is an error here. Otherwise it is SIGBUS at a later store.
	err := syscall.EINTR
	for err == syscall.EINTR {
		err, _ = syscall.Fallocate(fd, 0, log.start, windowBytes).(syscall.Errno)
	}
	if err != 0 {
		return fmt.Errorf("fallocate: %w", err)
	}
	window, mapped := syscall.Mmap(fd, log.start, windowBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	log.window = window
	return mapped
}

func (log *RecordLog) unmap() error {
	if log.window == nil {
		return nil
	}
	window := log.window
	log.window = nil
	return syscall.Munmap(window)
}

// Record appends a record. Other processes see it at once; the kernel writes it back like a write(2).
func (log *RecordLog) Record(record []byte) error {
	for len(record) > 0 {
		if log.window == nil || log.end == log.start+windowBytes { // nil: the last call found no room
			if err := log.mapWindow(); err != nil {
				return err
			}
		}
		copied := copy(log.window[log.end-log.start:], record)
		log.end += int64(copied)
		record = record[copied:]
	}
	return nil
}

// Close cuts off what was reserved. Call it also after an error.
func (log *RecordLog) Close() error {
	if err := log.unmap(); err != nil {
		return err
	}
	if err := log.file.Truncate(log.end); err != nil {
		return err
	}
	return log.file.Close()
}
%end
%if direct
const (
	align      = 4096 // no device has larger sectors
	blockBytes = @BUFFER@
)

type RecordLog struct {
	file  *os.File
	block []byte
	used  int
	start int64 // offset of the block; a multiple of align
}

func OpenLog(path string) (*RecordLog, error) {
	// Memory that begins at a page.
	block, err := syscall.Mmap(-1, 0, blockBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, err
	}
	cached, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	defer cached.Close()
	end, err := cached.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	// The first block begins with the bytes after the last aligned offset.
	used := int(end % align)
	start := end - int64(used)
	if used > 0 {
		if _, err := cached.ReadAt(block[:used], start); err != nil {
			return nil, err
		}
	}
	// EINVAL: this file system has no O_DIRECT.
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_DIRECT, 0)
	if err != nil {
		return nil, err
	}
	return &RecordLog{file: file, block: block, used: used, start: start}, nil
}

// Record appends a record. It is in the file when its block is full.
func (log *RecordLog) Record(record []byte) error {
	for len(record) > 0 {
		copied := copy(log.block[log.used:], record)
		log.used += copied
		record = record[copied:]
		if log.used == blockBytes {
			if _, err := log.file.WriteAt(log.block, log.start); err != nil {
				return err
			}
			log.start += blockBytes
			log.used = 0
		}
	}
	return nil
}

func (log *RecordLog) Close() error {
	if log.used > 0 { // the last block is padded, and the padding cut off
		padded := (log.used + align - 1) / align * align
		clear(log.block[log.used:padded])
		if _, err := log.file.WriteAt(log.block[:padded], log.start); err != nil {
			return err
		}
		if err := log.file.Truncate(log.start + int64(log.used)); err != nil {
			return err
		}
	}
	return log.file.Close()
}
%end

func copyLines(log *RecordLog) error {
	input := bufio.NewReaderSize(os.Stdin, 65536)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 0 {
			if err := log.Record(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func run(path string) error {
	log, err := OpenLog(path)
	if err != nil {
		return err
	}
	copied := copyLines(log)
	if err := log.Close(); err != nil {
		return err
	}
	return copied
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: log FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
