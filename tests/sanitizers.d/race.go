// Goroutines that count: with a lock, or, given an argument, without.
package main

import (
	"fmt"
	"os"
	"sync"
)

func main() {
	var group sync.WaitGroup
	var lock sync.Mutex
	total := 0
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() {
			for j := 0; j < 100; j++ {
				if len(os.Args) == 1 {
					lock.Lock()
				}
				total++
				if len(os.Args) == 1 {
					lock.Unlock()
				}
			}
			group.Done()
		}()
	}
	group.Wait()
	fmt.Println(total <= 400)
}
