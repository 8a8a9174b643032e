package assistant

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/store"
	"waza/runner/provider"
)

// strictStore fails writes that the test names, and records writes under the mutex of the door.
type strictStore struct {
	Store
	desk *desk // nil until the assistants exist

	mu    sync.Mutex
	fails map[string]bool
	held  []string // writes during which the mutex was not free for a second
}

var errDisk = errors.New("the disk is full")

func (s *strictStore) fail(writes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = map[string]bool{}
	for _, name := range writes {
		s.fails[name] = true
	}
}

func (s *strictStore) before(name string) error {
	s.mu.Lock()
	desk, fails := s.desk, s.fails[name]
	s.mu.Unlock()
	if desk != nil {
		free := make(chan struct{})
		go func() {
			desk.mu.Lock()
			defer desk.mu.Unlock()
			close(free)
		}()
		select {
		case <-free:
		case <-time.After(time.Second):
			s.mu.Lock()
			s.held = append(s.held, name)
			s.mu.Unlock()
		}
	}
	if fails {
		return errDisk
	}
	return nil
}

func (s *strictStore) Add(ctx context.Context, a store.Assistant) error {
	return errors.Join(s.before("Add"), s.Store.Add(ctx, a))
}

func (s *strictStore) Activate(ctx context.Context, id string, at time.Time) error {
	return errors.Join(s.before("Activate"), s.Store.Activate(ctx, id, at))
}

func (s *strictStore) Delete(ctx context.Context, id string, at time.Time) error {
	return errors.Join(s.before("Delete"), s.Store.Delete(ctx, id, at))
}

func (s *strictStore) AddSession(ctx context.Context, row store.Session) error {
	return errors.Join(s.before("AddSession"), s.Store.AddSession(ctx, row))
}

func (s *strictStore) Archive(ctx context.Context, row store.Session, at, expires time.Time) error {
	return errors.Join(s.before("Archive"), s.Store.Archive(ctx, row, at, expires))
}

func (s *strictStore) AddMessage(ctx context.Context, row store.Session, m store.Message, expires time.Time) error {
	return errors.Join(s.before("AddMessage"), s.Store.AddMessage(ctx, row, m, expires))
}

func (s *strictStore) AddCommand(ctx context.Context, c *store.Command) error {
	return errors.Join(s.before("AddCommand"), s.Store.AddCommand(ctx, c))
}

func (s *strictStore) UpdateCommand(ctx context.Context, c *store.Command) error {
	return errors.Join(s.before("UpdateCommand"), s.Store.UpdateCommand(ctx, c))
}

func newStrictDesk(t *testing.T, m modelFunc) (*desk, *strictStore) {
	t.Helper()
	s := &strictStore{}
	d := newDesk(t, m, func(o *Options) {
		s.Store = o.Store
		o.Store = s
	})
	s.mu.Lock()
	s.desk = d
	s.mu.Unlock()
	return d, s
}

// The mutex is free during every write, so that a slow disk delays nobody else.
func TestNoWriteHoldsTheMutex(t *testing.T) {
	t.Parallel()
	answers := make(chan struct{})
	d, s := newStrictDesk(t, func(_ context.Context, r *provider.Request) (*provider.Reply, error) {
		if prompt(r) == "two" {
			<-answers
		}
		return says(prompt(r))
	})
	c := d.connect("x")
	d.submit(c, "one")
	session := c.status("one", Completed).SessionID
	_, err := d.Sessions.Archive(session, true)
	require.NoError(t, err)
	d.submit(c, "two")
	c.status("two", Executing)
	d.Disconnect(c)
	close(answers)
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.unreported) == 1
	}, patience, time.Millisecond)
	c = d.connect("x") // reports the end of two
	c.status("two", Completed)
	d.submit(c, "three")
	require.NoError(t, d.Cancel(c, "three"))
	_, err = d.SetStatus(nil, d.bob, Inactive)
	require.NoError(t, err)
	_, err = d.SetStatus(nil, d.bob, Deleted)
	require.NoError(t, err)
	d.Close()
	require.Empty(t, s.held)
}

// Every failed write is reported to the client that caused it.
func TestFailedWritesAreReported(t *testing.T) {
	t.Parallel()
	answers := make(chan struct{})
	d, s := newStrictDesk(t, func(ctx context.Context, r *provider.Request) (*provider.Reply, error) {
		select {
		case <-answers:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return says(prompt(r))
	})
	c := d.connect("x")
	failure := func(command string) {
		t.Helper()
		f := until(c, func(f Failure) bool { return f.CommandID == command })
		require.Equal(t, CodeInternal, f.Fault.Code)
		require.Equal(t, "the server cannot write to its database", f.Fault.Message)
	}
	requireFault := func(err error) {
		t.Helper()
		var f *Fault
		require.ErrorAs(t, err, &f)
		require.Equal(t, CodeInternal, f.Code)
	}

	for _, write := range []string{"AddSession", "AddCommand"} {
		s.fail(write)
		requireFault(d.Submit(c, Submission{ID: "none", Text: "none"}))
	}
	s.fail("UpdateCommand")
	d.submit(c, "start")
	require.Equal(t, "the server cannot write to its database", c.status("start", Failed).Error)
	failure("start")

	s.fail("AddMessage")
	d.submit(c, "message")
	failure("message")
	s.fail()
	answers <- struct{}{}
	c.status("message", Completed)

	d.submit(c, "end")
	c.status("end", Executing)
	s.fail("UpdateCommand")
	answers <- struct{}{}
	require.Equal(t, "end", c.status("end", Completed).Result)
	failure("end")
	s.fail()

	d.submit(c, "report")
	c.status("report", Executing)
	d.Disconnect(c)
	answers <- struct{}{}
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.unreported) == 1
	}, patience, time.Millisecond)
	s.fail("UpdateCommand")
	d.Connect(c)
	require.Equal(t, "report", c.status("report", Completed).Result)
	failure("report")

	s.fail("Activate", "Delete", "Add")
	_, err := d.SetStatus(nil, d.bob, Inactive)
	requireFault(err)
	_, err = d.SetStatus(nil, d.bob, Deleted)
	requireFault(err)
	_, err = d.Create(Draft{Name: "Eve", Instructions: "You are Eve.", Capabilities: []string{"navigate"}})
	requireFault(err)
	require.Equal(t, Active, d.List()[0].Status, "nothing has changed")
}
