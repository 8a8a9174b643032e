package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// The clients of BenchmarkFlood. Five of them send as fast as they can.
const (
	routerClients = 100
	extensions    = 50
	flooding      = 5
)

// BenchmarkFlood measures how long clients of the message router and extensions of
// browsers wait for answers while five of them send as fast as they can, and how long
// clients of a bare loop do that sends back what it gets: same clients, with the same
// flood (bare) and without one (calm).
//
// p99_ms should stay under 50, and x_bare under 2.
func BenchmarkFlood(b *testing.B) {
	for b.Loop() {
		doors := flood(b, openBoth(b), flooding)
		bare := flood(b, openBare(b), flooding)
		calm := flood(b, openBare(b), 0)
		b.ReportMetric(milliseconds(quantile(doors, 0.5)), "p50_ms")
		b.ReportMetric(milliseconds(quantile(doors, 0.99)), "p99_ms")
		b.ReportMetric(milliseconds(quantile(bare, 0.99)), "bare_p99_ms")
		b.ReportMetric(milliseconds(quantile(calm, 0.99)), "calm_p99_ms")
		b.ReportMetric(float64(quantile(doors, 0.99))/float64(quantile(bare, 0.99)), "x_bare")
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func quantile(took []time.Duration, q float64) time.Duration {
	slices.Sort(took)
	return took[int(q*float64(len(took)-1))]
}

// peer is a client of either door, or of the bare loop.
type peer struct {
	*websocket.Conn
	// ask is what it sends, and answered whether that is the answer.
	ask      func() []byte
	answered func(msg []byte) bool
}

// place is where peers connect.
type place struct {
	connect func(ctx context.Context, i int) (*peer, error)
}

// openBoth opens both doors in a server.
func openBoth(b *testing.B) *place {
	s, _ := served(b)
	return &place{func(ctx context.Context, i int) (*peer, error) {
		if i < routerClients {
			return registered(ctx, s.addresses["router"].String(), i)
		}
		return extension(ctx, s.addresses["browser"].String())
	}}
}

// registered connects a client of the router. Registering once more is answered, too.
func registered(ctx context.Context, address string, i int) (*peer, error) {
	ws, _, err := websocket.Dial(ctx, "ws://"+address, nil)
	if err != nil {
		return nil, err
	}
	msg := fmt.Appendf(nil, `{"type":"registration","payload":{"name":"client-%d","description":"I take messages of kind %d."}}`, i, i)
	if err := ws.Write(ctx, websocket.MessageText, msg); err != nil {
		return nil, err
	}
	_, answer, err := ws.Read(ctx)
	if err == nil && !strings.Contains(string(answer), `"success":true`) {
		err = fmt.Errorf("%s", answer)
	}
	return &peer{
		ws, func() []byte { return msg },
		func(msg []byte) bool { return strings.Contains(string(msg), "registration_response") },
	}, err
}

// extension connects an extension, which sends pings.
func extension(ctx context.Context, address string) (*peer, error) {
	ws, _, err := websocket.Dial(ctx, "ws://"+address+"/ws?version=1.0.0&extension_id="+uuid.NewString(), nil)
	if err != nil {
		return nil, err
	}
	if _, _, err := ws.Read(ctx); err != nil { // connected
		return nil, err
	}
	return &peer{ws, func() []byte {
		return fmt.Appendf(nil, `{"type":"ping","id":%q,"timestamp":%d,"payload":{}}`, uuid.NewString(), time.Now().UnixMilli())
	}, func(msg []byte) bool { return strings.Contains(string(msg), `"pong"`) }}, nil
}

// openBare opens a server that sends back what it gets, without anything else.
func openBare(b *testing.B) *place {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		for {
			kind, msg, err := ws.Read(r.Context())
			if err != nil || ws.Write(r.Context(), kind, msg) != nil {
				return
			}
		}
	}))
	b.Cleanup(server.Close)
	return &place{func(ctx context.Context, i int) (*peer, error) {
		ws, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(server.URL, "http"), nil)
		msg, _ := json.Marshal(map[string]any{"type": "ping", "id": uuid.NewString(), "timestamp": i, "payload": map[string]any{}})
		return &peer{ws, func() []byte { return msg }, func([]byte) bool { return true }}, err
	}}
}

// asks is how often each client asks, at a pace that the doors allow.
const (
	asks = 40
	pace = 50 * time.Millisecond
)

// flood returns how long the answers took of all clients but the senders of the flood.
func flood(b *testing.B, p *place, senders int) []time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	peers := make([]*peer, routerClients+extensions)
	for i := range peers {
		var err error
		peers[i], err = p.connect(ctx, i)
		require.NoError(b, err)
		peers[i].SetReadLimit(1 << 20)
		defer peers[i].CloseNow()
	}
	var sending, asking sync.WaitGroup
	for i := range senders {
		at := peers[i]
		if i%2 == 1 {
			at = peers[len(peers)-1-i] // an extension
		}
		sending.Go(func() {
			for ctx.Err() == nil && at.Write(ctx, websocket.MessageText, at.ask()) == nil {
			}
		})
		sending.Go(func() {
			for ctx.Err() == nil {
				if _, _, err := at.Read(ctx); err != nil {
					return
				}
			}
		})
	}
	var mu sync.Mutex
	var took []time.Duration
	for i, at := range peers {
		if i < flooding || i >= len(peers)-flooding {
			continue
		}
		asking.Go(func() {
			mine, err := at.measure(ctx, time.Duration(i)*pace/time.Duration(len(peers)))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				b.Error(err)
			}
			took = append(took, mine...)
		})
	}
	asking.Wait()
	cancel()
	sending.Wait()
	require.NotEmpty(b, took)
	return took
}

// measure asks at a steady pace and returns how long each answer took.
func (p *peer) measure(ctx context.Context, offset time.Duration) ([]time.Duration, error) {
	took := make([]time.Duration, 0, asks)
	tick := time.NewTicker(pace)
	defer tick.Stop()
	time.Sleep(offset) // clients are not in step
	for range asks {
		start := time.Now()
		if err := p.Write(ctx, websocket.MessageText, p.ask()); err != nil {
			return took, err
		}
		for {
			_, msg, err := p.Read(ctx)
			if err != nil {
				return took, err
			}
			if p.answered(msg) {
				break
			}
		}
		took = append(took, time.Since(start))
		<-tick.C
	}
	return took, nil
}
