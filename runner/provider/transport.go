package provider

import (
	"io"
	"net"
	"net/http"
	"time"
)

// maxResponseBytes is the number of bytes read of one response.
const maxResponseBytes = 32 << 20

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// bounded limits the size of responses.
type bounded struct{ next http.RoundTripper }

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		res.Body.Close()
		return nil, &Error{
			Kind: Invalid, Status: res.StatusCode,
			Message: "the address redirects, and waza does not follow redirects; correct base_url",
		}
	}
	res.Body = &boundedBody{ReadCloser: res.Body, left: maxResponseBytes}
	return res, nil
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// errTooLong is the error for an endless answer. A retry would not help.
var errTooLong = &Error{Kind: Invalid, Message: "the answer is too long"}
