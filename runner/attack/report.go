package attack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/attack/agent"
	"waza/runner/record"
)

// Outcome is how an agent fared in a task.
type Outcome string

// The outcomes of an agent in a task.
const (
	// Passed and Failed: the graders accepted or rejected its work. Only the agent that carries out
	// solutions should pass.
	Passed Outcome = "pass"
	Failed Outcome = "fail"
	// Errored: the graders could not look, or the agent or waza failed.
	Errored Outcome = "error"
	// Unsolved: the task has no solution to carry out.
	Unsolved Outcome = "no solution"
	// Skipped: the agent has nothing to attack, or its work waits for a person or lacks a judge.
	Skipped Outcome = "skipped"
)

// Report is the result of an attack on a suite.
type Report struct {
	// Name is the name of the suite, Path the absolute path of its file.
	Name string `json:"name"`
	Path string `json:"path"`
	// Sandbox is the tier in which the agents and the program graders ran.
	Sandbox record.Tier `json:"sandbox"`
	// Sound reports whether no agent fooled the suite, and all solutions passed.
	Sound bool `json:"sound"`
	// Incomplete reports whether an agent that forges nothing ended in error, so that the suite is
	// not known to be sound.
	Incomplete bool `json:"incomplete"`
	// Agents are those that ran, in order. Tasks have a result of each of them, in the same order.
	Agents []agent.Attacker `json:"agents"`
	Tasks  []AttackedTask   `json:"tasks"`
	// Faults are the faults of the suite, the gravest first.
	Faults []Fault `json:"faults"`
	// Warnings list what this machine lacks for the graders.
	Warnings   []string `json:"warnings,omitempty"`
	DurationMS int64    `json:"durationMs"`
}

// AttackedTask is a task of the suite under attack.
type AttackedTask struct {
	ID      string         `json:"id"`
	Results []TrialOutcome `json:"results"`
}

// TrialOutcome is how one agent fared in a task.
type TrialOutcome struct {
	Agent   string  `json:"agent"`
	Outcome Outcome `json:"outcome"`
	// Reason explains every outcome except a pass; it can be empty.
	Reason string `json:"reason,omitempty"`
	// Accepted lists the graders that accepted the work.
	Accepted []string `json:"accepted,omitempty"`
	// Suspicions are the rules of package suspicion that found a move of the agent, each once.
	Suspicions []string `json:"suspicions,omitempty"`

	types map[string]string // of graders, by name
}

// A Fault is a weakness of the suite, and how to correct it.
type Fault struct {
	// Attack is the name of the agent that found it.
	Attack string `json:"attack"`
	// Graders are those that accepted the work of the agent, or rejected a solution. It is empty if
	// the task has no graders.
	Graders []string `json:"graders"`
	// Tasks are the ids of the tasks in which it did.
	Tasks []string `json:"tasks"`
	// Message is a sentence that names them.
	Message string `json:"message"`
	// Remedy is advice for the author of the suite.
	Remedy string `json:"remedy"`
}

// maxReason limits the reason of an outcome, in bytes.
const maxReason = 600

// resultOf returns how an agent fared in a trial. isJudge reports whether a type of graders asks
// models.
func resultOf(a agent.Attacker, t *record.Trial, isJudge func(typ string) bool) TrialOutcome {
	r := TrialOutcome{Agent: a.Name, types: map[string]string{}}
	rejected, waiting, lacksJudge, broken := "", false, "", ""
	for i := range t.Graders {
		g := &t.Graders[i]
		r.types[g.Name] = g.Type
		switch {
		case g.Optional:
		case g.Error != "" && isJudge(g.Type):
			lacksJudge = cmp.Or(lacksJudge, g.Name+": "+g.Error)
		case g.Error != "":
			broken = cmp.Or(broken, g.Name+": "+g.Error)
		case g.NeedsReview:
			waiting = true
		case g.Passed:
			r.Accepted = append(r.Accepted, g.Name)
		default:
			rejected = cmp.Or(rejected, g.Name+": "+cmp.Or(g.Feedback, "rejected"))
		}
	}
	for _, s := range t.Suspicions {
		if !slices.Contains(r.Suspicions, s.Rule) {
			r.Suspicions = append(r.Suspicions, s.Rule)
		}
	}
	switch {
	case t.Verdict == record.Passed:
		r.Outcome = Passed
	case t.Verdict == record.TimedOut, t.Verdict == record.Failed, rejected != "":
		r.Outcome, r.Reason = Failed, cmp.Or(rejected, t.Error)
	case t.Verdict == record.NeedsReview, waiting && broken == "" && lacksJudge == "" && t.Verdict != record.Errored:
		r.Outcome, r.Reason = Skipped, "waits for the score of a person"
	case t.Verdict == record.Errored && lacksJudge != "" && broken == "":
		r.Outcome, r.Reason = Skipped, "no judge: "+lacksJudge
	default:
		r.Outcome, r.Reason = Errored, cmp.Or(broken, t.Error, string(t.Verdict))
	}
	r.Reason = text.Clip(strings.Join(strings.Fields(r.Reason), " "), maxReason)
	return r
}

// conclude derives the faults from the results.
func (r *Report) conclude() {
	r.Faults, r.Sound = []Fault{}, true
	for _, a := range r.Agents {
		for _, t := range r.Tasks {
			res := t.result(a.Name)
			switch {
			case res == nil:
			case a.Solves && (res.Outcome == Failed || res.Outcome == Errored):
				r.add(a, t, t.rejecting(res), fmt.Sprintf("%s does not pass: %s", "the solution", cmp.Or(res.Reason, "no reason is known")))
			case !a.Solves && res.Outcome == Passed && !t.passedBefore(a.Name):
				r.add(a, t, t.fooled(res), "")
			case !a.Forges() && res.Outcome == Errored:
				r.Incomplete = true
			}
		}
	}
	for i := range r.Faults {
		f := &r.Faults[i]
		f.Message = cmp.Or(f.Message, f.sentence())
		r.Sound = false
	}
}

// sentence names the graders that an agent fooled.
func (f *Fault) sentence() string {
	tasks := text.Plural(len(f.Tasks), "task ", "tasks ") + list(f.Tasks)
	if len(f.Graders) == 0 {
		return fmt.Sprintf("%s passes agent %s, because nothing grades it", tasks, f.Attack)
	}
	return fmt.Sprintf("agent %s fools %s %s in %s", f.Attack, text.Plural(len(f.Graders), "grader", "graders"), list(f.Graders), tasks)
}

// maxListed limits the names in a sentence.
const maxListed = 10

func list(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// add adds a fault, or its task to the same fault about an earlier one.
func (r *Report) add(a agent.Attacker, t AttackedTask, graders []string, message string) {
	same := func(f Fault) bool {
		return f.Attack == a.Name && f.Message == message && slices.Equal(f.Graders, graders)
	}
	if i := slices.IndexFunc(r.Faults, same); i >= 0 && message == "" {
		r.Faults[i].Tasks = append(r.Faults[i].Tasks, t.ID)
		return
	}
	if message != "" {
		message = "task " + t.ID + ": " + message
	}
	r.Faults = append(r.Faults, Fault{Attack: a.Name, Graders: graders, Tasks: []string{t.ID}, Message: message, Remedy: a.Remedy})
}

// result returns the result of an agent; nil if it did not run.
func (t *AttackedTask) result(name string) *TrialOutcome {
	i := slices.IndexFunc(t.Results, func(r TrialOutcome) bool { return r.Agent == name })
	if i < 0 {
		return nil
	}
	return &t.Results[i]
}

// passedBefore reports whether an agent that does nothing passed the task, so that the pass of a
// later one shows nothing new. An agent that repeats its input does nothing, too.
func (t *AttackedTask) passedBefore(name string) bool {
	for _, idle := range []string{agent.Nop, agent.Echo, agent.Copy} {
		if idle == name {
			return false
		}
		if r := t.result(idle); r != nil && r.Outcome == Passed {
			return true
		}
	}
	return false
}

// fooled returns the graders that accepted the work of an agent, without those that accepted
// nothing as well, unless there is no other.
func (t *AttackedTask) fooled(r *TrialOutcome) []string {
	nothing := t.result(agent.Nop)
	if nothing == nil || nothing.Outcome == Passed {
		return slices.Concat([]string{}, r.Accepted)
	}
	only := slices.DeleteFunc(slices.Clone(r.Accepted), func(name string) bool { return slices.Contains(nothing.Accepted, name) })
	if len(only) == 0 {
		return slices.Concat([]string{}, r.Accepted)
	}
	return only
}

// rejecting returns the graders that rejected a solution.
func (t *AttackedTask) rejecting(r *TrialOutcome) []string {
	names := []string{}
	for name := range r.types {
		if !slices.Contains(r.Accepted, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
