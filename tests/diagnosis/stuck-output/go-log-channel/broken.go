package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func logger(messages <-chan string, done chan<- bool) {
	file, err := os.Create("service.log")
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriter(file)
	for message := range messages {
		fmt.Fprintln(out, message)
	}
	out.Flush()
	done <- true
}

func main() {
	messages, done := make(chan string), make(chan bool)
	go logger(messages, done)
	for i := 0; i < 5; i++ {
		messages <- fmt.Sprintf("request %d answered", i)
	}
	time.Sleep(1600 * time.Millisecond)
	close(messages)
	<-done
}
