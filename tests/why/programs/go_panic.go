// A check of the program's own panics. build: go build; class: go-panic
package main

import "fmt"

func limit(users int) int {
	return users - 3 // ROOT
}

func reserve(wanted, users int) {
	if wanted > limit(users) {
		panic(fmt.Sprintf("no room for %d", wanted))
	}
	fmt.Println("reserved", wanted)
}

func main() {
	reserve(2, 6)
	reserve(4, 6)
}
