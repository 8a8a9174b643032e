// Package offer compares the needs of trials with what a machine offers. Call [Of] for the offer
// of this machine, and [Offer.Lacks] with the needs of an order. [Class] names the class of
// orders with the same needs.
package offer

import (
	"os"
	"runtime"
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/executor/acp"
	"waza/runner/grader/builtin"
	"waza/runner/plan"
	"waza/runner/proc"
	"waza/runner/provider"
	"waza/runner/record"
)

// Offer describes what a machine offers to trials. All lists contain each name
// once; all but Sandboxes are sorted. An offer is immutable, so it is safe for concurrent use.
type Offer struct {
	// OS and Arch are those of the program, as in Go. Both count as labels.
	OS   string `json:"os"`
	Arch string `json:"arch"`
	// Executors and Graders are the names that suites can use.
	Executors []string `json:"executors,omitempty"`
	Graders   []string `json:"graders,omitempty"`
	// Agents are the installed presets. It is unknown whether a user is logged in to them.
	Agents []string `json:"agents,omitempty"`
	// Programs are programs on PATH, among some that suites often start.
	Programs []string `json:"programs,omitempty"`
	// Keys are the names of set variables with keys, never their values.
	Keys   []string `json:"keys,omitempty"`
	Labels []string `json:"labels,omitempty"`
	// Sandboxes are the tiers of sandboxes, the strongest first.
	Sandboxes []record.Tier `json:"sandboxes,omitempty"`

	env []string // of this machine; nil in a decoded offer
}

// python is the interpreter that Python assertions need, on PATH or in a variable.
const python, pythonVariable = "python3", "WAZA_PYTHON"

// Of returns the offer of this machine with an environment in the form of os.Environ. It looks
// at files and runs no program.
func Of(labels, env []string) *Offer {
	o := &Offer{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Labels: sorted(labels), env: slices.Clip(env),
		Executors: sorted(plan.Executors.Names()), Graders: sorted(builtin.Graders.Names()), Agents: sorted(acp.Installed(env)),
	}
	if o.env == nil {
		o.env = []string{}
	}
	for _, name := range []string{"bash", "git", "node", "npx", python, "sh"} {
		if o.hasProgram(name) {
			o.Programs = append(o.Programs, name)
		}
	}
	for _, name := range sorted(provider.KeyNames()) {
		if o.hasKey(name) {
			o.Keys = append(o.Keys, name)
		}
	}
	return o
}

func sorted(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// Lacks returns the needs that the machine does not meet, in their order, or nil. An offer of
// this machine also looks for programs and variables that it does not list. For a decoded offer,
// only the lists count.
func (o *Offer) Lacks(needs []record.Need) []record.Need {
	var lacking []record.Need
	for _, n := range needs {
		if !o.meets(n) {
			lacking = append(lacking, n)
		}
	}
	return lacking
}

func (o *Offer) meets(n record.Need) bool {
	switch n.Kind {
	case record.NeedExecutor:
		return slices.Contains(o.Executors, n.Name)
	case record.NeedGrader:
		return slices.Contains(o.Graders, n.Name)
	case record.NeedAgent:
		return slices.Contains(o.Agents, n.Name)
	case record.NeedProgram:
		return slices.Contains(o.Programs, n.Name) || o.hasProgram(n.Name)
	case record.NeedKey:
		return slices.Contains(o.Keys, n.Name) || o.hasKey(n.Name)
	case record.NeedSandbox:
		return slices.Contains(o.Sandboxes, record.Tier(n.Name))
	case record.NeedLabel:
		return n.Name == o.OS || n.Name == o.Arch || slices.Contains(o.Labels, n.Name)
	}
	return false // of a later version
}

// hasProgram reports whether a program is on this machine; false for decoded offers.
func (o *Offer) hasProgram(name string) bool {
	if o.env == nil {
		return false
	}
	if name == python && o.getenv(pythonVariable) != "" {
		return true
	}
	if strings.ContainsRune(name, os.PathSeparator) {
		return proc.Executable(name) == nil
	}
	_, err := proc.LookPath(name, o.env)
	return err == nil
}

// hasKey reports whether a variable with a key is set; false for decoded offers.
func (o *Offer) hasKey(name string) bool {
	return o.env != nil && provider.HasKey(name, o.getenv)
}

// getenv returns the value that a program would see: the last one.
func (o *Offer) getenv(name string) string {
	for _, kv := range slices.Backward(o.env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// With returns an offer whose lists also contain those needs that this machine meets, so that a
// reader of the decoded offer can determine what the machine lacks.
func (o *Offer) With(needs []record.Need) *Offer {
	with := *o
	for _, n := range needs {
		if !o.meets(n) {
			continue
		}
		switch n.Kind {
		case record.NeedProgram:
			with.Programs = sorted(slices.Concat(with.Programs, []string{n.Name}))
		case record.NeedKey:
			with.Keys = sorted(slices.Concat(with.Keys, []string{n.Name}))
		}
	}
	return &with
}

// Line describes in one line what differs between machines: agents, keys, labels, sandboxes and
// the platform.
func (o *Offer) Line() string {
	var parts []string
	for _, p := range []struct {
		one, more string
		names     []string
	}{{"agent", "agents", o.Agents}, {"key", "keys", o.Keys}, {"label", "labels", o.Labels}} {
		if len(p.names) > 0 {
			parts = append(parts, text.Plural(len(p.names), p.one, p.more)+" "+strings.Join(p.names, ", "))
		}
	}
	if len(o.Sandboxes) > 0 { // a worker uses the first, unless an order needs another one
		parts = append(parts, "sandbox "+string(o.Sandboxes[0]))
		if slices.Contains(o.Sandboxes[1:], record.TierContainer) {
			parts[len(parts)-1] += ", " + string(record.TierContainer)
		}
	}
	return strings.Join(append(parts, o.OS+"/"+o.Arch), "; ")
}

// Explain describes why a machine that lacks these needs cannot execute a trial, such as "the
// agent copilot is not installed, and the variable OPENAI_API_KEY is not set". It returns "" if
// nothing is missing.
func Explain(lacking []record.Need) string {
	said := make([]string, len(lacking))
	for i, n := range lacking {
		said[i] = n.String() + " " + lacks(n.Kind)
	}
	switch n := len(said); n {
	case 0, 1:
		return strings.Join(said, "")
	default:
		return strings.Join(said[:n-1], ", ") + ", and " + said[n-1]
	}
}

func lacks(kind record.NeedKind) string {
	switch kind {
	case record.NeedExecutor, record.NeedGrader:
		return "is not part of this waza"
	case record.NeedKey:
		return "is not set"
	case record.NeedLabel:
		return "is not given"
	case record.NeedSandbox:
		return "is not available"
	}
	return "is not installed"
}
