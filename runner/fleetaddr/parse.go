package fleetaddr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"waza/eval/decode"
	"waza/eval/text"
)

// Limits of addresses.
const (
	mostBytes   = 4096
	mostServers = 16
	mostLabels  = 16
	longestHost = 253
	longestTeam = 32
	longestMark = 64 // length of a label
	mostSlots   = 1024
)

// schemes maps the schemes of servers to their default ports.
var schemes = map[string]string{"nats": "4222", "tls": "4222", "ws": "80", "wss": "443"}

// Parse parses an address:
//
//	nats://[user:password@]host[:port][,nats://host…][?parameter=value&…]
//	embedded[?parameter=value&…]
//
// Servers can also have the schemes tls, ws and wss. A user without a password is a token. Bytes
// with another meaning can be written as %XX. Errors name the faulty part, but never contain a
// password or token.
func Parse(address string) (Address, error) {
	a, err := parse(strings.TrimSpace(address))
	if err != nil {
		return Address{}, fmt.Errorf("fleet address: %w", err)
	}
	return a, nil
}

// CheckOfSuite returns the fault of an address that a suite contains, without a word in front
// that says that it is an address, and whether a valid one contains a password or token.
func CheckOfSuite(address string) (login bool, err error) {
	a, err := parse(strings.TrimSpace(address))
	return err == nil && (a.Password != "" || a.Token != ""), err
}

func parse(address string) (Address, error) {
	a := Address{Team: DefaultTeam, Lost: DefaultLost, Wait: DefaultWait, Replicas: DefaultReplicas, Slots: -1}
	switch {
	case address == "":
		return a, fmt.Errorf(`is empty; expected nats://host:4222 or "embedded"`)
	case len(address) > mostBytes:
		return a, fmt.Errorf("has %d bytes; the limit is %d", len(address), mostBytes)
	case strings.ContainsFunc(address, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return a, fmt.Errorf("has a control character, such as a newline; write it as %%XX if it belongs there")
	}
	where, query, _ := strings.Cut(address, "?")
	if where == "embedded" {
		a.Embedded = true
	} else if err := a.setServers(where, strings.Contains(address, "@")); err != nil {
		return a, err
	}
	if err := a.setParameters(query); err != nil {
		return a, err
	}
	return a, a.checkConsistency()
}

// setServers sets the servers. loginSomewhere means that the address contains an @. Then an
// apparent host can be a piece of a password.
func (a *Address) setServers(list string, loginSomewhere bool) error {
	if !strings.Contains(list, "://") {
		if near := decode.Nearest(list, []string{"embedded"}); near != "" {
			return fmt.Errorf("%q is unknown; did you mean %q?", text.Clip(list, 80), near)
		}
		return fmt.Errorf(`%q has no scheme; expected nats://, tls://, ws:// or wss:// and a host, or "embedded"`,
			text.Clip(afterLogin(list), 80))
	}
	servers := strings.Split(list, ",")
	if len(servers) > mostServers {
		return fmt.Errorf("has %d servers; the limit is %d", len(servers), mostServers)
	}
	first := ""
	for i, server := range servers {
		scheme, rest, found := strings.Cut(strings.TrimSpace(server), "://")
		if !found {
			scheme, rest = first, scheme
		}
		if i == 0 {
			first = scheme
		}
		port, known := schemes[scheme]
		if !known {
			return fmt.Errorf("server %d: scheme %q is unknown; expected nats, tls, ws or wss", i+1, text.Clip(scheme, 20))
		}
		if webSocket(scheme) != webSocket(first) {
			return fmt.Errorf("server %d: %s:// and %s:// cannot be mixed", i+1, first, scheme)
		}
		at := strings.LastIndexByte(rest, '@')
		if at >= 0 {
			if err := a.setLogin(rest[:at]); err != nil {
				return fmt.Errorf("server %d: %w", i+1, err)
			}
			rest = rest[at+1:]
		}
		host, err := hostAndPort(strings.TrimSuffix(rest, "/"), port)
		if err != nil && at < 0 && loginSomewhere {
			return fmt.Errorf("server %d has no valid host and port; in passwords, write , as %%2C, ? as %%3F and @ as %%40", i+1)
		}
		if err != nil {
			return fmt.Errorf("server %d: %w", i+1, err)
		}
		a.Servers = append(a.Servers, scheme+"://"+host)
	}
	return nil
}

func webSocket(scheme string) bool { return scheme == "ws" || scheme == "wss" }

// afterLogin removes a possible user and password.
func afterLogin(server string) string { return server[strings.LastIndexByte(server, '@')+1:] }

// setLogin sets the login from the part of a server before the @. All servers have the same
// login.
func (a *Address) setLogin(login string) error {
	name, password, hasPassword := strings.Cut(login, ":")
	name, err := unescape(name)
	if err != nil {
		return fmt.Errorf("user: %w", err)
	}
	if password, err = unescape(password); err != nil {
		return fmt.Errorf("password: %w", err)
	}
	user, token := name, ""
	switch {
	case name == "":
		return fmt.Errorf("has an @ without a user before it")
	case hasPassword && password == "":
		return fmt.Errorf("user %q has an empty password", text.Clip(name, 80))
	case !hasPassword:
		user, token = "", name
	}
	if (a.User != "" || a.Token != "") && (a.User != user || a.Password != password || a.Token != token) {
		return fmt.Errorf("has a different user or password than an earlier server; all servers must have the same")
	}
	a.User, a.Password, a.Token = user, password, token
	return nil
}

// hostAndPort checks a host and its port. The default port replaces a missing one.
func hostAndPort(s, port string) (string, error) {
	shown := text.Clip(s, 80)
	if strings.ContainsAny(s, "/#") {
		return "", fmt.Errorf("%q must be a host and a port only", shown)
	}
	host := s
	if end := strings.LastIndexByte(s, ']'); strings.HasPrefix(s, "[") && end > 0 {
		host, s = s[:end+1], s[end+1:]
		if in := host[1:end]; !strings.Contains(in, ":") || len(in) > longestHost || strings.Trim(in, "0123456789abcdefABCDEF:.") != "" {
			return "", fmt.Errorf("%q has no IPv6 address in its brackets", shown)
		}
		if s != "" && s[0] != ':' {
			return "", fmt.Errorf("%q must be a host and a port only", shown)
		}
		port = portOr(s, port)
	} else {
		if strings.Count(s, ":") > 1 {
			return "", fmt.Errorf("%q has several colons; write an IPv6 address in brackets", shown)
		}
		host, _, _ = strings.Cut(s, ":")
		port = portOr(s[len(host):], port)
		if host == "" || len(host) > longestHost ||
			strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
			return "", fmt.Errorf("host %q is not valid; expected a name or an address", text.Clip(host, 80))
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q must be a number from 1 to 65535", text.Clip(port, 20))
	}
	return host + ":" + port, nil
}

func portOr(s, byDefault string) string {
	if s == "" {
		return byDefault
	}
	return s[1:]
}

func (a *Address) setParameters(query string) error {
	seen := map[string]bool{}
	for _, part := range strings.Split(query, "&") {
		if part == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		i := slices.IndexFunc(parameters, func(p parameter) bool { return p.name == name })
		switch {
		case i < 0:
			return unknownParameter(name)
		case a.Embedded && !parameters[i].embedded:
			return fmt.Errorf("parameter %q is not allowed for an embedded server", name)
		case !a.Embedded && !parameters[i].servers:
			return fmt.Errorf("parameter %q is allowed only for an embedded server", name)
		case seen[name]:
			return fmt.Errorf("parameter %q is given twice", name)
		case !found || value == "":
			return fmt.Errorf("parameter %q has no value", name)
		}
		seen[name] = true
		value, err := unescape(value)
		if err == nil {
			err = parameters[i].set(a, value)
		}
		if err != nil {
			return fmt.Errorf("parameter %q: %w", name, err)
		}
	}
	return nil
}

func unknownParameter(name string) error {
	if strings.Contains(name, "@") {
		return fmt.Errorf("has an @ after the question mark; in passwords, write ? as %%3F")
	}
	var names []string
	for _, p := range parameters {
		names = append(names, p.name)
	}
	if near := decode.Nearest(name, names); near != "" {
		return fmt.Errorf("parameter %q is unknown; did you mean %q?", text.Clip(name, 40), near)
	}
	return fmt.Errorf("parameter %q is unknown; expected one of %s", text.Clip(name, 40), strings.Join(names, ", "))
}

func (a *Address) setTeam(value string) error {
	if err := CheckTeam(value); err != nil {
		return err
	}
	a.Team = value
	return nil
}

// CheckTeam returns an error that describes the fault of an invalid team name.
func CheckTeam(name string) error {
	if name == "" || len(name) > longestTeam || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return fmt.Errorf("team %q must have 1 to %d of a-z, 0-9, - and _", text.Clip(name, 80), longestTeam)
	}
	return nil
}

func (a *Address) setLabels(value string) error {
	labels := strings.Split(value, ",")
	if len(labels) > mostLabels {
		return fmt.Errorf("has %d labels; the limit is %d", len(labels), mostLabels)
	}
	for i, label := range labels {
		labels[i] = strings.TrimSpace(label)
		if err := CheckLabel(labels[i]); err != nil {
			return err
		}
	}
	slices.Sort(labels)
	a.Labels = slices.Compact(labels)
	return nil
}

// CheckLabel returns an error that describes the fault of an invalid label.
func CheckLabel(label string) error {
	if label == "" || len(label) > longestMark ||
		strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
		return fmt.Errorf("label %q must have 1 to %d of a-z, A-Z, 0-9, ., - and _", text.Clip(label, 80), longestMark)
	}
	return nil
}

func (a *Address) setReplicas(value string) error {
	switch value {
	case "1", "3", "5":
		a.Replicas = int(value[0] - '0')
		return nil
	}
	return fmt.Errorf("%q must be 1, 3 or 5", text.Clip(value, 40))
}

func (a *Address) setSlots(value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > mostSlots {
		return fmt.Errorf("%q must be a number from 0 to %d", text.Clip(value, 40), mostSlots)
	}
	a.Slots = n
	return nil
}

func durationSetter(name string, least, most time.Duration, field func(*Address) *time.Duration) func(*Address, string) error {
	return func(a *Address, value string) error {
		d, err := time.ParseDuration(value)
		if err != nil || d < least || d > most {
			return fmt.Errorf("%q must be a time from %s to %s, such as %s=30s", text.Clip(value, 40), least, most, name)
		}
		*field(a) = d
		return nil
	}
}

// checkConsistency checks the rules that involve several parts.
func (a *Address) checkConsistency() error {
	var logins []string
	for _, login := range []struct {
		name  string
		given bool
	}{{"a user or token before the host", a.User != "" || a.Token != ""}, {"creds", a.Creds != ""}, {"nkey", a.NKey != ""}} {
		if login.given {
			logins = append(logins, login.name)
		}
	}
	switch {
	case len(logins) > 1:
		return fmt.Errorf("has %s, but only one login is allowed", strings.Join(logins, " and "))
	case a.Cert != "" && a.Key == "":
		return fmt.Errorf("has cert without key; both are required")
	case a.Key != "" && a.Cert == "":
		return fmt.Errorf("has key without cert; both are required")
	case (a.CA != "" || a.Cert != "") && strings.HasPrefix(a.Servers[0], "ws://"):
		return fmt.Errorf("has ca or cert, but ws:// is not encrypted; use wss://")
	}
	return nil
}
