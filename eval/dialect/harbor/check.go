package harbor

import (
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/dialect"
	"waza/eval/text"
)

// checkEnvironment reports parts of the environment that a sandbox without an image cannot have.
func (tr *translator) checkEnvironment() {
	tr.checkMachine(tr.get("environment"), "the task")
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

// checkMachine reports needs of an environment that no machine of waza meets.
func (tr *translator) checkMachine(n *yaml.Node, name string) {
	if os := lookup(n, "os"); os != nil && !strings.EqualFold(dialect.TextOf(os), "linux") {
		tr.block(os, "%s needs the system %s", name, text.Clip(dialect.TextOf(os), 40))
	}
	if gpus := lookup(n, "gpus"); gpus != nil && gpus.Value != "0" {
		tr.block(gpus, "%s needs %s GPUs", name, text.Clip(gpus.Value, 20))
	}
	if tpu := lookup(n, "tpu"); tpu != nil {
		tr.block(tpu, "%s needs a TPU", name)
	}
}

// megabytes returns a size of the deprecated form, such as 2G, 1.5G or 512M.
func megabytes(size string) (int, bool) {
	size = strings.ToUpper(strings.TrimSpace(size))
	unit := strings.TrimLeft(size, "0123456789.")
	number, err := strconv.ParseFloat(strings.TrimSuffix(size, unit), 64)
	if err != nil || number > 1<<40 {
		return 0, false
	}
	switch unit {
	case "G":
		return int(number * 1024), true
	case "M":
		return int(number), true
	case "K":
		return int(number / 1024), true
	}
	return 0, false
}

// checkPhases reports keys of agents and verifiers, of the task and its steps, that waza does not have.
func (tr *translator) checkPhases() {
	tr.checkPhase(tr.root, "", &tr.steps[0])
	if tr.isMulti() {
		for i := range tr.steps {
			s := &tr.steps[i]
			tr.checkPhase(s.node, s.where(), s)
			if agent := lookup(s.node, "agent"); hasNetwork(agent) && !tr.isNetworkOfTask(agent) {
				tr.block(agent, "step %s has a network of its own", s.name)
			}
		}
	}
	if n := tr.get("solution", "env"); n != nil && len(dialect.Pairs(n)) > 0 {
		tr.warn(n, "solution.env has no effect: solution/solve.sh gets the environment of the agent")
	}
}

// isNetworkOfTask reports whether the network of the agent of a step is that of the task.
func (tr *translator) isNetworkOfTask(agent *yaml.Node) bool {
	of := tr.get("environment")
	if hasNetwork(tr.get("agent")) {
		of = tr.get("agent")
	}
	own, all := tr.networkOf(agent, "agent"), tr.networkOf(of, "environment")
	return own == nil && all == nil || own != nil && all != nil && slices.Equal(texts(own), texts(all))
}

// texts returns the texts of a scalar or of a list.
func texts(n *yaml.Node) []string {
	list := []string{dialect.TextOf(n)}
	for _, item := range dialect.Items(n) {
		list = append(list, dialect.TextOf(item))
	}
	return list
}

// checkPhase reports keys of one agent and verifier, those of a step or of the task. where starts the messages.
func (tr *translator) checkPhase(n *yaml.Node, where string, s *step) {
	own, mode := lookup(n, "verifier", "environment"), lookup(n, "verifier", "environment_mode")
	switch how := dialect.TextOf(mode); {
	case how != "" && how != "shared" && how != "separate":
		tr.fault(mode, "%sverifier.environment_mode must be shared or separate, got %q", where, text.Clip(how, 40))
	case own != nil && how == "shared":
		tr.fault(own, "%sverifier.environment_mode is shared, so there must be no verifier.environment", where)
	}
	if more := lookup(n, "verifier", "continuous"); more != nil && lookup(more, "enabled") != nil && lookup(more, "enabled").Value == "true" {
		tr.block(more, "%sverifier.continuous grades submissions while the agent works, which waza does not do", where)
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
	tr.checkArtifacts(n, s)
}

// checkForeign reports keys of other tools that look as if they verified something. Harbor ignores them.
func (tr *translator) checkForeign() {
	for _, keys := range [][]string{
		{"verification"}, {"evaluation"}, {"environment", "setup_scripts"}, {"environment", "type"},
		{"environment", "nodes"}, {"task", "time_limit_sec"},
	} {
		if n := tr.get(keys...); n != nil {
			tr.warn(n, "%s is no key of Harbor and has no effect: only the reward of tests/test.sh counts", strings.Join(keys, "."))
		}
	}
}
