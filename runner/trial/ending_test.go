package trial

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/record"
)

// The first entry that decides a trigger test ends the search. Entries that were read are not read again.
func TestTriggerDecision(t *testing.T) {
	t.Parallel()
	message := record.Entry{Type: record.EntryMessage, Role: "assistant", Text: "x"}
	call := record.Entry{Type: record.EntryToolCall, Tool: &record.ToolCall{Name: "ls"}}
	use := func(skill string) record.Entry { return record.Entry{Type: record.EntrySkill, Text: skill} }
	any, first := &record.TriggerRef{ShouldTrigger: true, Skill: "s"}, &record.TriggerRef{ShouldTrigger: true, Skill: "s", FirstTool: true}
	for name, c := range map[string]struct {
		test    *record.TriggerRef
		entries []record.Entry
		settled []int // after each entry; nil for all
		want    int   // number of entries that decide; 0 for none
	}{
		"skill":           {any, []record.Entry{message, call, use("t"), call, use("s")}, nil, 5},
		"no skill":        {any, []record.Entry{message, call, use("t"), call}, nil, 0},
		"first call":      {first, []record.Entry{message, call, use("s")}, nil, 2},
		"first is a use":  {first, []record.Entry{message, use("s")}, nil, 2},
		"settled later":   {first, []record.Entry{message, call, message, message}, []int{1, 1, 1, 4}, 4},
		"settled never":   {first, []record.Entry{message, call, call}, []int{1, 1, 1}, 0},
		"must not happen": {&record.TriggerRef{Skill: "s"}, []record.Entry{call, use("s")}, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			order := &record.Order{Suite: &eval.Suite{}, Task: &eval.Task{}, Trigger: c.test}
			d := triggerDecision{work: &work{Order: order, shared: &shared{}}}
			var entries []record.Entry
			got := 0
			for i, e := range c.entries {
				entries = append(entries, e)
				settled := len(entries)
				if c.settled != nil {
					settled = c.settled[i]
				}
				if d.made(entries, settled) {
					got = len(entries)
					break
				}
				for j := range d.read {
					entries[j] = use("s") // would decide
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}
