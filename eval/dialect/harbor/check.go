package harbor

import (
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/dialect"
	"waza/eval/text"
)

// checkEnvironment reports parts of the environment that a sandbox without an image cannot have.
func (tr *translator) checkEnvironment() {
	if n := tr.get("environment", "os"); n != nil && dialect.TextOf(n) != "linux" {
		tr.block(n, "the task needs the system %s", text.Clip(dialect.TextOf(n), 40))
	}
	if n := tr.get("environment", "gpus"); n != nil && n.Value != "0" {
		tr.block(n, "the task needs %s GPUs", text.Clip(n.Value, 20))
	}
	if n := tr.get("environment", "tpu"); n != nil {
		tr.block(n, "the task needs a TPU")
	}
	for _, key := range []string{"cpus", "memory_mb", "storage_mb", "memory", "storage"} {
		inContainer := len(tr.reasons) > 0
		switch n := tr.get("environment", key); {
		case n == nil, inContainer && strings.HasPrefix(key, "memory"):
		case inContainer:
			tr.warn(n, "environment.%s has no effect on containers", key)
		default:
			tr.warn(n, "environment.%s has no effect; limit the programs of trials with config.sandbox.limits of .waza.yaml", key)
		}
	}
	for _, keys := range [][2]string{{"memory", "memory_mb"}, {"storage", "storage_mb"}} {
		before, now := tr.get("environment", keys[0]), tr.get("environment", keys[1])
		if size, ok := megabytes(dialect.TextOf(before)); before != nil && now != nil && (!ok || strconv.Itoa(size) != now.Value) {
			tr.fault(before, "environment.%s and environment.%s differ; remove the first, which is deprecated", keys[0], keys[1])
		}
	}
}

// megabytes returns a size of the deprecated form, such as 2G.
func megabytes(size string) (int, bool) {
	size = strings.ToUpper(strings.TrimSpace(size))
	unit := strings.TrimLeft(size, "0123456789")
	number, err := strconv.Atoi(strings.TrimSuffix(size, unit))
	if err != nil {
		return 0, false
	}
	switch unit {
	case "G":
		return number * 1024, true
	case "M":
		return number, true
	}
	return 0, false
}

// checkPhases reports keys of agents and verifiers, of the task and its steps, that waza does not have.
func (tr *translator) checkPhases() {
	tr.checkPhase(tr.root, "")
	if tr.isMulti() {
		for i := range tr.steps {
			s := &tr.steps[i]
			tr.checkPhase(s.node, "step "+s.name+": ")
			for _, key := range []string{"network_mode", "allowed_hosts"} {
				if n := lookup(s.node, "agent", key); n != nil {
					tr.block(n, "step %s has a network of its own", s.name)
				}
			}
		}
	}
	if n := tr.get("solution", "env"); n != nil && len(dialect.Pairs(n)) > 0 {
		tr.warn(n, "solution.env has no effect: solution/solve.sh gets the environment of the agent")
	}
}

// checkPhase reports keys of one agent and verifier. where starts the messages.
func (tr *translator) checkPhase(n *yaml.Node, where string) {
	own, mode := lookup(n, "verifier", "environment"), lookup(n, "verifier", "environment_mode")
	switch how := dialect.TextOf(mode); {
	case how != "" && how != "shared" && how != "separate":
		tr.fault(mode, "%sverifier.environment_mode must be shared or separate, got %q", where, text.Clip(how, 40))
	case own != nil && how == "shared":
		tr.fault(own, "%sverifier.environment_mode is shared, so there must be no verifier.environment", where)
	case own != nil:
		tr.block(own, "%sthe verifier needs an environment of its own", where)
	case how == "separate":
		tr.block(mode, "%sthe verifier needs an environment of its own", where)
	}
	for _, phase := range []string{"agent", "verifier"} {
		if user := lookup(n, phase, "user"); user != nil && user.Value != "root" && user.Value != "0" {
			all := "you"
			if len(tr.reasons) > 0 {
				all = "the user of the image"
			}
			tr.warn(user, "%s%s.user has no effect: all programs run as %s", where, phase, all)
		}
	}
	if list := lookup(n, "artifacts"); len(dialect.Items(list)) > 0 {
		tr.warn(list, "%sartifacts has no effect: the record of a run contains the whole workspace as the agent left it, and waza run "+
			"--keep-workspace writes it to a directory", where)
	}
}

// checkForeign reports keys of other tools that look as if they verified something. Harbor ignores them.
func (tr *translator) checkForeign() {
	for _, keys := range [][]string{
		{"verification"}, {"evaluation"}, {"verifier", "collect"}, {"environment", "setup_scripts"}, {"environment", "type"},
		{"environment", "nodes"}, {"task", "time_limit_sec"},
	} {
		if n := tr.get(keys...); n != nil {
			tr.warn(n, "%s is no key of Harbor and has no effect: only the reward of tests/test.sh counts", strings.Join(keys, "."))
		}
	}
}
