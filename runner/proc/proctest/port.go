package proctest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Systems give connections, and servers that choose no port, ports from 32768 up.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

// givenPorts are the ports that FreePort returned. Two servers of one test once got the same.
var givenPorts sync.Map

// FreePort returns a port of the loopback interface that no server uses. It is for servers that start
// later, or that need their old port when they start again: nothing else gets this port by chance
// in the meantime. It returns no port twice.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if _, given := givenPorts.LoadOrStore(port, true); given {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// FreeAddress returns the loopback address of a [FreePort].
func FreeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", FreePort(t))
}
