package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"waza/runner/sandbox/internal/proxy"
)

// On some machines only a proxy reaches other hosts, and only it knows their names.
func TestHostsBehindAProxyOfTheMachine(t *testing.T) {
	t.Parallel()
	names, internet := example(t)
	outer := start(t, proxy.Config{Allow: rules(t, "example.com"), Resolver: names, Dial: internet.dial})
	p := start(t, proxy.Config{
		Allow: rules(t, "example.com", "www.example.com", "direct.example"), Resolver: resolver{},
		Parent: func(r *http.Request) (*url.URL, error) {
			if r.URL.Hostname() == "direct.example" {
				return nil, nil
			}
			return outer.url(), nil
		},
	})
	for _, scheme := range []string{"http", "socks5h"} {
		c := client(t, &url.URL{Scheme: scheme, Host: p.address})
		_, body := get(t, c, "http://example.com:8080/"+scheme)
		require.Equal(t, "GET example.com:8080/"+scheme+" ", body)
		res, err := c.Get("http://evil.example/")
		if scheme == "http" {
			require.NoError(t, err)
			res.Body.Close()
			require.Equal(t, http.StatusForbidden, res.StatusCode)
		} else {
			require.ErrorContains(t, err, "not allowed by ruleset")
		}
	}
	answer := exchange(t, p.address, "CONNECT www.example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false)
	require.Contains(t, answer, "waza's sandbox: the proxy of this machine refused www.example.com:443: 403 Forbidden\n")
	require.True(t, strings.HasPrefix(answer, "HTTP/1.1 502 "))

	address := withDNS(t, p)
	require.Len(t, inquire(t, address, question(t, "www.example.com.", dnsmessage.TypeA)).Answers, 1)
	require.Equal(t, dnsmessage.RCodeNameError, inquire(t, address, question(t, "direct.example.", dnsmessage.TypeA)).RCode)
	require.Equal(t, []proxy.Event{{Protocol: proxy.HTTP, Host: "evil.example", Port: 80, Reason: proxy.NotAllowed}}, p.events.all())
}

func TestUnusableProxiesOfTheMachine(t *testing.T) {
	t.Parallel()
	l := listen(t)
	done := make(chan string, 2)
	go func() {
		for _, answer := range []string{"nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n"} {
			c, err := l.Accept()
			if err != nil {
				done <- err.Error()
				return
			}
			r, err := http.ReadRequest(bufio.NewReader(c))
			if err == nil {
				user, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
				done <- fmt.Sprint(r.Method, " ", r.Host, " ", user, " ", password)
			}
			_, _ = io.WriteString(c, answer)
			c.Close()
		}
	}()
	closed := listen(t)
	closed.Close()
	for _, c := range []struct{ parent, want string }{
		{"http://me:secret@" + l.Addr().String(), "the proxy of this machine sent no valid answer"},
		{"http://me:secret@" + l.Addr().String(), "the proxy of this machine sent no valid answer"},
		{"http://me:secret@" + closed.Addr().String(), "the proxy of this machine is not reachable"},
		{"socks5://127.0.0.1:1", `the proxy of this machine has the scheme "socks5"; only http is supported`},
	} {
		parent, err := url.Parse(c.parent)
		require.NoError(t, err)
		p := start(t, proxy.Config{Allow: rules(t, "example.com"), Parent: func(*http.Request) (*url.URL, error) { return parent, nil }})
		answer := exchange(t, p.address, "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false)
		require.Contains(t, answer, "waza's sandbox: "+c.want+"\n")
		require.NotContains(t, answer, "secret")
	}
	broken := start(t, proxy.Config{
		Allow:  rules(t, "example.com"),
		Parent: func(*http.Request) (*url.URL, error) { return nil, errors.New("invalid: http://me:secret@x") },
	})
	status, body := get(t, client(t, broken.url()), "http://example.com/")
	require.Equal(t, http.StatusBadGateway, status)
	require.Equal(t, "waza's sandbox: the proxy of this machine has an invalid address; correct HTTPS_PROXY or HTTP_PROXY\n", body)
	for range 2 {
		require.Equal(t, "CONNECT example.com:443 me secret", <-done)
	}
}
