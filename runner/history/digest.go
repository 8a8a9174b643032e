package history

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"strings"

	"waza/eval/text"
	"waza/runner/record"
)

// A normalizer removes differences between trials of the same behavior: ids, paths of
// workspaces, and times in the arguments and results of tools. Times in the agent's own text
// stay, because they can be its answer.
type normalizer struct{ runID string }

func newNormalizer(runID string) *normalizer { return &normalizer{runID} }

// maxNormalized is the longest text, in bytes, in which ids and times are replaced. In longer
// texts only the paths of workspaces are replaced.
const maxNormalized = 256 << 10

var (
	uuids = text.Pattern(`\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b`)
	// ids matches the identifiers of calls and sessions from agents and providers.
	ids       = text.Pattern(`\b(?:call|toolu|msg|chatcmpl|resp|req|ses|session|thread|prt)[_-][A-Za-z0-9_-]{8,}\b`)
	instants  = text.Pattern(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?`)
	spans     = text.Pattern(`\b\d+(?:\.\d+)?\s?(?:ns|µs|ms|s|sec|secs|seconds?)\b`)
	temporary = text.Pattern(`(/(?:private/)?(?:tmp|var/folders)/)[\w.+~/-]*`)
)

// withoutWorkspace removes paths that lead to workspaces of the run, <state>/work/<run>/<trial>,
// and the run's id as a separate word.
func (n *normalizer) withoutWorkspace(s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, n.runID)
		if i < 0 || n.runID == "" {
			b.WriteString(s)
			return b.String()
		}
		from, to := i, i+len(n.runID)
		if from > 0 && s[from-1] == '/' {
			for from > 0 && (s[from-1] == '/' || inName(s[from-1])) {
				from--
			}
		}
		if to < len(s) && s[to] == '/' {
			for to++; to < len(s) && inName(s[to]); to++ {
			}
		}
		b.WriteString(s[:from] + "<workspace>")
		s = s[to:]
	}
}

// inName reports whether a byte can be part of a directory's name; blanks and quotes end a path.
func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._~#-+", c) >= 0 || c >= 0x80
}

// said normalizes the agent's own text.
func (n *normalizer) said(s string) string {
	s = n.withoutWorkspace(s)
	if len(s) > maxNormalized || !strings.ContainsAny(s, "-_") {
		return s
	}
	s = uuids().ReplaceAllString(s, "<id>")
	return ids().ReplaceAllStringFunc(s, func(id string) string {
		if !strings.ContainsAny(id, "0123456789") {
			return id // a word, such as session_management
		}
		return "<id>"
	})
}

// used normalizes the arguments or the result of a tool.
func (n *normalizer) used(s string) string {
	if s = n.said(s); len(s) > maxNormalized {
		return s
	}
	s = instants().ReplaceAllString(s, "<time>")
	return temporary().ReplaceAllString(spans().ReplaceAllString(s, "<time>"), "$1…")
}

// digest identifies the agent's behavior: its answer, its messages, and its tool calls with
// their results. Thoughts and plans do not count.
func (n *normalizer) digest(output string, transcript []record.Entry) string {
	h := sha256.New()
	write(h, "output", n.said(output))
	for i := range transcript {
		switch e := &transcript[i]; e.Type {
		case record.EntryMessage, record.EntrySkill, record.EntryError, record.EntryStop:
			write(h, string(e.Type), e.Role, n.said(e.Text))
		case record.EntryToolCall:
			if c := e.Tool; c != nil {
				write(h, string(e.Type), c.Name, n.used(canonical(c.Arguments)), n.used(canonical(c.Result)), c.Status)
			}
		}
	}
	return string(h.Sum(nil))
}

// write adds texts with their lengths, so that they cannot be confused with each other.
func write(h hash.Hash, texts ...string) {
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s,", len(t), t)
	}
}

// canonical writes JSON in one form, independent of the order of members.
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
