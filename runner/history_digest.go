package runner

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"regexp"
	"strings"

	"waza/runner/executor"
)

// normalizer takes out of what an agent did that which differs from one trial to
// the next however much the same it does: ids, where its workspace lies and, of what
// tools were given and gave, times. Times that the agent itself tells may be its
// answer, and stay.
type normalizer struct{ workspace *regexp.Regexp }

func newNormalizer(runID string) *normalizer {
	// <state>/work/<run>/<trial>, and the run's id wherever it stands alone.
	return &normalizer{regexp.MustCompile(`(?:[\w.~/-]*/)?` + regexp.QuoteMeta(runID) + `(?:/[\w.#~-]+)?`)}
}

var (
	uuids = regexp.MustCompile(`\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b`)
	// ids are what agents and providers number calls and sessions with.
	ids       = regexp.MustCompile(`\b(?:call|toolu|msg|chatcmpl|resp|req|ses|session|thread|prt)[_-][A-Za-z0-9_-]{8,}\b`)
	instants  = regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?`)
	spans     = regexp.MustCompile(`\b\d+(?:\.\d+)?\s?(?:ns|µs|ms|s|sec|secs|seconds?)\b`)
	temporary = regexp.MustCompile(`(/(?:private/)?(?:tmp|var/folders)/)[\w.+~/-]*`)
)

// said is a text of the agent's own.
func (n *normalizer) said(s string) string {
	s = uuids.ReplaceAllString(n.workspace.ReplaceAllString(s, "<workspace>"), "<id>")
	return ids.ReplaceAllStringFunc(s, func(id string) string {
		if !strings.ContainsAny(id, "0123456789") {
			return id // a word, such as session_management
		}
		return "<id>"
	})
}

// used is what a tool was given, or gave.
func (n *normalizer) used(s string) string {
	s = instants.ReplaceAllString(n.said(s), "<time>")
	return temporary.ReplaceAllString(spans.ReplaceAllString(s, "<time>"), "$1…")
}

// digest names what the agent did: its answer, what it said and which tools it
// used with which results. Thoughts and plans are no deeds.
func (n *normalizer) digest(output string, transcript []executor.Entry) string {
	h := sha256.New()
	write(h, "output", n.said(output))
	for i := range transcript {
		switch e := &transcript[i]; e.Type {
		case executor.EntryMessage, executor.EntrySkill, executor.EntryError, executor.EntryStop:
			write(h, string(e.Type), e.Role, n.said(e.Text))
		case executor.EntryToolCall:
			if c := e.Tool; c != nil {
				write(h, string(e.Type), c.Name, n.used(canonical(c.Arguments)), n.used(canonical(c.Result)), c.Status)
			}
		}
	}
	return string(h.Sum(nil))
}

// write adds texts with their lengths, so that none runs into the next.
func write(h hash.Hash, texts ...string) {
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s,", len(t), t)
	}
}

// canonical writes JSON in one way, whatever the order of its members was.
func canonical(raw json.RawMessage) string {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(b)
}
