// A map that several goroutines fill, each its own; given an argument, all write one field.
package main

import (
	"fmt"
	"os"
	"sync"
)

type table struct {
	sync.Mutex
	words map[string]int
	hits  int
}

func main() {
	shared := &table{words: map[string]int{}}
	var group sync.WaitGroup
	for _, word := range []string{"a", "b", "c", "d"} {
		group.Add(1)
		go func(word string) {
			defer group.Done()
			for i := 0; i < 20; i++ {
				shared.Lock()
				shared.words[word]++
				shared.Unlock()
				if len(os.Args) > 1 {
					shared.hits++
				}
			}
		}(word)
	}
	group.Wait()
	fmt.Println(len(shared.words), shared.words["c"])
}
