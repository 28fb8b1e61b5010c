// An index that is one too large. build: go build; class: go-panic
package main

import "fmt"

func last(values []int) int {
	at := len(values) // ROOT
	return values[at]
}

func main() {
	fmt.Println(last([]int{4, 5, 6}))
}
