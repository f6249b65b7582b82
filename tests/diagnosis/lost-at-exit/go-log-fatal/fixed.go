package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
)

func main() {
	file, err := os.Create("squares.txt")
	if err != nil {
		log.Fatal(err)
	}
	out := bufio.NewWriter(file)
	defer out.Flush()
	for i := 1; ; i++ {
		if i*i > 10000 {
			out.Flush()
			log.Fatalf("%d is too large", i)
		}
		fmt.Fprintf(out, "%d %d\n", i, i*i)
	}
}
