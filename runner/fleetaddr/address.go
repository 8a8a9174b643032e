// Package fleetaddr parses fleet addresses. An address names the NATS servers that carry the
// trials of a run to workers, and the team. Call [Parse], which uses neither files nor the
// network; [Address.Check] checks the files.
package fleetaddr

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The defaults of an address.
const (
	DefaultTeam     = "waza"
	DefaultLost     = 15 * time.Second
	DefaultWait     = 10 * time.Minute
	DefaultReplicas = 1
)

// hidden replaces passwords and tokens in the text form of an address.
const hidden = "xxxxx"

// An Address describes a fleet: the servers, the login, the team and the handling of its orders.
// [Parse] returns it; its fields are for reading.
type Address struct {
	// Embedded means that the server runs inside waza processes of this user on this machine.
	// Then Servers, the login and the TLS files are empty.
	Embedded bool
	// Servers are the URLs of the servers, each with scheme and port and without
	// user and password.
	Servers []string
	// User and Password, or Token, are the login in the URL.
	User, Password, Token string
	// Team separates the fleets of several teams on one server. It has 1 to 32 of a-z, 0-9, -
	// and _.
	Team string
	// Creds is a file with a user's JWT and seed, in the format of the nsc program. NKey is a
	// file with the seed of a user's NKey.
	Creds, NKey string
	// CA is a PEM file with the certificates that sign those of the servers; "" means the
	// system's trusted certificates.
	CA string
	// Cert and Key are the PEM files of the client's certificate.
	Cert, Key string
	// Sign is a file with the seed that signs orders, for owners of runs.
	Sign string
	// Labels are the labels that workers need to get orders, sorted, without duplicates.
	Labels []string
	// Lost is how long a worker can be silent before it counts as lost and other workers get its
	// orders, from 1 s to 1 h.
	Lost time.Duration
	// Wait is how long an order waits for the first worker that can do it before it fails, from
	// 1 s to 168 h.
	Wait time.Duration
	// Replicas is the number of servers of a cluster that store each message: 1, 3 or 5.
	Replicas int
	// Slots is the number of trials that the process with the run of an embedded fleet does
	// itself. -1 means the number of workers of the suite, 0 means none.
	Slots int
}

// String returns the address in a form that Parse accepts. It omits default values, and contains
// "xxxxx" in place of passwords and tokens.
func (a Address) String() string {
	var b strings.Builder
	if a.Embedded {
		b.WriteString("embedded")
	}
	for i, server := range a.Servers {
		if i > 0 {
			b.WriteByte(',')
		}
		scheme, host, _ := strings.Cut(server, "://")
		b.WriteString(scheme + "://" + a.hiddenLogin() + host)
	}
	separator := byte('?')
	for _, p := range parameters {
		if value := p.value(&a); value != "" {
			b.WriteByte(separator)
			b.WriteString(p.name + "=" + escape(value, "/:,@+~"))
			separator = '&'
		}
	}
	return b.String()
}

func (a *Address) hiddenLogin() string {
	switch {
	case a.Token != "":
		return hidden + "@"
	case a.User != "":
		return escape(a.User, "") + ":" + hidden + "@"
	}
	return ""
}

// In returns the address with absolute files. Paths that start with ~/ are below the user's home
// directory; other relative paths are below dir, which must be absolute.
func (a Address) In(dir string) Address {
	for _, file := range a.files() {
		switch path := *file.path; {
		case path == "" || filepath.IsAbs(path):
		case strings.HasPrefix(path, "~/"):
			if home, err := os.UserHomeDir(); err == nil {
				*file.path = filepath.Join(home, path[2:])
			}
		default:
			*file.path = filepath.Join(dir, path)
		}
	}
	return a
}

// Remote reports whether a server is outside this machine: whether its host is neither localhost
// nor a loopback address.
func (a Address) Remote() bool {
	return slices.ContainsFunc(a.Servers, func(server string) bool {
		host := hostname(server)
		return host != "localhost" && host != "[::1]" && !strings.HasPrefix(host, "127.")
	})
}

// Encrypted reports whether nobody can read the traffic on the way: whether all servers use TLS,
// or the server is embedded.
func (a Address) Encrypted() bool {
	if a.CA != "" || a.Cert != "" {
		return true
	}
	return !slices.ContainsFunc(a.Servers, func(server string) bool {
		return !strings.HasPrefix(server, "tls://") && !strings.HasPrefix(server, "wss://")
	})
}

// hostname returns the host of a server URL, without its port.
func hostname(server string) string {
	_, host, _ := strings.Cut(server, "://")
	return host[:max(0, strings.LastIndexByte(host, ':'))]
}

// A parameter is a parameter of an address, after the question mark.
type parameter struct {
	name string
	// servers and embedded are whether addresses of these types can have it.
	servers, embedded bool

	set   func(a *Address, value string) error
	value func(a *Address) string // returns "" for the default value
}

// parameters are all parameters, in the order of the documentation.
var parameters = []parameter{
	{"team", true, true, (*Address).setTeam, func(a *Address) string { return omitDefault(a.Team, DefaultTeam) }},
	fileParameter("creds", func(a *Address) *string { return &a.Creds }),
	fileParameter("nkey", func(a *Address) *string { return &a.NKey }),
	fileParameter("ca", func(a *Address) *string { return &a.CA }),
	fileParameter("cert", func(a *Address) *string { return &a.Cert }),
	fileParameter("key", func(a *Address) *string { return &a.Key }),
	allowEmbedded(fileParameter("sign", func(a *Address) *string { return &a.Sign })),
	{"labels", true, true, (*Address).setLabels, func(a *Address) string { return strings.Join(a.Labels, ",") }},
	{"lost", true, true,
		durationSetter("lost", time.Second, time.Hour, func(a *Address) *time.Duration { return &a.Lost }),
		func(a *Address) string { return omitDefault(a.Lost.String(), DefaultLost.String()) }},
	{"wait", true, true,
		durationSetter("wait", time.Second, 168*time.Hour, func(a *Address) *time.Duration { return &a.Wait }),
		func(a *Address) string { return omitDefault(a.Wait.String(), DefaultWait.String()) }},
	{"replicas", true, false, (*Address).setReplicas,
		func(a *Address) string { return omitDefault(strconv.Itoa(a.Replicas), strconv.Itoa(DefaultReplicas)) }},
	{"slots", false, true, (*Address).setSlots, func(a *Address) string { return omitDefault(strconv.Itoa(a.Slots), "-1") }},
}

func omitDefault(value, byDefault string) string {
	if value == byDefault {
		return ""
	}
	return value
}
