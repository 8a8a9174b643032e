package record

import (
	"cmp"
	"fmt"

	"waza/eval/text"
)

// A Revision is the content of a git repository at a commit.
type Revision struct {
	// Name is a tag, a branch or the id of a commit, as the user gave it.
	Name string `json:"name"`
	// Commit is the id that the name resolved to when the run was planned. In a request, it has
	// precedence over the name, which can have moved since.
	Commit string `json:"commit,omitempty"`
}

// maxRevisionName limits the runes of a revision's name in sentences.
const maxRevisionName = 40

// An Arm names the side of a baseline in sentences, such as "with skills at v1.2". The zero value is
// the side of an agent without skills.
type Arm string

// Arm returns the name of the baseline's side, whose agent has the skills of the revision. nil means
// that it has none.
func (r *Revision) Arm() Arm {
	if r == nil {
		return ""
	}
	return Arm("with skills at " + text.ClipRunes(r.Name, maxRevisionName))
}

// Arm returns the name of the baseline's side. A nil BaselineRef has the zero Arm.
func (b *BaselineRef) Arm() Arm {
	if b == nil {
		return ""
	}
	return b.Against.Arm()
}

// String returns the name for any place in a sentence.
func (a Arm) String() string { return cmp.Or(string(a), "without skills") }

// Short returns the name beside the words "with skills".
func (a Arm) Short() string { return cmp.Or(string(a), "without") }

// HasSkills reports whether the agent of the baseline has skills.
func (a Arm) HasSkills() bool { return a != "" }

// A RevisionError reports why the skills at a revision cannot be the baseline of a run.
type RevisionError struct {
	Name string // of the revision
	Err  error
}

func (e *RevisionError) Error() string {
	return fmt.Sprintf("cannot compare with the skills at %q: %v", text.Clip(e.Name, maxRevisionName), e.Err)
}

func (e *RevisionError) Unwrap() error { return e.Err }
