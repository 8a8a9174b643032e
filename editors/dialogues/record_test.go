//go:build unix

package dialogues_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder plays the client of a dialogue.
type recorder struct {
	*testing.T
	script []line
	at     int    // in script
	out    []line // the recorded lines
	suite  string // directory of the suite
	gate   string // file that releases waiting trials
	daemon *daemon
	names  *names
	model  model
	owed   map[string]bool // ids of requests that have no reply yet
}

// newRecorder copies the suite to a new directory.
func newRecorder(t *testing.T, script []line) *recorder {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	r := &recorder{T: t, script: script, suite: filepath.Join(dir, "suite"), gate: filepath.Join(dir, "gate"),
		model: model{Runs: map[string]*run{}}, owed: map[string]bool{}}
	require.NoError(t, os.CopyFS(r.suite, os.DirFS(filepath.Join("suites", script[0].Suite))))
	r.names = newNames(r.suite)
	r.daemon = newDaemon(t, script[0].Over == "tcp", "WAZA_STATE="+filepath.Join(dir, "state"), "GATE="+r.gate)
	return r
}

// record plays the whole script and returns the dialogue.
func (r *recorder) record() []line {
	r.daemon.connect(r.T)
	for r.at < len(r.script) {
		l := r.script[r.at]
		if l.recorded() {
			r.hear()
			continue
		}
		r.at++
		switch {
		case l.Client != nil && l.Made == "":
			r.say(l.Client)
		case l.Server != nil:
			r.model.hear(r.T, l.Server)
		case l.Die:
			r.die()
		case l.Expect != nil:
			l.Expect = r.model.expect(r.T)
		}
		r.out = append(r.out, l)
	}
	r.agreeWithDaemon()
	return r.out
}

// say sends a message of the client.
func (r *recorder) say(text json.RawMessage) {
	r.Helper()
	var m message
	require.NoError(r, json.Unmarshal(text, &m))
	if m.ID != nil {
		r.owed[string(m.ID)] = true
		r.model.asked()
	}
	if m.Method == "run.resume" {
		r.openGate()
	}
	var full map[string]any
	require.NoError(r, json.Unmarshal([]byte(r.names.real(string(text))), &full))
	full["jsonrpc"] = "2.0"
	sent, err := json.Marshal(full)
	require.NoError(r, err)
	r.daemon.send(r.T, sent)
}

// hear reads the daemon's messages up to the last of the consecutive server lines in the script,
// and further until all requests are answered. The order of replies and other messages is
// random, so replies are recorded first.
func (r *recorder) hear() {
	end := r.at
	for end < len(r.script) && r.script[end].recorded() {
		end++
	}
	last := landmark(r.T, r.script[end-1].Server)
	r.at = end
	var replies, rest []line
	for seen := false; !seen || len(r.owed) > 0; {
		text := r.names.simplify(r.T, r.daemon.next(r.T))
		var m message
		require.NoError(r, json.Unmarshal(text, &m))
		if m.ID != nil {
			delete(r.owed, string(m.ID))
			replies = append(replies, line{Server: text})
		} else {
			rest = append(rest, line{Server: text})
		}
		seen = seen || landmark(r.T, text) == last
	}
	for _, l := range slices.Concat(replies, rest) {
		r.model.hear(r.T, l.Server)
		r.out = append(r.out, l)
	}
}

// die breaks the connection, on stdio by killing the daemon; waiting trials continue.
func (r *recorder) die() {
	r.daemon.breakOff(r.T)
	r.openGate()
	r.daemon.connect(r.T)
}

func (r *recorder) openGate() {
	r.Helper()
	require.NoError(r, os.WriteFile(r.gate, nil, 0o600))
}

// agreeWithDaemon compares the client's expected state of each run that is over with the
// daemon's results.
func (r *recorder) agreeWithDaemon() {
	r.Helper()
	for id, known := range r.model.Runs {
		if known.Status == "running" || r.names.real(id) == id {
			continue // not over, or invented
		}
		sent, err := json.Marshal(map[string]any{
			"jsonrpc": "2.0", "id": "agree", "method": "run.result",
			"params": map[string]any{"runId": r.names.real(id)},
		})
		require.NoError(r, err)
		r.daemon.send(r.T, sent)
		var reply struct {
			ID     string
			Result result
		}
		for reply.ID != "agree" {
			require.NoError(r, json.Unmarshal(r.daemon.next(r.T), &reply))
		}
		reply.Result.agree(r.T, known)
	}
}
