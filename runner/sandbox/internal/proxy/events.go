package proxy

import (
	"fmt"
	"net"
	"strconv"
	"sync"
)

// A Protocol is the way in which a program asks for a connection.
type Protocol string

// The protocols.
const (
	HTTP    Protocol = "http"    // a request with an absolute URL
	Connect Protocol = "connect" // the CONNECT method of HTTP
	SOCKS5  Protocol = "socks5"
	DNS     Protocol = "dns"    // a question, which is about no port
	Direct  Protocol = "direct" // a connection without a proxy protocol, see [Proxy.ServeDirect]
	Key     Protocol = "key"    // a request to a model API whose key is outside
)

// A Reason explains why a connection was refused.
type Reason string

// The reasons.
const (
	// NotAllowed means that no entry matches.
	NotAllowed Reason = "not_allowed"
	// NotPublic means that an entry allows the name, but all its addresses are loopback, private
	// or reserved ones that no entry names.
	NotPublic Reason = "not_public"
	// Invalid means that the destination is invalid.
	Invalid Reason = "invalid"
	// Unsupported means that the proxy does not have the command of SOCKS.
	Unsupported Reason = "unsupported"
	// Unauthorized means that a request to a model API does not have the placeholder of its key.
	Unauthorized Reason = "unauthorized"
	// TooMany means that too many connections are open.
	TooMany Reason = "too_many"
	// Omitted means that the proxy reports no further events.
	Omitted Reason = "omitted"
)

// sentence returns the reason as the end of a sentence.
func (r Reason) sentence() string {
	switch r {
	case NotAllowed:
		return "no network entry allows it"
	case NotPublic:
		return "its addresses are not public, and no network entry names one of them"
	case Invalid:
		return "the destination is invalid"
	case Unsupported:
		return "the command is not supported"
	case Unauthorized:
		return "the request does not have the placeholder of a key"
	case TooMany:
		return "too many connections are open"
	}
	return string(r)
}

// An Event is a refused connection or question.
type Event struct {
	Protocol Protocol `json:"protocol,omitempty"`
	// Host is a name or an address, without brackets. An invalid one is quoted and shortened.
	Host string `json:"host,omitempty"`
	// Port is 0 if it is not known.
	Port   uint16 `json:"port,omitempty"`
	Reason Reason `json:"reason"`
}

// String describes the event in one line.
func (e Event) String() string {
	if e.Reason == Omitted {
		return "further refused connections are not reported"
	}
	where := "a connection"
	switch {
	case e.Host != "" && e.Port != 0:
		where = net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
	case e.Host != "":
		where = e.Host
	}
	return fmt.Sprintf("%s (%s) was refused: %s", where, e.Protocol, e.Reason.sentence())
}

// refusal is the error of a refused connection.
type refusal struct{ Event }

func (r *refusal) Error() string { return r.String() }

// maxEvents is the number of reported events of a proxy.
const maxEvents = 256

// eventLog reports each host and port once.
type eventLog struct {
	mu     sync.Mutex // guards the fields below, and serializes the calls of report
	report func(Event)
	seen   map[destination]bool
}

type destination struct {
	host string
	port uint16
}

// start passes further events to report, as if none had been reported before.
func (l *eventLog) start(report func(Event)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report, l.seen = report, map[destination]bool{}
}

func (l *eventLog) add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := destination{e.Host, e.Port}
	switch n := len(l.seen); {
	case l.report == nil || l.seen[of] || n > maxEvents:
		return
	case n == maxEvents:
		e = Event{Reason: Omitted}
	}
	l.seen[of] = true
	l.report(e)
}

// Report passes further events to onEvent, as Config.OnEvent does, and starts counting again. It is for
// programs that live longer than a trial. It returns when no call of the function before is running.
func (p *Proxy) Report(onEvent func(Event)) { p.events.start(onEvent) }
