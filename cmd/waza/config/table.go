package config

import (
	"net"
	"strings"

	"waza/rpc/gateway/door"
)

// Door is a door as its configuration describes it.
type Door struct {
	// Name of the door, which is that of its block.
	Name string
	// Config is nil for a door that this version does not have.
	Config *door.Config
	// Secret says what clients must show; empty for nothing.
	Secret string
}

// Doors are all doors, open or not.
func (c *Config) Doors() []Door {
	return []Door{
		{Name: "agents", Config: &c.Agents.Config, Secret: c.agentSecret()},
		{Name: "jobs", Config: &c.Jobs.Config, Secret: "token"},
		{Name: "browser"},
		{Name: "router"},
	}
}

func (c *Config) agentSecret() string {
	if c.Key != "" || c.Agents.KeysFile != "" {
		return "key"
	}
	return ""
}

// Open reports whether the door has an address.
func (d Door) Open() bool { return d.Config != nil && !d.Config.IsOff() }

// TLS reports whether connections are encrypted.
func (d Door) TLS() bool { return d.Config != nil && d.Config.TLSCert != "" }

// Local reports whether only this machine reaches the address.
func (d Door) Local() bool {
	host, _, err := net.SplitHostPort(d.Config.Listen)
	ip := net.ParseIP(host)
	return err == nil && (host == "" || strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback())
}

// URL is where clients connect.
func (d Door) URL() string {
	scheme := "ws://"
	if d.TLS() {
		scheme = "wss://"
	}
	if strings.HasPrefix(d.Config.Listen, ":") {
		scheme += "localhost"
	}
	return scheme + d.Config.Listen
}

// Clients says in words who may connect.
func (d Door) Clients() string {
	where := "every program of this machine"
	if !d.Local() {
		where = "every machine that reaches it"
	}
	if d.Secret != "" {
		return where + " that shows the " + d.Secret
	}
	return where
}
