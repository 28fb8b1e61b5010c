// Goroutines, channels, select, timers, mutexes, maps, panics, the garbage collector, a subprocess
// and a TCP connection on loopback.
package main

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"
)

type node struct {
	left, right *node
	key         int
}

func (n *node) insert(key int) *node {
	if n == nil {
		return &node{key: key}
	}
	if key < n.key {
		n.left = n.left.insert(key)
	} else {
		n.right = n.right.insert(key)
	}
	return n
}

func (n *node) depth() int {
	if n == nil {
		return 0
	}
	l, r := n.left.depth(), n.right.depth()
	if l > r {
		return l + 1
	}
	return r + 1
}

func main() {
	numbers, squares := make(chan int), make(chan int)
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := range numbers {
				squares <- n * n
			}
		}()
	}
	go func() {
		for i := 0; i < 3000; i++ {
			numbers <- i
		}
		close(numbers)
		group.Wait()
		close(squares)
	}()
	sum := 0
	for s := range squares {
		sum += s
	}
	fmt.Println("sum", sum)

	var tree *node
	x := uint32(1)
	for i := 0; i < 20000; i++ {
		x = x*1664525 + 1013904223
		tree = tree.insert(int(x >> 8))
		_ = make([]byte, 1000)
	}
	runtime.GC()
	fmt.Println("depth", tree.depth())

	select {
	case <-time.After(5 * time.Millisecond):
		fmt.Println("timer")
	case <-make(chan int):
	}
	func() {
		defer func() { fmt.Println("recovered", recover()) }()
		var list []int
		_ = list[len(list)+3]
	}()
	func() {
		defer func() { fmt.Println("recovered", recover() != nil) }()
		var none *node
		fmt.Println(none.key)
	}()
	output, err := exec.Command("echo", "child").Output()
	fmt.Print(string(output), err, "\n")
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	for i := 0; i < 20; i++ {
		c, _ := net.Dial("tcp", listener.Addr().String())
		fmt.Fprintf(c, "message %d", i)
		c.(*net.TCPConn).CloseWrite()
		back, _ := io.ReadAll(c)
		if string(back) != fmt.Sprintf("message %d", i) {
			fmt.Println("bad echo", string(back))
		}
	}
	words := strings.Fields("the quick brown fox jumps over the lazy dog")
	sort.Strings(words)
	fmt.Println(words)
	go func() { // spins without a call: needs asynchronous preemption by signals
		for i := 0; ; i++ {
		}
	}()
	runtime.GC()
	fmt.Println("done")
}
