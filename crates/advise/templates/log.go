// Appends the lines of standard input to a file: @NAME@.
// Build: go build -o log log.go      Use: ./log FILE < records
// In a program of your own, use RecordLog with each record and its newline.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
%if synced
	"path/filepath"
%end
%if threads
	"sync"
%end
%if dsync|sync_record|group|period
	"syscall"
%end
%if timer
	"time"
%end
)

%if gather
const bufferBytes = @BUFFER@

%end
type RecordLog struct {
	file *os.File
%if gather
	pending []byte
%end
%if threads
	lock sync.Mutex
%end
%if timer
	dirty   bool
	err     error
	stop    chan struct{}
	stopped chan struct{}
%end
%if group
	synced           *sync.Cond
	written, durable uint64
	syncing          bool
	err              error
%end
}

func OpenLog(path string) (*RecordLog, error) {
%if dsync
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_DSYNC, 0o666)
%else
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
%end
	if err != nil {
		return nil, err
	}
%if synced
	if err := file.Sync(); err != nil {
		return nil, err
	}
	// Without it, a power cut can lose the name of a new file.
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	if err := directory.Sync(); err != nil {
		return nil, err
	}
%end
%if timer
	log := &RecordLog{file: file, stop: make(chan struct{}), stopped: make(chan struct{})}
	go log.runTimer()
	return log, nil
%else
%if group
	log := &RecordLog{file: file}
	log.synced = sync.NewCond(&log.lock)
	return log, nil
%else
	return &RecordLog{file: file}, nil
%end
%end
}

%if group
// Record returns when the record is on the device. One goroutine syncs for all that have written meanwhile.
func (log *RecordLog) Record(record []byte) error {
	log.lock.Lock()
	defer log.lock.Unlock()
	if log.err != nil {
		return log.err
	}
	if _, err := log.file.Write(record); err != nil {
		return err
	}
	log.written++
	mine := log.written
	for log.durable < mine {
		if log.err != nil {
			return log.err
		}
		if log.syncing {
			log.synced.Wait()
			continue
		}
		covered := log.written
		log.syncing = true
		log.lock.Unlock()
		err := syscall.Fdatasync(int(log.file.Fd()))
		log.lock.Lock()
		log.syncing = false
		if err != nil {
			log.err = err
		} else {
			log.durable = covered
		}
		log.synced.Broadcast()
	}
	return nil
}
%else
func (log *RecordLog) Record(record []byte) error {
%if threads
	log.lock.Lock()
	defer log.lock.Unlock()
%end
%if timer
	if log.err != nil {
		return log.err
	}
	log.dirty = true
%end
%if gather
	if len(log.pending)+len(record) > bufferBytes {
		if err := log.flush(); err != nil { // a write has whole records only
			return err
		}
	}
	log.pending = append(log.pending, record...)
	return nil
%else
	if _, err := log.file.Write(record); err != nil { // writes all or returns an error
		return err
	}
%if sync_record
	return syscall.Fdatasync(int(log.file.Fd()))
%else
	return nil
%end
%end
}
%end

%if gather
func (log *RecordLog) flush() error {
	_, err := log.file.Write(log.pending)
	log.pending = log.pending[:0]
	return err
}

%end
%if timer
// tick writes what is pending, and with a sync forces it to the device.
func (log *RecordLog) tick() error {
	log.lock.Lock()
	dirty := log.dirty
	log.dirty = false
%if gather
	if err := log.flush(); err != nil {
		log.lock.Unlock()
		return err
	}
%end
	log.lock.Unlock()
%if period
	if dirty {
		return syscall.Fdatasync(int(log.file.Fd())) // without the lock: records go on meanwhile
	}
%else
	_ = dirty
%end
	return nil
}

func (log *RecordLog) runTimer() {
	ticker := time.NewTicker(@PERIOD_MS@ * time.Millisecond)
	defer ticker.Stop()
	defer close(log.stopped)
	for {
		select {
		case <-log.stop:
			return
		case <-ticker.C:
			if err := log.tick(); err != nil {
				log.lock.Lock()
				log.err = err // the next call returns it
				log.lock.Unlock()
			}
		}
	}
}

%end
func (log *RecordLog) Close() error {
%if timer
	close(log.stop)
	<-log.stopped
	if log.err != nil {
		return log.err
	}
	if err := log.tick(); err != nil {
		return err
	}
%else
%if gather
	if err := log.flush(); err != nil {
		return err
	}
%end
%end
	return log.file.Close()
}

func run(path string) error {
	log, err := OpenLog(path)
	if err != nil {
		return err
	}
	input := bufio.NewReaderSize(os.Stdin, 65536)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 0 {
			if err := log.Record(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return log.Close()
		}
		if err != nil {
			return err
		}
	}
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
