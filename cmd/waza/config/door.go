package config

import (
	"net"
	"strings"

	"waza/rpc/gateway/door"
)

// Door is a door with its configuration.
type Door struct {
	// Name is the name of the door, of its block and of its flag.
	Name string
	// Usage describes the flag, with `ADDR` for its value.
	Usage string
	// Config is nil for a door that this version does not implement.
	Config *door.Config
	// Path is the path of the URL for clients; empty for any.
	Path string
	// Secret describes what clients must present; empty for nothing.
	Secret string
	// LocalOnly restricts the door to this machine, because clients present no secret.
	LocalOnly bool
}

func (c *Config) agentSecret() string {
	if c.Key != "" || c.Agents.KeysFile != "" {
		return "key"
	}
	return ""
}

// usesModel reports whether a door that asks the model is open.
func (c *Config) usesModel() bool { return !c.Browser.IsOff() || !c.Router.IsOff() }

// Open reports whether the door has an address.
func (d Door) Open() bool { return d.Config != nil && !d.Config.IsOff() }

// TLS reports whether connections are encrypted.
func (d Door) TLS() bool { return d.Config != nil && d.Config.TLSCert != "" }

// Local reports whether only this machine can reach the address.
func (d Door) Local() bool {
	host, _, err := net.SplitHostPort(d.Config.Listen)
	ip := net.ParseIP(host)
	return err == nil && (host == "" || strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback())
}

// URL returns the URL that clients connect to.
func (d Door) URL() string {
	scheme := "ws://"
	if d.TLS() {
		scheme = "wss://"
	}
	if strings.HasPrefix(d.Config.Listen, ":") {
		scheme += "localhost"
	}
	return scheme + d.Config.Listen + d.Path
}

// Clients describes who can connect.
func (d Door) Clients() string {
	where := "every program on this machine"
	if !d.Local() {
		where = "every machine that can reach it"
	}
	if d.Secret != "" {
		return where + " that presents the " + d.Secret
	}
	return where
}
