package proc

import (
	"context"
	"path/filepath"
	"time"
)

// CgroupPath exports cgroupPath for tests.
var CgroupPath = cgroupPath

// HasCgroups reports whether scopes have control groups on this machine.
func HasCgroups() bool {
	g := newCgroup()
	defer g.end()
	return g != nil
}

// WithoutCgroup is like WithScope, but the programs have no control group, as on a machine that
// delegates none.
func WithoutCgroup(ctx context.Context) (context.Context, *Scope) {
	s := &Scope{groups: []*cgroup{{}}}
	return context.WithValue(ctx, scopeKey{}, s), s
}

// Cgroup returns the directory of the scope's control group; empty where it has none.
func (s *Scope) Cgroup() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.groups) == 0 {
		return ""
	}
	return s.groups[len(s.groups)-1].dir
}

// OuterCgroups returns the control group of this process and the one that contains the groups of
// all scopes. They need not exist or be writable.
func OuterCgroups() (own, home string) {
	own, home = ownCgroup(), cgroupDir()
	if home == "" {
		home = filepath.Join(own, "none")
	}
	return own, home
}

// SearchRecentIDs makes End search only the ids that were given since the scope's first program,
// as for a scope that has just started a program.
func (s *Scope) SearchRecentIDs() { s.mark.since.at = time.Now() }

// SearchAllProcesses makes End search all processes, as for a scope that is old.
func (s *Scope) SearchAllProcesses() { s.mark.since.at = time.Time{} }

// Ticks returns the time since the system booted, in the unit of process start times.
func (m Moment) Ticks() uint64 { return m.ticks }
