package proxy

import (
	"net/netip"
	"strings"
)

// Environment returns the variables, in the form NAME=VALUE, that make programs use the proxy at an
// address of the sandbox. They replace variables of the same names.
//
// ALL_PROXY has the scheme http, although the proxy also speaks SOCKS5: httpx, which the Python
// libraries of model APIs use, fails at its start if the scheme is socks5h and a package is missing, and
// gRPC knows only http. Local addresses are excepted, so that programs of the sandbox reach each other.
// Names of other local networks are not: only the proxy reaches them.
func Environment(address netip.AddrPort) []string {
	url := "http://" + address.String()
	env := []string{
		"NODE_USE_ENV_PROXY=1", // Node.js ignores the other variables without it
		"RSYNC_PROXY=" + address.String(),
	}
	for _, v := range []struct{ name, value string }{
		{"HTTP_PROXY", url}, {"HTTPS_PROXY", url}, {"ALL_PROXY", url}, {"GRPC_PROXY", url},
		{"NO_PROXY", "localhost,127.0.0.1,::1"},
	} {
		env = append(env, v.name+"="+v.value, strings.ToLower(v.name)+"="+v.value)
	}
	return env
}

// ResolverFile is the content of /etc/resolv.conf in a sandbox whose proxy serves DNS at 127.0.0.1.
const ResolverFile = "nameserver 127.0.0.1\noptions edns0\n"
