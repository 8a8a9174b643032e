package proxy

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"sync"
)

// nameNetwork contains the addresses of names. All of them are local in every network namespace, and
// programs that use loopback addresses themselves use those at its start.
var nameNetwork = netip.PrefixFrom(netip.AddrFrom4([4]byte{127, 64}), 10)

// maxNames is the maximum number of names with an address.
const maxNames = 4096

// nameTable assigns addresses to names. An address never changes its name. Names usually have the same
// address in each proxy, so that a program that remembers addresses longer connects to the right host.
type nameTable struct {
	mu     sync.Mutex // guards the fields below
	byName map[string]netip.Addr
	byAddr map[netip.Addr]string
}

// address returns the address of a name. It returns false if there are too many names.
func (t *nameTable) address(name string) (netip.Addr, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if addr, ok := t.byName[name]; ok {
		return addr, true
	}
	if len(t.byName) >= maxNames {
		return netip.Addr{}, false
	}
	if t.byName == nil {
		t.byName, t.byAddr = map[string]netip.Addr{}, map[netip.Addr]string{}
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name))
	for n := hash.Sum32(); ; n++ {
		addr := nameAddress(n)
		if _, used := t.byAddr[addr]; !used {
			t.byName[name], t.byAddr[addr] = addr, name
			return addr, true
		}
	}
}

// nameAddress returns an address of nameNetwork for the last bits of n.
func nameAddress(n uint32) netip.Addr {
	start := nameNetwork.Addr().As4()
	mask := uint32(1)<<(32-nameNetwork.Bits()) - 1
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(start[:])|n&mask)
	return netip.AddrFrom4(b)
}

// name returns the name of an address, or "".
func (t *nameTable) name(addr netip.Addr) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byAddr[addr]
}
