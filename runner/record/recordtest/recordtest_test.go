package recordtest

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder records whether a test failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()                   {}
func (r *recorder) Fatalf(_ string, _ ...any) { r.failed = true; runtime.Goexit() }

func fails(f func(testing.TB)) bool {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.failed
}

func TestLookup(t *testing.T) {
	t.Parallel()
	r := Decode(t, []byte(`{"runId":"r","tasks":[
		{"id":"a","verdict":"passed","trials":[{"trialNum":2,"output":"second"},{"trialNum":1,"output":"first"}]},
		{"id":"b","trials":[{"trialNum":1},{"trialNum":1}]},{"id":"c"},{"id":"c"}]}`))
	require.EqualValues(t, "passed", r.Task(t, "a").Verdict)
	require.Equal(t, "first", r.Trial(t, "a", 1).Output)
	require.Equal(t, "second", r.Trial(t, "a", 2).Output)
	for name, f := range map[string]func(testing.TB){
		"no task":      func(t testing.TB) { r.Task(t, "d") },
		"two tasks":    func(t testing.TB) { r.Task(t, "c") },
		"no trial":     func(t testing.TB) { r.Trial(t, "a", 3) },
		"two trials":   func(t testing.TB) { r.Trial(t, "b", 1) },
		"not a result": func(t testing.TB) { Decode(t, []byte("[]")) },
	} {
		require.True(t, fails(f), name)
	}
}
