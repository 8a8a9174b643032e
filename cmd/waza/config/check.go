package config

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"waza/eval/decode"
	"waza/eval/fields"
	"waza/eval/text"
	"waza/rpc/gateway/door"
	"waza/runner/provider"
)

// report adds an error about a key of a block, at the place that set it.
func (l *loader) report(block, key string, suggestion, format string, args ...any) {
	d := decode.Diagnostic{File: "waza serve"}
	if l.source != nil {
		d.File = l.source.Name
	}
	if p, ok := l.places[block+"."+key]; ok {
		d = p.source.Diagnostic(p.node, "", "", "")
	}
	d.Severity, d.Code, d.Suggestion = decode.Error, decode.CodeInvalidValue, suggestion
	d.Message = block + "." + key + ": " + fmt.Sprintf(format, args...)
	l.Report(d)
}

// relative makes a file name of the configuration relative to the configuration's directory.
func (l *loader) relative(v reflect.Value) {
	if name := v.String(); name != "" && !filepath.IsAbs(name) {
		v.SetString(filepath.Join(l.dir, name))
	}
}

// check finds errors that decoding does not detect.
func (l *loader) check() {
	for _, b := range l.blocks() {
		for _, f := range b.fields {
			l.checkRange(b, f)
		}
	}
	l.checkModel()
	l.readKeys()
	var open []address
	for _, d := range l.config.Doors() {
		if d.Config == nil || !d.Open() {
			continue
		}
		l.checkNames(d)
		if a, ok := l.checkAddress(d); ok {
			l.checkFree(a, open)
			open = append(open, a)
			l.checkReach(d)
		}
	}
}

// checkRange rejects negative numbers and times, and times outside the bounds of the tags least
// and most.
func (l *loader) checkRange(b block, f field) {
	v := b.value.FieldByIndex(f.Index)
	if f.Type != reflect.TypeFor[door.Duration]() {
		if n, ok := fields.Number(v); ok && n < 0 && f.Min == nil {
			l.report(b.name, f.Name, "", "must be at least 0, got %v", n)
		}
		return
	}
	d := time.Duration(v.Int())
	bound := func(tag string, otherwise time.Duration) time.Duration {
		if limit, err := time.ParseDuration(f.tag.Get(tag)); err == nil {
			return limit
		}
		return otherwise
	}
	least, most := bound("least", 0), bound("most", 1<<63-1)
	switch {
	case d < least:
		l.report(b.name, f.Name, "", "must be at least %s, got %s", f.limit("least", "0s"), v)
	case d > most:
		l.report(b.name, f.Name, "", "must be at most %s, got %s", f.limit("most", ""), v)
	}
}

func (f field) limit(tag, otherwise string) string {
	if s := f.tag.Get(tag); s != "" {
		return s
	}
	return otherwise
}

func (l *loader) checkModel() {
	m := &l.config.Model
	if m.Executor == "" && m.Model != "" {
		l.report("model", "model", "", "model.executor is missing; set it to openai or anthropic")
	}
	if m.Executor != "" && m.Model == "" {
		l.report("model", "executor", "", "model.model is missing; set it to the name of a model")
	}
	faults := m.Faults()
	for _, f := range faults {
		l.report("model", f.Key, "", "%s", f.Message)
	}
	if m.Executor != "" && m.Model != "" && len(faults) == 0 && l.config.usesModel() {
		l.checkModelKey()
	}
}

// checkModelKey reports a model without a key. It does not run api_key_command, because such a
// program can ask for a password.
func (l *loader) checkModelKey() {
	m := &l.config.Model
	if len(m.APIKeyCommand) > 0 {
		if _, err := exec.LookPath(m.APIKeyCommand[0]); err != nil {
			l.report("model", "api_key_command", "", "cannot find the program %q", m.APIKeyCommand[0])
		}
		return
	}
	pool := provider.NewPool(provider.PoolOptions{Getenv: func(name string) string { return l.environ[name] }})
	defer pool.Close()
	if _, err := pool.Client(context.Background(), provider.API(m.Executor), m.Endpoint, m.Model); err != nil {
		key := "executor"
		if m.APIKeyEnv != "" {
			key = "api_key_env"
		}
		l.report("model", key, "", "%v", err)
	}
}

// off closes a door.
const off = door.Off

// address is where a door listens.
type address struct{ door, host, port string }

// checkFree rejects an address that an earlier door uses.
func (l *loader) checkFree(a address, open []address) {
	for _, other := range open {
		everywhere := net.ParseIP(a.host).IsUnspecified() || net.ParseIP(other.host).IsUnspecified()
		if a.port == other.port && a.port != "0" && (a.host == other.host || everywhere) {
			if _, chosen := l.places[a.door+".listen"]; !chosen { // blame the door with the explicit address, not the default
				a, other = other, a
			}
			l.report(a.door, "listen", "", "the door %s also listens there; each door needs its own address", other.door)
			return
		}
	}
}

// checkReach rejects doors that other machines can reach without a secret, or without encryption
// unless the configuration allows that.
func (l *loader) checkReach(d Door) {
	c := d.Config
	switch {
	case c.TLSCert != "" && c.TLSKey == "":
		l.report(d.Name, "tls_cert", "", "%s.tls_key is missing", d.Name)
		return
	case c.TLSKey != "" && c.TLSCert == "":
		l.report(d.Name, "tls_key", "", "%s.tls_cert is missing", d.Name)
		return
	case c.TLSCert != "":
		if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
			l.report(d.Name, "tls_cert", "", "%s", certificateFault(err))
		}
	}
	if d.Local() {
		return
	}
	if d.LocalOnly {
		l.report(d.Name, "listen", "localhost:"+portOf(c.Listen),
			"other machines can reach %s, but clients of this door present no secret; use a loopback address",
			c.Listen)
		return
	}
	if c.TLSCert == "" && !c.Insecure {
		l.report(d.Name, "listen", "", "other machines can reach %s; set tls_cert and tls_key, or insecure for no encryption", c.Listen)
	}
	if d.Secret == "" {
		l.report(d.Name, "listen", "", "other machines can reach %s; set keys_file, or the variable WAZA_AGENT_KEY", c.Listen)
	}
}

func portOf(listen string) string {
	_, port, _ := net.SplitHostPort(listen)
	return port
}

// certificateFault describes why a certificate is rejected. Errors of crypto/tls contain neither
// a file name nor any part of the key.
func certificateFault(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Error()
	}
	return strings.TrimPrefix(err.Error(), "tls: ")
}

// checkAddress parses the address of a door. An empty host means localhost, which has the same
// loopback address.
func (l *loader) checkAddress(d Door) (address, bool) {
	listen := d.Config.Listen
	suggestion := ""
	if n, err := strconv.ParseUint(strings.TrimPrefix(listen, ":"), 10, 16); err == nil {
		suggestion = fmt.Sprintf("127.0.0.1:%d", n)
	} else if decode.Nearest(listen, []string{off, "false", "none"}) != "" {
		suggestion = off
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		l.report(d.Name, "listen", suggestion, "must be HOST:PORT or off, got %q", text.Clip(listen, 60))
		return address{}, false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		l.report(d.Name, "listen", "", "the port must be a number up to 65535, got %q; 0 means any free port", text.Clip(port, 60))
		return address{}, false
	}
	if host == "" || strings.EqualFold(host, "localhost") {
		host = "127.0.0.1"
	}
	return address{d.Name, host, port}, true
}

var loose = text.Pattern(`^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|sec|secs|seconds?|min|mins|minutes?|hours?|days?|milliseconds?)?\s*$`)

// durationAt returns the time that a finding is about in waza's notation. It returns "" for
// other findings and for times that it cannot parse.
func (l *loader) durationAt(d decode.Diagnostic) string {
	for _, b := range l.blocks() {
		for _, f := range b.fields {
			p, ok := l.places[b.name+"."+f.Name]
			if ok && f.Type == reflect.TypeFor[door.Duration]() && p.source.Name == d.File && p.node.Line == d.Line && p.node.Column == d.Column {
				return looseDuration(decode.Follow(p.node).Value)
			}
		}
	}
	return ""
}

// looseDuration rewrites a time such as 60, 5 min or 1d in waza's notation.
func looseDuration(s string) string {
	m := loose().FindStringSubmatch(strings.ToLower(s))
	if _, err := time.ParseDuration(s); err == nil || m == nil {
		return ""
	}
	unit := "s"
	switch {
	case m[2] == "ms", strings.HasPrefix(m[2], "milli"):
		unit = "ms"
	case strings.HasPrefix(m[2], "m"):
		unit = "m"
	case strings.HasPrefix(m[2], "h"):
		unit = "h"
	case strings.HasPrefix(m[2], "d"):
		days, err := strconv.Atoi(m[1])
		if err != nil {
			return ""
		}
		return fmt.Sprintf("%dh", 24*days)
	}
	return m[1] + unit
}
