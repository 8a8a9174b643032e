package skills

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// The limits of requests for URLs.
const (
	urlTimeout  = 10 * time.Second
	mostURLs    = 100
	urlsAtOnce  = 8
	urlsAgent   = "waza check"
	mostHopsURL = 5
)

// deadURLs requests URLs and returns why some do not answer. It reads no bodies, and requests at
// most 100 URLs.
func deadURLs(ctx context.Context, urls []string) map[string]string {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: urlTimeout, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) > mostHopsURL {
			return fmt.Errorf("more than %d redirects", mostHopsURL)
		}
		return nil
	}}
	var (
		mu    sync.Mutex // guards dead
		dead  = map[string]string{}
		group sync.WaitGroup
		slots = make(chan struct{}, urlsAtOnce)
	)
	for _, u := range urls[:min(len(urls), mostURLs)] {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if why := ask(ctx, client, u); why != "" {
				mu.Lock()
				defer mu.Unlock()
				dead[u] = why
			}
		})
	}
	group.Wait()
	return dead
}

// ask returns why a URL is dead, or "". The answers 401, 403 and 429 mean that it is alive. If
// HEAD fails, ask tries GET.
func ask(ctx context.Context, client *http.Client, u string) (why string) {
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		req, err := http.NewRequestWithContext(ctx, method, u, nil)
		if err != nil {
			return err.Error()
		}
		req.Header.Set("User-Agent", urlsAgent)
		resp, err := client.Do(req)
		if err != nil {
			why = err.Error()
			continue
		}
		resp.Body.Close()
		switch {
		case resp.StatusCode < 400, resp.StatusCode == http.StatusUnauthorized,
			resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusTooManyRequests:
			return ""
		}
		why = "the server answered " + resp.Status
	}
	return why
}
