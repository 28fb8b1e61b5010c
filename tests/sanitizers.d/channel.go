// Values that go through a channel; given an argument, also past it.
package main

import (
	"fmt"
	"os"
)

func main() {
	values, done := make(chan int), make(chan bool)
	last := 0
	go func() {
		for i := 1; i <= 50; i++ {
			if len(os.Args) > 1 {
				last = i
			}
			values <- i
		}
		close(values)
		done <- true
	}()
	sum := 0
	for value := range values {
		sum += value
		if len(os.Args) > 1 && last > 100 {
			sum = 0
		}
	}
	<-done
	fmt.Println(sum)
}
