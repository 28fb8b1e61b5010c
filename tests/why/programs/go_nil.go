// A method of a pointer that a lookup did not find. build: go build; class: go-panic
package main

import "fmt"

type account struct{ name string; balance int }

var accounts = []*account{{"ann", 3}, {"bob", 5}}

func find(name string) *account {
	for _, one := range accounts {
		if one.name == name {
			return one
		}
	}
	return nil // ROOT
}

func main() {
	fmt.Println(find("ann").balance)
	fmt.Println(find("eve").balance)
}
