package limits_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/runner/fleet/fleettest"
	"waza/runner/fleet/internal/limits"
	"waza/runner/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model is a provider that all processes of a test ask. The test defines the answer to each
// request, counted from 1.
type model struct {
	answer func(n int, from *process) answer

	mu       sync.Mutex // guards the fields below
	requests []time.Time
	more     chan struct{} // closed at the next request
}

// answer is the answer to a request: rejected with a pause, or sent once after is closed; nil
// means at once.
type answer struct {
	retryAfter string
	after      <-chan struct{}
}

func newModel(f func(n int, from *process) answer) *model {
	return &model{answer: f, more: make(chan struct{})}
}

// arrived returns true when n requests have arrived, or false after the given time.
func (m *model) arrived(n int, within time.Duration) bool {
	late := time.After(within)
	for {
		m.mu.Lock()
		count, more := len(m.requests), m.more
		m.mu.Unlock()
		if count >= n {
			return true
		}
		select {
		case <-more:
		case <-late:
			return false
		}
	}
}

func (m *model) at(n int) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[n-1]
}

func (m *model) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// process simulates a process with its own limits, pool and client.
type process struct {
	model  *model
	conn   *nats.Conn
	limits provider.Limits
	client provider.Client
	stop   func()
}

// RoundTrip implements http.RoundTripper. It passes requests of a process to the model.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	m := p.model
	m.mu.Lock()
	m.requests = append(m.requests, time.Now())
	n := len(m.requests)
	close(m.more)
	m.more = make(chan struct{})
	m.mu.Unlock()
	a := m.answer(n, p)
	if a.after != nil {
		select {
		case <-a.after:
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	}
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: r}
	response.Body = io.NopCloser(strings.NewReader(`data: {"id":"1","model":"m","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":"stop"}]}` +
		"\n\ndata: [DONE]\n\n"))
	if a.retryAfter != "" {
		response.StatusCode = http.StatusTooManyRequests
		response.Header = http.Header{"Retry-After": {a.retryAfter}}
		response.Body = http.NoBody
	}
	return response, nil
}

// makeBucket creates the bucket of a test.
func makeBucket(t *testing.T, url string) jetstream.KeyValue {
	t.Helper()
	return openBucket(t, connect(t, url))
}

func connect(t *testing.T, url string) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(url, nats.MaxReconnects(-1))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func openBucket(t *testing.T, conn *nats.Conn) jetstream.KeyValue {
	t.Helper()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	bucket, err := js.CreateOrUpdateKeyValue(t.Context(), limits.Bucket("search", 1))
	require.NoError(t, err)
	return bucket
}

// start starts n processes. Each has a connection and shares its limits.
func start(t *testing.T, n int, url string, m *model, options limits.Options) []*process {
	t.Helper()
	var processes []*process
	for range n {
		p := &process{model: m, conn: connect(t, url)}
		pool := provider.NewPool(provider.PoolOptions{
			Limits: &p.limits, Transport: p, Getenv: func(string) string { return "sk-test-0123456789" },
		})
		t.Cleanup(pool.Close)
		var err error
		p.client, err = pool.Client(t.Context(), provider.OpenAI, provider.Endpoint{BaseURL: "http://127.0.0.1:1/v1"}, "m")
		require.NoError(t, err)
		p.stop, err = limits.Share(t.Context(), &p.limits, openBucket(t, p.conn), options)
		require.NoError(t, err)
		t.Cleanup(p.stop)
		processes = append(processes, p)
	}
	return processes
}

// window returns how many concurrent calls the limiter of a process allows.
func (p *process) window() string {
	_, rest, _ := strings.Cut(p.limits.Get(string(provider.OpenAI)+" http://127.0.0.1:1/v1 m").String(), " of ")
	window, _, _ := strings.Cut(rest, " ")
	return window
}

// haveWindow waits until all processes allow that many concurrent calls.
func haveWindow(t *testing.T, processes []*process, want string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, p := range processes {
			if p.window() != want {
				return false
			}
		}
		return true
	}, time.Minute, 5*time.Millisecond, "no window of %s: %v", want, processes[0].window())
}

// call starts calls of a process. all.Wait waits for them.
func (p *process) call(t *testing.T, all *sync.WaitGroup, calls int) {
	for range calls {
		all.Go(func() {
			_, err := p.client.Complete(t.Context(), &provider.Request{Messages: []provider.Message{{Role: provider.User, Text: "hi"}}})
			if err != nil && t.Context().Err() == nil {
				t.Error(err)
			}
		})
	}
}

// sequence returns the number of entries ever written.
func sequence(t *testing.T, bucket jetstream.KeyValue) uint64 {
	t.Helper()
	status, err := bucket.Status(t.Context())
	require.NoError(t, err)
	return status.(*jetstream.KeyValueBucketStatus).StreamInfo().State.LastSeq
}

// One rejection pauses a hundred processes: none sends a request during the pause. Then one
// process sends one call, and its success lets all others continue.
func TestOneRejectionPausesAll(t *testing.T) {
	t.Parallel()
	url := fleettest.Server(t)
	bucket := makeBucket(t, url)
	probed := make(chan struct{})
	m := newModel(func(n int, _ *process) answer {
		switch n {
		case 1:
			return answer{retryAfter: "3"}
		case 2:
			return answer{after: probed}
		}
		return answer{}
	})
	processes := start(t, 100, url, m, limits.Options{})
	haveWindow(t, processes, "4")

	var all sync.WaitGroup
	processes[0].call(t, &all, 1)
	haveWindow(t, processes, "2")
	for _, p := range processes {
		p.call(t, &all, 2)
	}
	require.True(t, m.arrived(2, time.Minute))
	require.GreaterOrEqual(t, m.at(2).Sub(m.at(1)), 3*time.Second)
	require.False(t, m.arrived(3, time.Second), "a second process tries the water")
	close(probed)
	all.Wait()
	require.Equal(t, 1+1+200, m.count())
	require.LessOrEqual(t, sequence(t, bucket), uint64(20), "the bucket is used for each call")
}

// A rejection of the probe pauses all processes again, for the newly requested time, and halves
// their windows again.
func TestRejectedAgain(t *testing.T) {
	t.Parallel()
	url := fleettest.Server(t)
	probed := make(chan struct{})
	m := newModel(func(n int, _ *process) answer {
		return answer{retryAfter: map[int]string{1: "1", 2: "2"}[n], after: map[int]chan struct{}{3: probed}[n]}
	})
	processes := start(t, 20, url, m, limits.Options{})
	var all sync.WaitGroup
	processes[0].call(t, &all, 1)
	haveWindow(t, processes, "2")
	for _, p := range processes {
		p.call(t, &all, 1)
	}
	require.True(t, m.arrived(3, time.Minute))
	require.GreaterOrEqual(t, m.at(2).Sub(m.at(1)), time.Second)
	require.GreaterOrEqual(t, m.at(3).Sub(m.at(2)), 2*time.Second)
	haveWindow(t, processes, "1")
	close(probed)
	all.Wait()
	require.Equal(t, 2+21, m.count())
}

// Calls of several processes that are rejected together count as one rejection.
func TestRejectedTogether(t *testing.T) {
	t.Parallel()
	const count = 10
	url := fleettest.Server(t)
	bucket := makeBucket(t, url)
	together := make(chan struct{})
	m := newModel(func(n int, _ *process) answer {
		if n <= count {
			return answer{retryAfter: "1", after: together}
		}
		return answer{}
	})
	processes := start(t, count, url, m, limits.Options{})
	var all sync.WaitGroup
	for _, p := range processes {
		p.call(t, &all, 1)
	}
	require.True(t, m.arrived(count, time.Minute))
	close(together)
	haveWindow(t, processes, "2")
	all.Wait()
	for _, p := range processes {
		require.NotEqual(t, "1", p.window())
	}
	require.Equal(t, 2*count, m.count())
	require.Equal(t, uint64(1), entry(t, bucket).Epoch)
}

type content struct {
	State string
	Epoch uint64
}

// entry returns the only entry of a bucket.
func entry(t *testing.T, bucket jetstream.KeyValue) content {
	t.Helper()
	keys, err := bucket.Keys(t.Context())
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.NotContains(t, keys[0], "127.0.0.1")
	e, err := bucket.Get(t.Context(), keys[0])
	require.NoError(t, err)
	require.NotContains(t, string(e.Value()), "127.0.0.1")
	var c content
	require.NoError(t, json.Unmarshal(e.Value(), &c))
	return c
}

// When the process that sends the probe dies, a different one takes over.
func TestProberDies(t *testing.T) {
	t.Parallel()
	url := fleettest.Server(t)
	never := make(chan struct{})
	probers := make(chan *process, 1)
	m := newModel(func(n int, from *process) answer {
		switch n {
		case 1:
			return answer{retryAfter: "1"}
		case 2:
			probers <- from
			return answer{after: never}
		}
		return answer{}
	})
	processes := start(t, 3, url, m, limits.Options{Lease: 2 * time.Second})
	var all sync.WaitGroup
	processes[0].call(t, &all, 1)
	haveWindow(t, processes, "2")
	for _, p := range processes {
		p.call(t, &all, 1)
	}
	prober := <-probers
	prober.conn.Close() // it can no longer write entries
	require.True(t, m.arrived(3, time.Minute))
	require.GreaterOrEqual(t, m.at(3).Sub(m.at(2)), time.Second)
	close(never)
	all.Wait()
}

// A process that stops in an orderly way lets a different one send the probe at once.
func TestProberStops(t *testing.T) {
	t.Parallel()
	url := fleettest.Server(t)
	end := make(chan struct{})
	probers := make(chan *process, 1)
	m := newModel(func(n int, from *process) answer {
		switch n {
		case 1:
			return answer{retryAfter: "1"}
		case 2:
			probers <- from
			return answer{after: end}
		}
		return answer{}
	})
	processes := start(t, 3, url, m, limits.Options{Lease: time.Hour})
	var all sync.WaitGroup
	processes[0].call(t, &all, 1)
	haveWindow(t, processes, "2")
	for _, p := range processes {
		p.call(t, &all, 1)
	}
	(<-probers).stop()
	require.True(t, m.arrived(3, time.Minute))
	close(end)
	all.Wait()
}

// A process that starts during a pause respects it.
func TestLateProcess(t *testing.T) {
	t.Parallel()
	url := fleettest.Server(t)
	m := newModel(func(n int, _ *process) answer {
		if n == 1 {
			return answer{retryAfter: "3"}
		}
		return answer{}
	})
	early := start(t, 2, url, m, limits.Options{})
	var all sync.WaitGroup
	early[0].call(t, &all, 1)
	haveWindow(t, early, "2")
	late := start(t, 1, url, m, limits.Options{})
	haveWindow(t, late, "2")
	late[0].call(t, &all, 1)
	all.Wait()
	require.GreaterOrEqual(t, m.at(2).Sub(m.at(1)), 3*time.Second)
}

// Without the bucket, each limiter acts alone. With the bucket back, they act together.
func TestWithoutBucket(t *testing.T) {
	t.Parallel()
	options := &server.Options{}
	s := fleettest.Start(t, options)
	var rejections sync.Map
	m := newModel(func(_ int, from *process) answer {
		if _, known := rejections.LoadOrStore(from, true); !known {
			return answer{retryAfter: "1"}
		}
		return answer{}
	})
	processes := start(t, 3, s.ClientURL(), m, limits.Options{Timeout: 200 * time.Millisecond})
	s.Shutdown()
	s.WaitForShutdown()
	var all sync.WaitGroup
	for _, p := range processes {
		p.call(t, &all, 3)
	}
	all.Wait()

	again := &server.Options{Port: options.Port, StoreDir: options.StoreDir}
	fleettest.Start(t, again)
	bucket := makeBucket(t, s.ClientURL())
	for _, p := range processes {
		require.Eventually(t, p.conn.IsConnected, time.Minute, 5*time.Millisecond)
	}
	rejections.Clear()
	for _, p := range processes {
		p.call(t, &all, 3)
	}
	all.Wait()
	require.NotZero(t, sequence(t, bucket))
}

func TestShareOnce(t *testing.T) {
	t.Parallel()
	bucket := makeBucket(t, fleettest.Server(t))
	var l provider.Limits
	stop, err := limits.Share(t.Context(), &l, bucket, limits.Options{})
	require.NoError(t, err)
	_, err = limits.Share(t.Context(), &l, bucket, limits.Options{})
	require.EqualError(t, err, "the limits of this process are shared already")
	stop()
	stop()
	stop, err = limits.Share(t.Context(), &l, bucket, limits.Options{})
	require.NoError(t, err)
	stop()
}

func TestShareWithoutServer(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, &server.Options{})
	bucket := makeBucket(t, s.ClientURL())
	s.Shutdown()
	s.WaitForShutdown()
	var l provider.Limits
	_, err := limits.Share(t.Context(), &l, bucket, limits.Options{Timeout: 10 * time.Millisecond})
	require.ErrorContains(t, err, "bucket WAZA_SEARCH_LIMITS: ")
}

// Entries of a different version or a stranger do no harm.
func TestStrangeEntries(t *testing.T) {
	t.Parallel()
	url := fleettest.Server(t)
	bucket := makeBucket(t, url)
	m := newModel(func(n int, _ *process) answer {
		if n == 1 {
			return answer{retryAfter: "1"}
		}
		return answer{}
	})
	processes := start(t, 2, url, m, limits.Options{})
	var all sync.WaitGroup
	processes[0].call(t, &all, 1)
	all.Wait()
	keys, err := bucket.Keys(t.Context())
	require.NoError(t, err)
	for i, value := range []string{
		"", "{", `{"state":"x","epoch":-1}`, `{"state":"paused","pause_ms":-5,"epoch":18446744073709551615}`,
		`{"state":"open"}`,
	} {
		_, err := bucket.PutString(t.Context(), keys[0], value)
		require.NoError(t, err)
		_, err = bucket.PutString(t.Context(), fmt.Sprintf("unknown%d", i), value)
		require.NoError(t, err)
		for _, p := range processes {
			p.call(t, &all, 2)
		}
		all.Wait()
	}
	require.NoError(t, bucket.Delete(t.Context(), keys[0]))
	processes[1].call(t, &all, 2)
	all.Wait()
	_, err = bucket.PutString(t.Context(), keys[0], strings.Repeat("x", 2000))
	require.Error(t, err)
}
