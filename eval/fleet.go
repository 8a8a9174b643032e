package eval

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
)

// Fleet is the fleet of a suite: the parts of an address, or the whole address as URL. The zero
// value means no fleet.
type Fleet struct {
	// Servers: nats://host:4222 (also tls, ws and wss), several separated by commas; or embedded, for
	// a server in the waza process. It can be a whole fleet address.
	URL string `yaml:"url" json:"url,omitempty" jsonschema:"required"`
	// Name of the team, which has its own fleet on the servers: 1 to 32 of a-z, 0-9, - and _; waza when absent.
	Team string `yaml:"team" json:"team,omitempty"`
	// Credentials file of a user, in the format of nsc. All files are relative to the suite.
	Creds string `yaml:"creds" json:"creds,omitempty"`
	// File with the seed of a user's NKey.
	NKey string `yaml:"nkey" json:"nkey,omitempty"`
	// PEM file with the certificates that sign those of the servers.
	CA string `yaml:"ca" json:"ca,omitempty"`
	// PEM file of waza's client certificate.
	Cert string `yaml:"cert" json:"cert,omitempty"`
	// PEM file of the certificate's key.
	Key string `yaml:"key" json:"key,omitempty"`
	// File with the seed that signs orders.
	Sign string `yaml:"sign" json:"sign,omitempty"`
	// Labels that workers need to get the orders. Workers set them with --labels.
	Labels []string `yaml:"labels" json:"labels,omitempty"`
	// How long a worker can be silent before it counts as lost, such as 15s.
	Lost string `yaml:"lost" json:"lost,omitempty"`
	// How long an order waits for the first worker that can do it, such as 10m.
	Wait string `yaml:"wait" json:"wait,omitempty"`
	// Number of servers of a cluster that store each message.
	Replicas int `yaml:"replicas" json:"replicas,omitempty" jsonschema:"enum=1,enum=3,enum=5"`
	// Number of trials that the process of an embedded fleet does itself; the number of workers of the suite when absent.
	Slots *int `yaml:"slots" json:"slots,omitempty" jsonschema:"minimum=0,maximum=1024"`
}

// DecodeShape decodes an address, or a map.
func (f *Fleet) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	switch n.Kind {
	case yaml.ScalarNode:
		f.URL = n.Value
	case yaml.MappingNode:
		d.Structure(n, f, nil)
	default:
		d.WrongType(n, "a fleet address or a map")
	}
}

// Address returns the address that the parts form. Its files are relative to the suite. It is ""
// for the zero value.
func (f *Fleet) Address() string {
	var b strings.Builder
	b.WriteString(f.URL)
	separator := byte('?')
	if strings.ContainsRune(f.URL, '?') {
		separator = '&'
	}
	part := func(name, value string) {
		if value != "" {
			b.WriteByte(separator)
			b.WriteString(name + "=" + escapeParameter(value))
			separator = '&'
		}
	}
	for _, p := range []struct{ name, value string }{
		{"team", f.Team}, {"creds", f.Creds}, {"nkey", f.NKey}, {"ca", f.CA}, {"cert", f.Cert}, {"key", f.Key}, {"sign", f.Sign},
		{"labels", strings.Join(f.Labels, ",")}, {"lost", f.Lost}, {"wait", f.Wait},
	} {
		part(p.name, p.value)
	}
	if f.Replicas != 0 {
		part("replicas", strconv.Itoa(f.Replicas))
	}
	if f.Slots != nil {
		part("slots", strconv.Itoa(*f.Slots))
	}
	return b.String()
}

// escapeParameter writes the bytes of a value that could end a parameter of an address as %XX.
func escapeParameter(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// checkFleet checks the address of config.fleet, by the rules of the vocabulary. A fault of an
// address with a login is reported without its place, because programs that print findings quote
// the line.
func (l suiteCheck) checkFleet() {
	f := &l.suite.Config.Fleet
	n := decode.Follow(decode.Lookup(decode.Lookup(l.src.Root, "config"), "fleet"))
	if l.options.Vocabulary == nil || l.options.Vocabulary.CheckFleet == nil ||
		f.URL == "" && (n == nil || n.Kind != yaml.ScalarNode || decode.IsNull(n)) {
		return
	}
	if strings.Contains(f.URL, "@") {
		n = nil
	}
	switch login, err := l.options.Vocabulary.CheckFleet(f.Address()); {
	case err != nil:
		l.Reportf(l.src, n, decode.Error, decode.CodeInvalidValue, "config.fleet: %s", err)
	case login:
		l.Reportf(l.src, n, decode.Error, decode.CodeInvalidValue,
			"config.fleet contains a password or token, which must not be in a file; use creds or nkey, or pass the address with --fleet")
	}
}
