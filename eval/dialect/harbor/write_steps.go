package harbor

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"waza/eval/dialect"
)

// stepWriter writes a step: its prompt, its verifier and its files. A task without steps has one.
type stepWriter struct {
	*taskWriter
	written writtenStep // without a name for a task without steps
	prompt  string
	tests   []string // conditions of the shell, if the step has no tests of its own
	limit   float64  // of the verifier, in seconds
	decided bool     // a folder of tests decides
	setup   bool     // setup.sh of its files runs before the prompt
	// graded are files that the workspace gets after the prompt, before graders read it.
	graded []dialect.File
	// programs are the files of the suite in the folder of tests, by their names there.
	programs map[string]string
}

// setupScript is the file of the folder workdir of a step that runs before its prompt.
const setupScript = "setup.sh"

// isMulti reports whether the task has steps.
func (t *taskWriter) isMulti() bool { return t.steps[0].written.Name != "" }

// path returns the path of a file of the step, relative to the task.
func (s *stepWriter) path(name string) string {
	if s.written.Name == "" {
		return name
	}
	return path.Join("steps", s.written.Name, name)
}

// setSteps writes the prompts, and the graders that follow them.
func (t *taskWriter) setSteps() {
	c := t.from
	prompts := append([]string{c.Prompt}, c.FollowUps...)
	points, _ := dialect.Take[[]dialect.CaseCheckpoint](&c.Others, "inputs.checkpoints")
	for _, prompt := range prompts {
		t.steps = append(t.steps, &stepWriter{taskWriter: t, prompt: prompt, limit: verifierTimeout, programs: map[string]string{}})
	}
	multi := len(prompts) > 1 || len(points) > 0
	combined := multi && t.takeCombination()
	if multi {
		t.nameSteps(points)
		t.setCommon(points)
	}
	for i, s := range t.steps {
		s.add(s.path("instruction.md"), s.prompt)
		for k := range points {
			if points[k].AfterTurn == i+1 {
				s.checkpoint(&points[k], combined)
			}
		}
		if i == len(t.steps)-1 && !combined {
			for k := range c.Checks {
				s.check(&c.Checks[k])
			}
		}
		if combined && !s.decided && (t.task.Strategy != "final" || i == len(t.steps)-1) {
			s.lose(true, "turn "+strconv.Itoa(i+1), "each step has a verifier, whose reward counts")
		}
		if s.decided && multi && !combined {
			s.lose(false, "graders", "the reward of the task is the mean of those of its steps")
		}
		s.setTests()
	}
	if multi && !combined && !slices.ContainsFunc(t.steps, func(s *stepWriter) bool { return s.decided || len(s.tests) > 0 }) {
		t.lose(true, "graders", "nothing decides; write tests/test.sh of a step")
	}
}

// takeCombination takes the grader that combines the rewards of steps. It returns false for other graders.
func (t *taskWriter) takeCombination() bool {
	if len(t.from.Checks) != 1 {
		return false
	}
	c := &t.from.Checks[0]
	how, _ := c.Config["combine"].(string)
	if c.Type != "reward" || how == "" || len(c.Config) > 1 || len(c.Others) > 0 {
		return false
	}
	if how != "mean" {
		t.task.Strategy = how
	}
	return true
}

// nameSteps names the steps after the only reward of their checkpoint, or their turn.
func (t *taskWriter) nameSteps(points []dialect.CaseCheckpoint) {
	used := map[string]bool{}
	for i, s := range t.steps {
		name := "step-" + strconv.Itoa(i+1)
		for k := range points {
			if p := &points[k]; p.AfterTurn == i+1 && len(p.Checks) == 1 && p.Checks[0].Type == "reward" {
				if own := strings.Trim(unsafeInName().ReplaceAllString(p.Checks[0].Name, "-"), ".-"); own != "" {
					name = own
				}
			}
		}
		for k := 2; used[strings.ToLower(name)]; k++ {
			name = "step-" + strconv.Itoa(i+1) + strings.Repeat("-", k-1)
		}
		used[strings.ToLower(name)] = true
		s.written.Name = name
	}
}

// setCommon finds the folder of tests that the rewards of all steps share.
func (t *taskWriter) setCommon(points []dialect.CaseCheckpoint) {
	var all []string
	several := false
	for _, p := range points {
		for _, c := range p.Checks {
			if dirs, ok := dialect.TextsIn(c.Config["tests"]); ok && c.Type == "reward" {
				all, several = append(all, dirs[0]), several || len(dirs) > 1
			}
		}
	}
	if len(all) > 0 && len(slices.Compact(slices.Clone(all))) == 1 && (several || len(all) > 1) {
		t.common = all[0]
		t.copy("tests", absolute(t.Dir, t.common))
	}
}

// checkpoint writes the graders after a turn, and the files and commands before the next one.
func (s *stepWriter) checkpoint(p *dialect.CaseCheckpoint, combined bool) {
	if p.AgentTimeout > 0 && (s.written.Agent.Timeout == 0 || p.AgentTimeout < s.written.Agent.Timeout) {
		s.written.Agent.Timeout = p.AgentTimeout
	}
	where := fmt.Sprintf("checkpoint after turn %d", p.AfterTurn)
	for i := range p.Checks {
		c := &p.Checks[i]
		c.Config = maps.Clone(c.Config)
		least, isLeast := c.Config["pass_rewards"].(map[string]any)
		delete(c.Config, "pass_rewards")
		if combined {
			if optional, _ := dialect.Take[bool](&c.Others, "optional"); !optional || c.Type != "reward" {
				s.lose(true, where+": "+c.Named(), "the reward of the task decides, which combines those of its steps")
			}
		}
		s.check(c)
		switch {
		case p.OnFailure != "finish" && isLeast:
			s.lose(!combined, where+": "+c.Named()+" pass_rewards", "a step has them only to skip those after it")
		case p.OnFailure == "finish" && len(least) > 0:
			s.written.MinReward = map[string]float64{}
			for name, v := range least {
				if s.written.MinReward[name], isLeast = dialect.NumberIn(v); !isLeast {
					s.lose(true, where+": "+c.Named()+" pass_rewards", "")
				}
			}
		}
	}
	if p.OnFailure == "finish" && s.written.MinReward == nil || p.OnFailure == "stop" {
		s.written.MinReward = map[string]float64{"reward": 1}
	}
	if len(p.Files)+len(p.Setup) == 0 {
		return
	}
	if p.AfterTurn >= len(s.steps) {
		s.addGraded(p, where)
		return
	}
	next := s.steps[p.AfterTurn]
	if !next.prepare(p.Setup) {
		s.lose(true, where+" setup", "write it as workdir/setup.sh of a step")
	}
	for _, f := range p.Files {
		next.addFile(f)
	}
}

// gradedDir is the folder in that of the tests with the files of graders.
const gradedDir = "files"

// addGraded keeps the files after the last turn, which are for the graders of the task.
func (s *stepWriter) addGraded(p *dialect.CaseCheckpoint, where string) {
	if len(p.Setup) > 0 {
		s.lose(true, where+" setup", "no step follows; write the commands in tests/test.sh")
	}
	if len(s.tests) > 0 && len(p.Files) > 0 {
		s.lose(true, where+" files", "graders of the checkpoint do not see them, and tests/test.sh copies them before all conditions")
	}
	for _, f := range p.Files {
		if strings.HasPrefix(f.Path, outside+"/") {
			s.lose(true, "file "+f.Path, "tests/test.sh copies files to the work folder only")
			continue
		}
		s.graded = append(s.graded, f)
	}
}

// addFile writes a file that the work folder gets before the prompt.
func (s *stepWriter) addFile(f dialect.File) {
	switch {
	case strings.HasPrefix(f.Path, outside+"/"):
		s.lose(true, "file "+f.Path, "a step has files in the work folder only")
	case f.Path == setupScript && !s.setup:
		s.lose(true, "file "+f.Path, "a step runs it")
	default:
		s.put(s.path("workdir/"+f.Path), f)
	}
}

// prepare writes the commands before the prompt: a health check, setup.sh, and a health check. It returns false for
// others.
func (s *stepWriter) prepare(commands []string) bool {
	script := "cd " + shellWord(s.workdir) + " && chmod +x setup.sh && ./setup.sh"
	for _, command := range commands {
		h := healthCheckIn(command)
		switch {
		case command == script && s.isMulti() && !s.setup && s.written.HealthCheck == nil:
			s.setup = true
		case h != nil && !s.setup && s == s.steps[0] && s.task.Environment.HealthCheck == nil:
			s.task.Environment.HealthCheck = h
		case h != nil && s.isMulti() && s.written.HealthCheck == nil:
			s.written.HealthCheck = h
		default:
			return false
		}
	}
	return true
}

// healthCheckIn returns the health check that a command repeats; nil for other commands.
func healthCheckIn(command string) *writtenHealth {
	m := healthCheckOf().FindStringSubmatch(command)
	if m == nil {
		return nil
	}
	h := writtenHealth{Command: strings.ReplaceAll(m[2], `'\''`, "'")}
	h.Timeout, _ = strconv.ParseFloat(m[1], 64)
	h.Retries, _ = strconv.Atoi(m[3])
	h.Interval, _ = strconv.ParseFloat(m[4], 64)
	return &h
}

// setStepTimes sets the limits of steps. The limit of the task is their sum.
func (t *taskWriter) setStepTimes() {
	total, ok := dialect.Take[float64](&t.from.Others, "timeout_seconds")
	sum := 0.0
	for _, s := range t.steps {
		sum += cmp.Or(s.written.Agent.Timeout, noAgentTimeout) + s.limit
		if s.limit != verifierTimeout {
			s.written.Verifier.Timeout = s.limit
		}
	}
	if ok && total != sum {
		t.task.Agent.Timeout = total
		t.lose(false, "timeout_seconds", "each step has limits of its own")
	}
}

// check writes a grader: a verifier, or a condition for the script of one.
func (s *stepWriter) check(c *dialect.Check) {
	left, part := maps.Clone(c.Config), c.Named()
	negate, _ := dialect.Take[bool](&c.Others, "negate")
	optional, _ := dialect.Take[bool](&c.Others, "optional")
	for _, key := range c.Others {
		s.lose(true, part+" "+key.Name, "")
	}
	if s.Templates && dialect.HasVariable(c.Config) {
		s.lose(true, part, "verifiers have no template variables")
	}
	switch {
	case optional:
		s.lose(false, part, "Harbor has one verifier, which decides")
		return
	case c.Type == "reward" && !negate && !s.decided && len(s.tests) == 0 && s.reward(left):
		if !s.isMulti() && c.Name != "reward" || c.Weight != 1 {
			s.lose(false, part, "the only verifier has neither a name nor a weight")
		}
	case c.Type == "program" && s.program(part, left, negate), c.Type == "file" && s.file(left, negate):
		s.lose(false, part, "it becomes a condition in tests/test.sh")
	default:
		s.lose(true, fmt.Sprintf("%s (%s)", part, c.Type), "a verifier is a script: write it as tests/test.sh")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		s.lose(true, fmt.Sprintf("%s (%s) %s", part, c.Type, key), "")
	}
}

// reward writes the folder of tests of a reward. It returns false if it has others, or another network than
// those before.
func (s *stepWriter) reward(left map[string]any) bool {
	dirs, _ := dialect.TextsIn(left["tests"])
	if s.common != "" && len(dirs) > 0 && dirs[0] == s.common {
		dirs = dirs[1:]
	} else if len(dirs) == 0 || s.common != "" {
		return false
	}
	if len(dirs) > 1 || s.network != nil && !reflect.DeepEqual(s.network, networkIn(left)) {
		return false
	}
	delete(left, "tests")
	for _, dir := range dirs {
		s.copy(s.path("tests"), absolute(s.Dir, dir))
	}
	s.taskWriter.network = networkIn(left)
	if workdir, _ := left["workdir"].(string); workdir == s.workdir {
		delete(left, "workdir")
	}
	if limit, ok := dialect.NumberIn(left["timeout"]); ok {
		s.limit = limit
		delete(left, "timeout")
	}
	if env, ok := left["env"].(map[string]any); ok {
		s.written.Verifier.Env = env
		delete(left, "env")
	}
	switch network := left["network"].(type) {
	case string:
		if network == "none" {
			s.task.Environment.Network = "no-network"
			delete(left, "network")
		}
	case []any:
		if hosts, ok := dialect.TextsIn(network); ok {
			s.task.Environment.Network, s.task.Environment.Hosts = "allowlist", hosts
			delete(left, "network")
		}
	}
	s.decided = true
	return true
}

// networkIn returns the network of a reward.
func networkIn(config map[string]any) any { return cmp.Or(config["network"], any("open")) }

func absolute(dir, name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// program writes a program that runs in the workspace and decides by its exit code.
func (s *stepWriter) program(part string, left map[string]any, negate bool) bool {
	command, _ := left["command"].(string)
	given, _ := left["expect"].(map[string]any)
	expect := maps.Clone(given)
	delete(expect, "syntax")
	code, _ := dialect.NumberIn(expect["exit_code"])
	if command == "" || left["trust_workspace"] != true || len(expect) > 1 || len(expect) == 1 && (expect["exit_code"] == nil || code != 0) || s.decided {
		return false
	}
	args, _ := dialect.TextsIn(left["args"])
	words := append([]string{command}, args...)
	if i, file := s.ProgramFile(words); i >= 0 {
		words[i] = "/tests/" + s.copyProgram(file)
		s.lose(false, part, "tests/ has a copy of the program, but not the files that it uses")
	} else if strings.HasPrefix(filepath.ToSlash(filepath.Clean(command)), "../") {
		s.lose(true, part, "its program is not in the folder of the suite; copy it to tests/")
	}
	if given == nil {
		s.lose(true, part, "in Harbor, only the exit code decides, and not a verdict that the program prints")
	}
	for i, w := range words {
		words[i] = shellWord(w)
	}
	for _, key := range []string{"command", "args", "trust_workspace", "network", "expect"} {
		delete(left, key)
	}
	s.tests = append(s.tests, condition(strings.Join(words, " "), negate))
	return true
}

// copyProgram copies a program to the folder of tests, and returns its name there.
func (s *stepWriter) copyProgram(file string) string {
	name := filepath.Base(file)
	for k := 2; name == "test.sh" || name == gradedDir || s.programs[name] != "" && s.programs[name] != file; k++ {
		name = strconv.Itoa(k) + "-" + filepath.Base(file)
	}
	if s.programs[name] == "" {
		s.programs[name] = file
		s.copy(s.path("tests/"+name), file)
	}
	return name
}

// file writes the existence of files as conditions.
func (s *stepWriter) file(left map[string]any, negate bool) bool {
	for _, key := range slices.Sorted(maps.Keys(left)) {
		value := left[key]
		paths, ok := dialect.TextsIn(value)
		if !ok || key != "must_exist" && key != "must_not_exist" || strings.ContainsAny(strings.Join(paths, ""), "*?[{") || s.decided ||
			negate && len(paths)+len(left) > 2 {
			return false
		}
		for _, p := range paths {
			exists := "{ [ -e " + shellWord(p) + " ] || [ -L " + shellWord(p) + " ]; }" // links that lead nowhere exist
			s.tests = append(s.tests, condition(exists, negate != (key == "must_not_exist")))
		}
		delete(left, key)
	}
	return true
}

func condition(command string, negate bool) string {
	if negate {
		return "! " + command
	}
	return command
}

// setTests writes tests/test.sh of conditions, all of which must hold.
func (s *stepWriter) setTests() {
	copied := ""
	switch {
	case len(s.graded) == 0:
	case s.decided:
		s.lose(true, "files after the last turn", "copy them in tests/test.sh")
	case len(s.tests) > 0:
		for _, f := range s.graded {
			s.put(s.path(path.Join("tests", gradedDir, f.Path)), f)
		}
		copied = "cp -R /tests/" + gradedDir + "/. . || exit 1\n"
	}
	switch {
	case s.decided:
	case len(s.tests) == 0 && !s.isMulti():
		s.lose(true, "graders", "nothing decides; write tests/test.sh")
	case len(s.tests) == 0:
		s.add(s.path("tests/test.sh"), "#!/bin/sh\necho 1 >/logs/verifier/reward.txt\n")
	default:
		s.add(s.path("tests/test.sh"), "#!/bin/sh\ncd "+shellWord(s.workdir)+" || exit 1\n"+copied+"if "+strings.Join(s.tests, " &&\n\t")+
			"; then\n\techo 1 >/logs/verifier/reward.txt\nelse\n\techo 0 >/logs/verifier/reward.txt\nfi\n")
	}
}
