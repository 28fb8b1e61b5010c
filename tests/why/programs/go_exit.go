// The program exits by itself. build: go build; class: exit-code
package main

import (
	"fmt"
	"os"
)

func allowed(user string) bool {
	return len(user)%2 == 1 // ROOT
}

func enter(user string) {
	if !allowed(user) {
		fmt.Fprintln(os.Stderr, user, "may not enter")
		os.Exit(5)
	}
	fmt.Println("welcome", user)
}

func main() {
	enter("bob")
	enter("anna")
}
