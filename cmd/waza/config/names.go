package config

import (
	"net/url"
	"strings"

	"waza/eval/decode"
	"waza/eval/text"
)

// checkNames rejects hosts and origins that no request can have.
func (l *loader) checkNames(d Door) {
	for i, host := range d.Config.Hosts {
		if suggestion, ok := hostName(host); !ok {
			l.reportItem(d.Name, "hosts", i, suggestion, "must be a host name such as eval.example.com, got %q", text.Clip(host, 60))
		}
	}
	for i, origin := range d.Config.Origins {
		if suggestion, ok := originName(origin); !ok {
			l.reportItem(d.Name, "origins", i, suggestion, "must be an origin such as https://example.com, got %q", text.Clip(origin, 60))
		}
	}
}

// hostName reports whether s is a host, optionally with a port. Otherwise it returns the host
// that s probably means, or "".
func hostName(s string) (suggestion string, ok bool) {
	if s != "" && !strings.ContainsAny(s, "/*@ ") {
		return "", true
	}
	if u, err := url.Parse(s); err == nil && u.Host != "" && !strings.ContainsAny(u.Host, "*@") {
		return u.Hostname(), false
	}
	return "", false
}

// originName is like [hostName], for an origin.
func originName(s string) (suggestion string, ok bool) {
	u, err := url.Parse(s)
	switch {
	case err != nil || strings.ContainsAny(s, "* "):
		return "", false
	case u.Host == "" || u.Scheme == "":
		if name, ok := hostName(s); ok {
			return "https://" + s, false
		} else if name != "" {
			return "https://" + name, false
		}
		return "", false
	case u.User != nil || strings.TrimSuffix(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return u.Scheme + "://" + u.Host, false
	}
	return "", true
}

// reportItem reports an item of a list, at the item's own position if known.
func (l *loader) reportItem(block, key string, i int, suggestion, format string, args ...any) {
	path := block + "." + key
	if p, ok := l.places[path]; ok {
		if list := decode.Follow(p.node); i < len(list.Content) {
			defer func() { l.places[path] = p }()
			l.places[path] = place{p.source, list.Content[i]}
		}
	}
	l.report(block, key, suggestion, format, args...)
}
