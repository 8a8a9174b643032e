package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/runner/internal/keys"
	"waza/runner/sandbox/internal/proxy"
)

const secret = "sk-real-0123456789abcdef"

// api starts a model API with TLS.
func api(t *testing.T, handle http.HandlerFunc) (baseURL string, trust *tls.Config) {
	t.Helper()
	server := httptest.NewUnstartedServer(handle)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return server.URL, &tls.Config{RootCAs: pool}
}

// ask sends a request to the proxy itself.
func ask(t *testing.T, method, address string, header map[string]string, body io.Reader) *http.Response {
	t.Helper()
	r, err := http.NewRequest(method, address, body)
	require.NoError(t, err)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	c := client(t, nil)
	c.Transport.(*http.Transport).Proxy = nil
	res, err := c.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func TestKeysAreAdded(t *testing.T) {
	t.Parallel()
	base, trust := api(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := []string{r.Method, r.URL.RequestURI(), string(body)}
		for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "X-Forwarded-For"} {
			if value := r.Header.Get(name); value != "" {
				got = append(got, name+"="+value)
			}
		}
		// The proxy hides keys, so the answer contains another form.
		fmt.Fprint(w, strings.ReplaceAll(strings.Join(got, " "), secret, "REAL"))
	})
	w := keys.Withhold([]string{
		"OPENAI_API_KEY=" + secret, "OPENAI_BASE_URL=" + base + "/v1", "GEMINI_API_KEY=" + secret, "GOOGLE_GEMINI_BASE_URL=" + base,
	}, "ADDRESS")
	p := start(t, proxy.Config{Keys: w.Keys, TLS: trust})
	openAI, gemini := w.Keys[0].Placeholder, w.Keys[1].Placeholder
	variable := func(name string) string {
		for _, kv := range w.Env {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return strings.Replace(value, "ADDRESS", p.address, 1)
			}
		}
		return ""
	}
	for _, c := range []struct{ method, path, header, value, want string }{
		{"POST", variable("OPENAI_BASE_URL") + "/chat?x=1;2", "Authorization", "Bearer " + openAI, "POST /v1/chat?x=1;2 hi Authorization=Bearer REAL"},
		{"GET", variable("OPENAI_BASE_URL") + "/a%2Fb", "Authorization", "Bearer " + openAI, "GET /v1/a%2Fb hi Authorization=Bearer REAL"},
		{"POST", variable("OPENAI_BASE_URL") + "/m", "Api-Key", openAI, "POST /v1/m hi Api-Key=REAL"},
		{"POST", variable("OPENAI_BASE_URL") + "/m", "X-Api-Key", openAI, "POST /v1/m hi X-Api-Key=REAL"},
		{"POST", variable("GOOGLE_GEMINI_BASE_URL") + "/v1beta/m:g", "X-Goog-Api-Key", gemini, "POST /v1beta/m:g hi X-Goog-Api-Key=REAL"},
		{"POST", variable("GOOGLE_GEMINI_BASE_URL") + "/m?alt=sse&key=" + gemini, "X", "", "POST /m?alt=sse&key=REAL hi"},
	} {
		res := ask(t, c.method, c.path, map[string]string{c.header: c.value, "X-Other": openAI}, strings.NewReader("hi"))
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, 200, res.StatusCode, "%s", body)
		require.Equal(t, c.want, string(body))
	}
	require.Empty(t, p.events.all())

	// Programs that use the proxy for every address reach it, too.
	c := client(t, p.url())
	r, err := http.NewRequest(http.MethodGet, "http://"+p.address+"/openai/v1/x", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+openAI)
	c.Transport.(*http.Transport).Proxy = http.ProxyURL(p.url())
	res, err := c.Do(r)
	require.NoError(t, err)
	res.Body.Close()
	require.Equal(t, 200, res.StatusCode)
}

// OpenCode got "not found", because it expects the version in ANTHROPIC_BASE_URL and Claude Code does not.
func TestVersionOfAnthropic(t *testing.T) {
	t.Parallel()
	base, trust := api(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.RequestURI()) })
	for _, c := range []struct{ base, path, want string }{
		{"", "/v1/messages?beta=true", "/v1/messages?beta=true"},
		{"", "/messages?beta=true", "/v1/messages?beta=true"},
		{"", "/messages/count_tokens", "/v1/messages/count_tokens"},
		{"", "/models", "/v1/models"},
		{"", "/api/hello", "/api/hello"},
		{"", "/messagesx", "/messagesx"},
		{"/gate", "/gate/messages", "/gate/v1/messages"},
		{"/gate", "/gate/v1/messages", "/gate/v1/messages"},
		{"/gate/v1", "/gate/v1/messages", "/gate/v1/messages"},
	} {
		key := keys.New(keys.Anthropic, base+c.base, secret)
		p := start(t, proxy.Config{Keys: []keys.Key{key}, TLS: trust})
		res := ask(t, "GET", "http://"+p.address+"/anthropic"+c.path, map[string]string{"X-Api-Key": key.Placeholder}, nil)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, c.want, string(body))
	}
}

func TestRequestsWithoutPlaceholderGetNoKey(t *testing.T) {
	t.Parallel()
	base, trust := api(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was forwarded") })
	list := []keys.Key{keys.New("openai", base, secret), keys.New("anthropic", base, secret)}
	p := start(t, proxy.Config{Keys: list, TLS: trust})
	for _, header := range []map[string]string{
		nil, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer " + list[1].Placeholder}, {"X-Other": list[0].Placeholder},
	} {
		res := ask(t, "GET", "http://"+p.address+"/openai/x", header, nil)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, 401, res.StatusCode)
		require.Equal(t, "waza's sandbox: openai (key) was refused: the request does not have the placeholder of a key\n", string(body))
	}
	for _, path := range []string{"/", "/other/x", "/openaix", "//openai/x"} {
		res := ask(t, "GET", "http://"+p.address+path, map[string]string{"Authorization": "Bearer " + list[0].Placeholder}, nil)
		require.Equal(t, 404, res.StatusCode, path)
	}
	require.Equal(t, []proxy.Event{{Protocol: proxy.Key, Host: "openai", Reason: proxy.Unauthorized}}, p.events.all())
}

func TestAnswersContainNoKey(t *testing.T) {
	t.Parallel()
	encoded := base64.StdEncoding.EncodeToString([]byte("key: " + secret))
	base, trust := api(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.Header().Set("Trailer", "X-Late")
		switch r.URL.Path {
		case "/hints":
			w.Header().Set("Link", "<"+secret+">")
			w.WriteHeader(http.StatusEarlyHints)
		case "/zip":
			w.Header().Set("Content-Encoding", "gzip")
		case "/location":
			w.Header().Set("Location", "https://example.com/?key="+secret)
			w.WriteHeader(http.StatusFound)
		}
		fmt.Fprintf(w, "wrong key %s (%s) %s", secret, encoded, r.Header.Get("Accept-Encoding"))
		w.(http.Flusher).Flush() // otherwise the answer has a length and no trailer
		w.Header().Set("X-Late", secret)
	})
	key := keys.New("openai", base, secret)
	p := start(t, proxy.Config{Keys: []keys.Key{key}, TLS: trust})
	for path, status := range map[string]string{
		"/echo": "HTTP/1.1 200", "/hints": "HTTP/1.1 200", "/zip": "HTTP/1.1 502", "/location": "HTTP/1.1 302",
	} {
		answer := exchange(t, p.address, "GET /openai"+path+" HTTP/1.1\r\nHost: x\r\nTE: trailers\r\n"+
			"Accept-Encoding: gzip\r\nConnection: close\r\nAuthorization: Bearer "+key.Placeholder+"\r\n\r\n", false)
		require.True(t, strings.HasPrefix(answer, status), "%s: %s", path, answer)
		require.NotContains(t, answer, secret)
		require.NotContains(t, answer, "real-0123")
		require.NotContains(t, answer, encoded[12:20])
		if path == "/echo" {
			require.Contains(t, answer, "wrong key ************************ (")
			require.Contains(t, answer, ") identity")
			require.Contains(t, answer, "X-Echo: Bearer [redacted]")
			require.Contains(t, answer, "X-Late: [redacted]")
		}
	}
}

func TestErrorsContainNoKey(t *testing.T) {
	t.Parallel()
	l := listen(t)
	l.Close()
	key := keys.New("openai", "http://"+secret+"@"+l.Addr().String(), secret)
	p := start(t, proxy.Config{Keys: []keys.Key{key}})
	res := ask(t, "GET", "http://"+p.address+"/openai/x?key="+key.Placeholder, nil, nil)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, 502, res.StatusCode)
	require.NotContains(t, string(body), secret)
}

func TestStreamsPassAtOnce(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	base, trust := api(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-seen:
			case <-r.Context().Done():
				return
			}
		}
	})
	key := keys.New("anthropic", base, secret)
	p := start(t, proxy.Config{Keys: []keys.Key{key}, TLS: trust})
	res := ask(t, "POST", "http://"+p.address+"/anthropic/v1/messages", map[string]string{"X-Api-Key": key.Placeholder}, nil)
	r := bufio.NewReader(res.Body)
	for i := range 3 {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("data: %d\n", i), line)
		_, err = r.ReadString('\n')
		require.NoError(t, err)
		seen <- struct{}{}
	}
}

func TestWebSocketsPassWithoutKey(t *testing.T) {
	t.Parallel()
	base, trust := api(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
		if err != nil {
			return
		}
		defer c.CloseNow()
		_ = c.Write(r.Context(), websocket.MessageText, []byte("hello "+r.Header.Get("Authorization")))
		kind, text, err := c.Read(r.Context())
		if err == nil {
			_ = c.Write(r.Context(), kind, text)
		}
		_ = c.Close(websocket.StatusNormalClosure, "")
	})
	key := keys.New("openai", base, secret)
	p := start(t, proxy.Config{Keys: []keys.Key{key}, TLS: trust})
	c, res, err := websocket.Dial(context.Background(), "ws://"+p.address+"/openai/v1/responses", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + key.Placeholder}}, CompressionMode: websocket.CompressionContextTakeover,
	})
	require.NoError(t, err)
	defer c.CloseNow()
	require.Empty(t, res.Header.Get("Sec-WebSocket-Extensions"))
	_, text, err := c.Read(context.Background())
	require.NoError(t, err)
	require.Equal(t, "hello Bearer "+strings.Repeat("*", len(secret)), string(text))
	require.NoError(t, c.Write(context.Background(), websocket.MessageText, []byte("ping")))
	_, text, err = c.Read(context.Background())
	require.NoError(t, err)
	require.Equal(t, "ping", string(text))
}

func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	base, trust := api(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "start")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	})
	key := keys.New("openai", base, secret)
	p := start(t, proxy.Config{Keys: []keys.Key{key}, TLS: trust})
	res := ask(t, "GET", "http://"+p.address+"/openai/x", map[string]string{"Authorization": "Bearer " + key.Placeholder}, nil)
	_, err := bufio.NewReader(res.Body).ReadString('\n')
	require.NoError(t, err)
	p.Close()
	<-ended
	_, err = net.Dial("tcp", p.address)
	require.Error(t, err)
}
