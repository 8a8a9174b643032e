package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// want is a want for a tool.
type want struct {
	tool string
	rank int
}

// offer is a client with tools.
type offer struct {
	id        string
	tools     []string
	lacks     []string // last resort
	refuses   []string
	most      int
	connected bool
	member    *Member[string, *want, *offer, *seat]
}

// seat is a place at a client.
type seat struct {
	at   *offer
	want *want
	lost string // reason
	free func()
}

func (s *seat) Release() { s.free() }

// office is a door with a pool.
type office struct {
	mu      sync.Mutex
	pool    *Pool[string, *want, *offer, *seat]
	changed []string
	gone    []string
	given   func(*seat)
}

func newOffice(change func(*Rules[string, *want, *offer, *seat])) *office {
	o := &office{}
	rules := Rules[string, *want, *offer, *seat]{
		Key: func(w *want) string { return w.tool },
		Fit: func(w *want, x *offer) Fit {
			switch {
			case !slices.Contains(x.tools, w.tool):
				return Never
			case slices.Contains(x.refuses, w.tool):
				return Refused
			case slices.Contains(x.lacks, w.tool):
				return LastResort
			}
			return Able
		},
		Room: func(x *offer) int {
			if !x.connected {
				return 0
			}
			return max(0, x.most-len(x.member.Places()))
		},
		Rank: func(w *want) int { return w.rank },
		Give: func(m *Member[string, *want, *offer, *seat], w *want) *seat {
			s := &seat{at: m.Offer, want: w}
			s.free = func() {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.pool.GiveBack(m, s)
			}
			if o.given != nil {
				o.given(s)
			}
			return s
		},
		Lost:      func(s *seat, why string) { s.lost = why },
		Nobody:    func(w *want) error { return errors.New("nobody has " + w.tool) },
		Changed:   func(x *offer) { o.changed = append(o.changed, x.id) },
		Absent:    func(x *offer) bool { return !x.connected },
		Forgotten: func(x *offer) { o.gone = append(o.gone, x.id) },
		Grace:     time.Minute,
	}
	if change != nil {
		change(&rules)
	}
	o.pool = New(&o.mu, rules)
	return o
}

func (o *office) join(id string, most int, tools ...string) *offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := &offer{id: id, tools: tools, most: most, connected: true}
	x.member = o.pool.Join(id, x)
	o.pool.Offer(x.member)
	return x
}

func (o *office) leave(x *offer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x.connected = false
	o.pool.Disconnected(x.member, x.id+" left")
	o.pool.Forget(x.member)
}

func (o *office) change(x *offer, do func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pool.Change(x.member, do)
	o.pool.Offer(x.member)
}

func (o *office) verify(t require.TestingT) {
	o.mu.Lock()
	defer o.mu.Unlock()
	require.NoError(t, o.pool.Verify())
}

// reserving calls Reserve in its own goroutine.
func (o *office) reserving(ctx context.Context, w want) func() (*seat, error) {
	done := make(chan struct{})
	var s *seat
	var err error
	go func() { s, err = o.pool.Reserve(ctx, &w); close(done) }()
	synctest.Wait()
	return func() (*seat, error) { <-done; return s, err }
}

func TestOrderAndRank(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(nil)
		first := o.reserving(t.Context(), want{"chat", 1})
		second := o.reserving(t.Context(), want{"chat", 1})
		urgent := o.reserving(t.Context(), want{"chat", 0})
		other := o.reserving(t.Context(), want{"paint", 2})
		x := o.join("a", 1, "chat", "paint")
		for _, next := range []func() (*seat, error){urgent, first, second, other} {
			s, err := next()
			require.NoError(t, err)
			require.Equal(t, 1, o.pool.Occupied())
			o.verify(t)
			s.Release()
			s.Release() // has no effect
		}
		require.Zero(t, o.pool.Waiting())
		require.Empty(t, x.member.Places())
	})
}

func TestMembersTakeTurnsUnlessTheyAreSorted(t *testing.T) {
	t.Parallel()
	for _, sorted := range []bool{false, true} {
		o := newOffice(func(r *Rules[string, *want, *offer, *seat]) {
			if sorted {
				r.Before = func(a, b *offer) bool { return a.id < b.id }
			}
		})
		for _, id := range []string{"c", "a", "b"} {
			o.join(id, 1, "chat")
		}
		var got []string
		for range 4 {
			s, err := o.pool.Reserve(t.Context(), &want{"chat", 0})
			require.NoError(t, err)
			got = append(got, s.at.id)
			s.Release()
			o.verify(t)
		}
		if sorted {
			require.Equal(t, []string{"a", "a", "a", "a"}, got)
		} else {
			slices.Sort(got[:3])
			require.Equal(t, []string{"a", "b", "c"}, got[:3])
		}
	}
}

func TestCancelledCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		result := o.reserving(ctx, want{"chat", 1})
		require.Equal(t, 1, o.pool.Waiting())
		cause := errors.New("enough")
		cancel(cause)
		_, err := result()
		require.ErrorIs(t, err, cause)
		require.Zero(t, o.pool.Waiting())

		// A place that comes together with the end of the context goes back.
		o.join("a", 1, "chat")
		o.mu.Lock()
		w := o.pool.Ask(&want{"chat", 1})
		o.pool.Seat(w)
		o.mu.Unlock()
		for s, err := range results(o, ctx, w) {
			if err == nil {
				s.Release()
			}
		}
		require.Zero(t, o.pool.Occupied())
		o.verify(t)
	})
}

// results yields the result of Wait.
func results(o *office, ctx context.Context, w *Waiter[*want, *seat]) func(func(*seat, error) bool) {
	return func(yield func(*seat, error) bool) { yield(o.pool.Wait(ctx, w)) }
}

func TestLastResortAndRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(nil)
		a, b := o.join("a", 1, "chat"), o.join("b", 1, "chat")
		o.change(a, func() { a.lacks = []string{"chat"} })
		s, err := o.pool.Reserve(t.Context(), &want{"chat", 0})
		require.NoError(t, err)
		require.Equal(t, "b", s.at.id)
		waiting := o.reserving(t.Context(), want{"chat", 0})
		o.verify(t)
		o.change(b, func() { b.refuses = []string{"chat"} })
		again, err := waiting()
		require.NoError(t, err)
		require.Equal(t, "a", again.at.id, "it is the last resort now")
		waiting = o.reserving(t.Context(), want{"chat", 0})
		o.change(a, func() { a.refuses = []string{"chat"} })
		_, err = waiting()
		require.EqualError(t, err, "nobody has chat")
		_, err = o.pool.Reserve(t.Context(), &want{"chat", 0})
		require.EqualError(t, err, "nobody has chat")
		o.verify(t)
		s.Release()
		again.Release()
	})
}

func TestGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(nil)
		x := o.join("a", 1, "chat")
		s, err := o.pool.Reserve(t.Context(), &want{"chat", 0})
		require.NoError(t, err)
		o.leave(x)
		time.Sleep(59 * time.Second)
		o.mu.Lock()
		require.Same(t, x.member, o.pool.Member("a"))
		x.connected = true
		o.pool.Returned(x.member)
		o.mu.Unlock()
		time.Sleep(time.Hour)
		require.Empty(t, s.lost, "it returned in time")
		o.leave(x)
		waiting := o.reserving(t.Context(), want{"chat", 0})
		time.Sleep(61 * time.Second)
		synctest.Wait()
		require.Equal(t, "a left", s.lost)
		require.Equal(t, []string{"a"}, o.gone)
		require.Zero(t, o.pool.Members())
		s.Release() // has no effect
		o.verify(t)
		y := o.join("a", 1, "chat")
		s, err = waiting()
		require.NoError(t, err)
		require.Same(t, y, s.at)
		o.leave(y)
		o.mu.Lock()
		o.pool.Close() // stops the timer
		o.mu.Unlock()
	})
}

// Without a grace, places last until they are released.
func TestNoGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(func(r *Rules[string, *want, *offer, *seat]) { r.Grace = 0 })
		x := o.join("a", 1, "chat")
		s, err := o.pool.Reserve(t.Context(), &want{"chat", 0})
		require.NoError(t, err)
		o.leave(x)
		time.Sleep(24 * time.Hour)
		require.Empty(t, s.lost)
		require.Equal(t, 1, o.pool.Members())
		s.Release()
		require.Zero(t, o.pool.Members())
	})
}

func TestParkedCallers(t *testing.T) {
	t.Parallel()
	o := newOffice(nil)
	o.mu.Lock()
	first, second, third := o.pool.Ask(&want{"chat", 1}), o.pool.Ask(&want{"chat", 1}), o.pool.Ask(&want{"chat", 1})
	o.pool.Park(first, "a")
	o.pool.Park(second, "a")
	o.pool.Seat(third)
	require.Equal(t, 3, o.pool.Waiting())
	require.True(t, o.pool.Leave(second))
	require.False(t, o.pool.Leave(second))
	require.NoError(t, o.pool.Verify())
	for _, w := range o.pool.UnparkAll() {
		o.pool.Seat(w)
	}
	require.Empty(t, o.pool.Unpark("a"))
	o.mu.Unlock()
	o.join("b", 1, "chat")
	s, err := o.pool.Wait(t.Context(), first)
	require.NoError(t, err, "it keeps its number")
	s.Release()
	_, err = o.pool.Wait(t.Context(), third)
	require.NoError(t, err)
	o.verify(t)
}

// Classes without waiters do not pile up.
func TestOldClassesAreRemoved(t *testing.T) {
	t.Parallel()
	o := newOffice(nil)
	var tools []string
	for i := range 10 * mostClasses {
		tools = append(tools, fmt.Sprint("tool-", i))
	}
	x := o.join("a", 1, tools...)
	for _, tool := range tools {
		s, err := o.pool.Reserve(t.Context(), &want{tool, 0})
		require.NoError(t, err)
		s.Release()
	}
	require.LessOrEqual(t, len(o.pool.classes), mostClasses+1)
	require.LessOrEqual(t, len(x.member.classes), 3*mostClasses)
	o.verify(t)
}

// TestModel plays random histories against simple rules: a place goes to the waiter that the
// member serves first, no member has more places than room, and each caller gets one place. A
// failure prints a seed for -rapid.seed.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, office: newOffice(nil), offers: map[string]*offer{}}
		m.given = m.check
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m.step()
			m.verify(t)
		}
		for id := range m.offers {
			m.gone(id)
		}
		last := &offer{id: "last", most: 1, connected: true, tools: tools[:]}
		m.offers["last"] = last
		m.mu.Lock()
		last.member = m.pool.Join("last", last)
		m.pool.Offer(last.member)
		for _, w := range m.pool.UnparkAll() {
			m.pool.Seat(w)
		}
		m.mu.Unlock()
		for m.collect() {
			m.release(0)
			m.verify(t)
		}
		require.Empty(t, m.waiting, "a caller never got its place")
		require.Zero(t, m.pool.Waiting())
		require.Zero(t, m.pool.Occupied())
		m.pool.Close()
	})
}

var tools = [...]string{"chat", "paint", "sing"}

type model struct {
	*office
	t       *rapid.T
	offers  map[string]*offer
	waiting []*Waiter[*want, *seat] // callers without a result, in order
	seats   []*seat
}

func (m *model) tool() string { return rapid.SampledFrom(tools[:]).Draw(m.t, "tool") }

func (m *model) step() {
	id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(m.t, "client")
	x := m.offers[id]
	switch what := rapid.SampledFrom([]string{
		"ask", "ask", "ask", "park", "cancel", "join", "join", "return", "leave", "lost", "lacks", "release",
		"release",
	}).Draw(m.t,
		"what"); what {
	case "ask", "park":
		w := &want{m.tool(), rapid.IntRange(0, Ranks-1).Draw(m.t, "rank")}
		m.mu.Lock()
		asked := m.pool.Ask(w)
		if m.waiting = append(m.waiting, asked); what == "park" {
			m.pool.Park(asked, id)
		} else {
			m.pool.Seat(asked)
		}
		m.mu.Unlock()
	case "cancel":
		if n := len(m.waiting); n > 0 {
			w := m.waiting[rapid.IntRange(0, n-1).Draw(m.t, "n")]
			m.mu.Lock()
			require.True(m.t, m.pool.Leave(w))
			m.mu.Unlock()
			m.waiting = slices.DeleteFunc(m.waiting, func(other *Waiter[*want, *seat]) bool { return other == w })
		}
	case "join":
		if x == nil {
			list := []string{m.tool(), m.tool()}
			m.offers[id] = m.join(id, rapid.IntRange(1, 2).Draw(m.t, "most"), list...)
			m.mu.Lock()
			for _, w := range m.pool.Unpark(id) {
				m.pool.Seat(w)
			}
			m.mu.Unlock()
		}
	case "return":
		if x != nil {
			m.mu.Lock()
			m.pool.Returned(x.member)
			x.connected = true
			m.pool.Offer(x.member)
			m.mu.Unlock()
		}
	case "leave":
		if x != nil {
			m.office.leave(x)
			if x.member.Left() {
				delete(m.offers, id)
			}
		}
	case "lost":
		if x != nil {
			m.gone(id)
		}
	case "lacks":
		if x != nil {
			m.change(x, func() { x.lacks = []string{m.tool()} })
		}
	case "release":
		if n := len(m.seats); n > 0 {
			m.release(rapid.IntRange(0, n-1).Draw(m.t, "n"))
		}
	}
	m.collect()
	for id, x := range m.offers {
		if x.member.Left() {
			delete(m.offers, id)
		}
	}
}

// gone removes a client without a grace.
func (m *model) gone(id string) {
	x := m.offers[id]
	m.office.leave(x)
	m.mu.Lock()
	m.pool.LoseAll(x.member, "gone")
	m.mu.Unlock()
	require.True(m.t, x.member.Left())
	m.collect()
	m.seats = slices.DeleteFunc(m.seats, func(s *seat) bool { return s.lost != "" })
	delete(m.offers, id)
}

func (m *model) release(i int) {
	s := m.seats[i]
	m.seats = slices.Delete(m.seats, i, i+1)
	s.Release()
	m.collect()
}

// collect takes the results of callers. It returns whether places are occupied.
func (m *model) collect() bool {
	m.waiting = slices.DeleteFunc(m.waiting, func(w *Waiter[*want, *seat]) bool {
		select {
		case r := <-w.result:
			require.NoError(m.t, r.err)
			require.Same(m.t, w.Want, r.place.want)
			m.seats = append(m.seats, r.place)
			require.Empty(m.t, w.result, "a second place")
			return true
		default:
			return false
		}
	})
	return len(m.seats) > 0
}

// check checks a place when it is given: nobody who waits comes before.
func (m *model) check(s *seat) {
	require.True(m.t, s.at.connected)
	require.Less(m.t, len(s.at.member.Places()), s.at.most)
	require.Contains(m.t, s.at.tools, s.want.tool)
	var served *Waiter[*want, *seat]
	for _, w := range m.waiting {
		if w.Want == s.want {
			served = w
		}
	}
	require.NotNil(m.t, served, "the caller does not wait")
	for _, w := range m.waiting {
		if w.queue == nil || len(w.result) > 0 || !m.serves(s.at, w.Want.tool) {
			continue
		}
		require.LessOrEqual(m.t, cmp.Or(cmp.Compare(served.rank, w.rank), cmp.Compare(served.seq, w.seq)), 0, "another caller comes before")
	}
}

// serves reports whether the client gets callers for the tool.
func (m *model) serves(x *offer, tool string) bool {
	if !slices.Contains(x.tools, tool) || !slices.Contains(x.lacks, tool) {
		return slices.Contains(x.tools, tool)
	}
	for _, other := range m.pool.All() {
		if slices.Contains(other.Offer.tools, tool) && !slices.Contains(other.Offer.lacks, tool) {
			return false
		}
	}
	return true
}
