package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/idna"

	"waza/eval/text"
)

// Rules are the destinations that programs can reach. The zero value allows none. They are
// immutable.
type Rules struct{ list []rule }

// rule is an entry of a suite's network list.
type rule struct {
	entry string
	// Either name or network is set. A name is in lower case and ASCII.
	name       string
	subdomains bool // the names below name, and not name itself
	network    netip.Prefix
	port       uint16 // 0 means every port
}

// ParseRules parses the entries of a network list, see the package comment. The error names the
// first invalid entry.
func ParseRules(entries []string) (Rules, error) {
	var rules Rules
	for _, entry := range entries {
		r, err := parseRule(entry)
		if err != nil {
			return Rules{}, fmt.Errorf("network entry %s: %w", quoted(entry), err)
		}
		rules.list = append(rules.list, r)
	}
	return rules, nil
}

// Empty reports whether the rules allow nothing.
func (r Rules) Empty() bool { return len(r.list) == 0 }

// With returns the rules with further entries.
func (r Rules) With(entries []string) (Rules, error) {
	more, err := ParseRules(entries)
	return r.And(more), err
}

// And returns the rules together with others.
func (r Rules) And(more Rules) Rules {
	return Rules{append(r.list[:len(r.list):len(r.list)], more.list...)}
}

// maxEntry is the maximum length in bytes of an entry: that of a name with a wildcard and a port.
const maxEntry = maxName + 8

func parseRule(entry string) (rule, error) {
	r := rule{entry: entry}
	switch {
	case entry == "":
		return r, errors.New("it is empty; write a host such as api.openai.com")
	case len(entry) > maxEntry:
		return r, fmt.Errorf("it has %d bytes, the maximum is %d", len(entry), maxEntry)
	case entry == "*":
		return r, errors.New("to allow every host, write network: open")
	case strings.Contains(entry, "://"):
		return r, errors.New("write a host without a scheme and a path, such as api.openai.com or api.openai.com:443")
	case strings.Contains(entry, "@"):
		return r, errors.New("write a host without a user")
	}
	host, port, err := splitEntry(entry)
	if err != nil {
		return r, err
	}
	r.port = port
	if network, ok, err := parseNetwork(host); ok || err != nil {
		r.network = network
		if err == nil && r.port == 0 && network.Bits() > 0 && network.Addr().IsLoopback() {
			err = errLoopbackPort
		}
		return r, err
	}
	name, wildcard := strings.CutPrefix(host, "*.")
	if strings.Contains(name, "*") {
		return r, errors.New("a wildcard must be the first label, such as *.example.com")
	}
	r.name, err = canonicalName(name)
	if err != nil {
		return r, err
	}
	if r.subdomains = wildcard; r.name == localhost && r.port == 0 && !wildcard {
		return r, errLoopbackPort
	}
	return r, nil
}

var errLoopbackPort = errors.New("add a port, such as localhost:11434, because every service of this machine listens there")

// splitEntry splits an entry into host and port. Brackets around the host are removed.
func splitEntry(entry string) (host string, port uint16, err error) {
	after := ""
	if inner, ok := strings.CutPrefix(entry, "["); ok {
		host, after, ok = strings.Cut(inner, "]")
		if !ok {
			return "", 0, errors.New("the closing bracket is missing")
		}
		if !strings.Contains(host, ":") {
			return "", 0, errors.New("only IPv6 addresses are in brackets")
		}
		if after == "" {
			return host, 0, nil
		}
		if after[0] != ':' {
			return "", 0, errors.New("write a colon and a port after the closing bracket, or nothing")
		}
		after = after[1:]
	} else if strings.Count(entry, ":") == 1 {
		host, after, _ = strings.Cut(entry, ":")
	} else {
		return entry, 0, nil // a name, an IPv4 address, or an IPv6 address without brackets
	}
	n, err := strconv.ParseUint(after, 10, 16)
	if err != nil || n == 0 || after[0] == '+' {
		return "", 0, fmt.Errorf("port %s must be a number from 1 to 65535", quoted(after))
	}
	return host, uint16(n), nil
}

// parseNetwork parses an address or a network. ok is false if the host is a name.
func parseNetwork(host string) (network netip.Prefix, ok bool, err error) {
	if strings.Contains(host, "/") {
		network, err = netip.ParsePrefix(host)
		if err != nil {
			return network, false, fmt.Errorf("%s is no network; write a host without a path, or a network such as 10.1.0.0/16", quoted(host))
		}
		if network != network.Masked() {
			return network, false, fmt.Errorf("the network %s has bits after its length; write %s", host, network.Masked())
		}
		if network.Addr().Is4In6() {
			return network, false, errors.New("write the network as IPv4")
		}
		return network, true, nil
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return network, false, nil
	}
	addr = addr.Unmap()
	switch {
	case addr.Zone() != "":
		return network, false, errors.New("write the address without a zone")
	case addr.IsUnspecified(), addr.IsMulticast():
		return network, false, fmt.Errorf("no connection to %s is possible", addr)
	}
	return netip.PrefixFrom(addr, addr.BitLen()), true, nil
}

const (
	localhost = "localhost"
	maxName   = 253 // bytes of a name in DNS
	maxLabel  = 63
)

// domains converts international names to ASCII. Underscores are permitted, as in DNS.
var domains = sync.OnceValue(func() *idna.Profile {
	return idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.StrictDomainName(false))
})

// canonicalName returns a name in the form in which names are compared: ASCII in lower case,
// without the dot at the end. Texts that some programs read as an IPv4 address, such as 127.1 or
// 0x7f000001, are no names.
func canonicalName(name string) (string, error) {
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > maxName {
		return "", fmt.Errorf("a host must have 1 to %d bytes", maxName)
	}
	if isASCII(name) {
		name = strings.ToLower(name)
	} else {
		ascii, err := domains().ToASCII(name)
		if err != nil || len(ascii) > maxName {
			return "", fmt.Errorf("%s is no valid international name", quoted(name))
		}
		name = ascii
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > maxLabel {
			return "", fmt.Errorf("%s has a label that is empty or longer than %d bytes", quoted(name), maxLabel)
		}
		if i := strings.IndexFunc(label, func(c rune) bool { return !isNameByte(c) }); i >= 0 {
			return "", fmt.Errorf("%s contains %s; names consist of letters, digits, hyphens, underscores and dots", quoted(name), quoted(label[i:i+1]))
		}
	}
	if isNumeric(labels[len(labels)-1]) {
		return "", fmt.Errorf("%s is neither a name nor an address; write all four numbers of an IPv4 address", quoted(name))
	}
	return name, nil
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(c rune) bool { return c >= 0x80 }) }

func isNameByte(c rune) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// isNumeric reports whether programs can read a label as a number, also an octal or a hexadecimal
// one.
func isNumeric(label string) bool {
	digits, isHex := strings.CutPrefix(label, "0x")
	return !strings.ContainsFunc(digits, func(c rune) bool {
		return !('0' <= c && c <= '9' || isHex && 'a' <= c && c <= 'f')
	})
}

// quoted returns a text of a stranger in a form that is safe to show.
func quoted(s string) string { return strconv.QuoteToASCII(text.Clip(s, maxQuoted)) }

// maxQuoted is the maximum number of bytes of a quoted text.
const maxQuoted = 100

// allowsName reports whether a rule allows a name, in the form of canonicalName. Port 0 means any
// port.
func (r Rules) allowsName(name string, port uint16) bool {
	return slices.ContainsFunc(r.list, func(of rule) bool {
		if of.name == "" || !of.covers(port) {
			return false
		}
		if of.subdomains {
			return len(name) > len(of.name)+1 && strings.HasSuffix(name, of.name) && name[len(name)-len(of.name)-1] == '.'
		}
		return name == of.name
	})
}

// allowsAddress reports whether a rule names an address or its network. Port 0 means any port.
func (r Rules) allowsAddress(addr netip.Addr, port uint16) bool {
	return slices.ContainsFunc(r.list, func(of rule) bool {
		return of.name == "" && of.covers(port) && of.network.Contains(addr)
	})
}

func (r rule) covers(port uint16) bool { return r.port == 0 || port == 0 || r.port == port }

// Allows reports whether a rule matches a host, which is a name or an address, and a port. A name
// that it allows can still have only addresses that are refused.
func (r Rules) Allows(host string, port uint16) bool {
	d, err := parseHost(host)
	if err != nil {
		return false
	}
	if d.addr.IsValid() {
		return r.allowsAddress(d.addr, port)
	}
	return r.allowsName(d.name, port)
}

// String returns the entries, separated by commas.
func (r Rules) String() string {
	entries := make([]string, len(r.list))
	for i, of := range r.list {
		entries[i] = of.entry
	}
	return strings.Join(entries, ", ")
}
