package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"waza/runner/internal/keys"
)

// keyHeaders are the headers in which clients of model APIs send their key.
var keyHeaders = []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key"}

// keyParameter is the parameter of a query in which clients of Gemini can send their key.
const keyParameter = "key"

// serviceRequest is the key of a request, in its context.
type serviceRequest struct{}

// serveService forwards a request for /SERVICE/PATH to the address of the service, with its key. The
// request must contain the placeholder of the key.
func (p *Proxy) serveService(to *httputil.ReverseProxy, w http.ResponseWriter, r *http.Request) {
	service, _, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	known := false
	for i := range p.keys {
		if key := &p.keys[i]; key.Service == service {
			known = true
			if hasPlaceholder(r, key.Placeholder) {
				to.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), serviceRequest{}, key)))
				return
			}
		}
	}
	if !known {
		http.Error(w, "waza's sandbox: this is a proxy; requests need an absolute URL, or the path of a model API", http.StatusNotFound)
		return
	}
	p.fail(w, p.refuse(Key, service, 0, Unauthorized))
}

func hasPlaceholder(r *http.Request, placeholder string) bool {
	for _, name := range keyHeaders {
		for _, value := range r.Header[name] {
			if strings.HasSuffix(value, placeholder) {
				return true
			}
		}
	}
	return r.URL.Query().Get(keyParameter) == placeholder
}

// serviceProxy returns the proxy of requests with a [serviceRequest].
func (p *Proxy) serviceProxy(silent *log.Logger) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        rewriteService,
		Transport:      withoutTrace{p.upstream},
		FlushInterval:  -1, // at once
		ModifyResponse: p.hideKeys,
		ErrorLog:       silent,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, err error) { p.fail(w, err) },
	}
}

// rewriteService addresses a request to its service, and replaces the placeholder by the key.
func rewriteService(r *httputil.ProxyRequest) {
	key := r.In.Context().Value(serviceRequest{}).(*keys.Key)
	base, err := url.Parse(key.BaseURL)
	if err != nil {
		base = new(url.URL) // the transport fails
	}
	path := "/" + strings.TrimPrefix(strings.TrimPrefix(r.In.URL.EscapedPath(), "/"+key.Service), "/")
	if key.Service == keys.Anthropic {
		path = withVersion(base.EscapedPath(), path)
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		plain = path
	}
	r.Out.URL = &url.URL{
		Scheme: base.Scheme, User: base.User, Host: base.Host, Path: plain, RawPath: path, RawQuery: r.In.URL.RawQuery,
	}
	r.Out.Host = base.Host
	for _, name := range keyHeaders {
		values := r.Out.Header[name]
		for i, value := range values {
			if start, ok := strings.CutSuffix(value, key.Placeholder); ok {
				values[i] = start + key.Secret()
			}
		}
	}
	if query := r.In.URL.Query(); query.Get(keyParameter) == key.Placeholder {
		query.Set(keyParameter, key.Secret())
		r.Out.URL.RawQuery = query.Encode()
	}
	// Keys could not be found in compressed answers.
	r.Out.Header.Set("Accept-Encoding", "identity")
	r.Out.Header.Del("Sec-WebSocket-Extensions")
}

// withVersion returns a path of Anthropic's API with its version. Anthropic's own clients add it to the
// address. Those with the AI SDK, such as OpenCode, expect it in the address, where it is missing.
func withVersion(base, path string) string {
	rest, ok := strings.CutPrefix(path, base)
	resource, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	if ok && !strings.HasSuffix(base, "/v1") && (resource == "messages" || resource == "models") {
		return base + "/v1" + rest
	}
	return path
}

// hideKeys removes the keys from an answer, in which the service could repeat them.
func (p *Proxy) hideKeys(r *http.Response) error {
	switch encoding := r.Header.Get("Content-Encoding"); strings.ToLower(encoding) {
	case "", "identity":
	default:
		return fmt.Errorf("the model API sent the encoding %s, which was not requested", quoted(encoding))
	}
	p.hideInHeader(r.Header)
	body := r.Body
	r.Body = &maskedBody{ReadCloser: p.redactor.Mask(body), atEnd: func() { p.hideInHeader(r.Trailer) }}
	if up, ok := body.(io.Writer); ok { // a connection with another protocol, such as WebSocket
		r.Body = upgradedBody{r.Body, up}
	}
	return nil
}

func (p *Proxy) hideInHeader(h http.Header) {
	for _, values := range h {
		for i, value := range values {
			values[i] = p.redactor.Text(value)
		}
	}
}

// maskedBody calls atEnd before its reader learns of the end.
type maskedBody struct {
	io.ReadCloser
	atEnd func()
}

func (b *maskedBody) Read(buf []byte) (int, error) {
	n, err := b.ReadCloser.Read(buf)
	if errors.Is(err, io.EOF) {
		b.atEnd()
	}
	return n, err
}

type upgradedBody struct {
	io.ReadCloser
	io.Writer
}

// upstreamTransport carries requests to model APIs. Like waza's own requests, they can go through the
// proxy of this machine.
func upstreamTransport(parent func(*http.Request) (*url.URL, error), config *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                  parent,
		DialContext:            (&net.Dialer{Timeout: dialTime}).DialContext,
		TLSClientConfig:        config.Clone(),
		TLSHandshakeTimeout:    headerTime,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           32,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxHeader,
		ExpectContinueTimeout:  time.Second,
	}
}

// withoutTrace hides the values of requests' contexts from a transport. With them, it would pass on
// provisional responses, whose headers could contain keys.
type withoutTrace struct{ next http.RoundTripper }

func (t withoutTrace) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.next.RoundTrip(r.WithContext(withoutValues{r.Context()}))
}

type withoutValues struct{ context.Context }

func (withoutValues) Value(any) any { return nil }
