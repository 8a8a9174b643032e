package provider

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// bubbled returns a client of a fake without a network, for a synctest bubble.
func bubbled(t *testing.T, api API, f *fake, o PoolOptions) Client {
	t.Helper()
	o.Transport, o.Getenv = direct{f}, withKey
	c, err := NewPool(o).Client(context.Background(), api, Endpoint{BaseURL: "http://provider.test/v1"}, "gpt-4o")
	require.NoError(t, err)
	return c
}

// storm makes n calls with the given number of workers, and returns how many succeeded.
func storm(c Client, n, workers int) int {
	var ok atomic.Int64
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range work {
				if _, err := c.Complete(context.Background(), ask("hi")); err == nil {
					ok.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return int(ok.Load())
}

// A provider that rejects everything in its first seconds, or accepts only a few concurrent
// calls, gets few more requests than needed.
func TestStorms(t *testing.T) {
	t.Parallel()
	const calls = 200
	rejections := map[string]func(w http.ResponseWriter){
		"429": func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"429 with Retry-After": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"503": func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"529": func(w http.ResponseWriter) { w.WriteHeader(529) },
		"in the stream": func(w http.ResponseWriter) {
			send(w, `data: {"error":{"type":"overloaded_error","message":"Overloaded"}}`)
		},
	}
	for name, reject := range rejections {
		for _, workers := range []int{1, 8, 200} {
			t.Run(name+" "+strconv.Itoa(workers), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					f := &fake{handle: func(w http.ResponseWriter, _ int) {
						if time.Since(start) < 8*time.Second {
							reject(w)
							return
						}
						time.Sleep(300 * time.Millisecond)
						hello(w)
					}}
					require.Equal(t, calls, storm(bubbled(t, OpenAI, f, PoolOptions{}), calls, workers))
					require.LessOrEqual(t, f.requests(), calls*3/2)
					require.LessOrEqual(t, f.requests(), calls+20)
				})
			})
		}
	}
}

func TestCapacityIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		f := &fake{handle: func(w http.ResponseWriter, _ int) {
			n := running.Add(1)
			defer running.Add(-1)
			most.Store(max(most.Load(), n))
			if n > 10 {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			time.Sleep(time.Second)
			hello(w)
		}}
		start := time.Now()
		require.Equal(t, 400, storm(bubbled(t, OpenAI, f, PoolOptions{}), 400, 100))
		require.LessOrEqual(t, f.requests(), 600)
		require.Greater(t, most.Load(), int64(8), "the capacity of the provider is used")
		require.Less(t, time.Since(start), 200*time.Second)
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	for header, value := range map[string]string{"Retry-After": "7", "Retry-After-Ms": "7000"} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Time
			f := &fake{handle: func(w http.ResponseWriter, n int) {
				at = append(at, time.Now())
				if n == 1 {
					w.Header().Set(header, value)
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				hello(w)
			}}
			reply, err := bubbled(t, OpenAI, f, PoolOptions{}).Complete(context.Background(), ask("hi"))
			require.NoError(t, err)
			require.Equal(t, 2, reply.Tries)
			require.GreaterOrEqual(t, at[1].Sub(at[0]), 7*time.Second)
		})
	}
}

// A call does not start to wait beyond its deadline: the provider's fault must not look like a
// slow agent.
func TestThrottledBeyondDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{handle: func(w http.ResponseWriter, _ int) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}}
		c := bubbled(t, OpenAI, f, PoolOptions{})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := c.Complete(ctx, ask("hi"))
		require.Equal(t, Throttled, KindOf(err), "%v", err)
		require.Zero(t, time.Since(start))
		_, err = c.Complete(ctx, ask("hi")) // the next call waits for its turn until it gives up
		require.Equal(t, Throttled, KindOf(err), "%v", err)
		require.NoError(t, ctx.Err())
		require.Equal(t, 1, f.requests())
	})
}

// A call gives up after a number of tries if the provider stays overloaded.
func TestThrottledForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{handle: func(w http.ResponseWriter, _ int) { w.WriteHeader(529) }}
		reply, err := bubbled(t, Anthropic, f, PoolOptions{}).Complete(context.Background(), ask("hi"))
		require.Equal(t, Throttled, KindOf(err), "%v", err)
		require.Equal(t, maxThrottled+1, reply.Tries)
	})
}

// A call with RetryWithin gives up early while the provider fails, and so does the next one, which
// waits for its turn.
func TestRetryWithin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		after  string
		want   Kind
	}{
		"503":                  {http.StatusServiceUnavailable, "", Throttled},
		"429 with Retry-After": {http.StatusTooManyRequests, "60", Throttled},
		"502":                  {http.StatusBadGateway, "", Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fake{handle: func(w http.ResponseWriter, _ int) {
					time.Sleep(100 * time.Millisecond)
					w.Header().Set("Retry-After", c.after)
					w.WriteHeader(c.status)
				}}
				client := bubbled(t, OpenAI, f, PoolOptions{})
				for range 5 {
					start := time.Now()
					r := ask("hi")
					r.RetryWithin = 1500 * time.Millisecond
					_, err := client.Complete(context.Background(), r)
					require.Equal(t, c.want, KindOf(err), "%v", err)
					require.Less(t, time.Since(start), 2*time.Second)
				}
			})
		})
	}
}

func TestLimiterLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		var slots []*slot
		for range firstWindow {
			s, err := l.acquire(context.Background())
			require.NoError(t, err)
			slots = append(slots, s)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { _, err := l.acquire(ctx); done <- err }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		for _, s := range slots {
			s.done(success, 0)
		}
		require.Zero(t, l.running)
		require.Empty(t, l.waiting)
	})
}

func TestRetryAfterHeader(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "2": 2 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "NaN": 0, "soon": 0,
		"1e300": 24 * time.Hour, "Thu, 01 Jan 2026 00:00:10 GMT": 10 * time.Second, "Thu, 01 Jan 2020 00:00:10 GMT": 0,
	} {
		require.Equal(t, want, retryAfter(http.Header{"Retry-After": {value}}, now), value)
	}
}
