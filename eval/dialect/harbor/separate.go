package harbor

import (
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/surroundings"
	"waza/eval/text"
)

// published is the folder whose files Harbor always takes out of the sandbox of the agent.
const published = "/logs/artifacts"

// mainService is the container of the agent among several of a task.
const mainService = "main"

// An ownVerifier is a verifier with an environment of its own.
type ownVerifier struct {
	node       *yaml.Node // verifier.environment, or environment
	image      *yaml.Node // environment.docker_image; nil if dockerfile is built
	dockerfile string     // relative to the task
	tests      string     // the folder that it is built from, relative to the task
	workdir    string     // absolute; empty means that of the image
}

// isSeparate reports whether the verifier of a step has an environment of its own. A step without a mode and
// an environment is like the task.
func (tr *translator) isSeparate(s *step) bool {
	for _, n := range []*yaml.Node{s.node, tr.root} {
		mode, own := dialect.TextOf(lookup(n, "verifier", "environment_mode")), lookup(n, "verifier", "environment")
		if mode != "" || own != nil {
			return mode == "separate" || mode == "" && own != nil
		}
	}
	return false
}

// readOwnVerifiers reads the environments of separate verifiers. They decide whether the task needs a container.
func (tr *translator) readOwnVerifiers() {
	for i := range tr.steps {
		if s := &tr.steps[i]; tr.isSeparate(s) {
			s.own = tr.ownVerifierOf(s)
		}
	}
}

// ownVerifierOf returns the environment of the verifier of a step; nil after it blocked the task.
func (tr *translator) ownVerifierOf(s *step) *ownVerifier {
	o := &ownVerifier{node: tr.keyOf(s, "verifier", "environment"), tests: "tests"}
	if o.node == nil {
		o.node = tr.get("environment")
	}
	if s.name != "" && tr.exists(s.file("tests")) {
		o.tests = s.file("tests")
	}
	if n := lookup(o.node, "workdir"); n != nil {
		o.workdir = path.Clean(dialect.TextOf(n))
	}
	if n := lookup(o.node, "healthcheck"); n != nil && o.node != tr.get("environment") {
		tr.warn(n, "verifier.environment.healthcheck has no effect")
	}
	if o.node != tr.get("environment") {
		tr.checkMachine(o.node, "the verifier")
	}
	o.image, o.dockerfile = lookup(o.node, "docker_image"), o.tests+"/Dockerfile"
	for _, name := range []string{"docker-compose.yaml", "docker-compose.yml"} {
		if tr.exists(o.tests + "/" + name) {
			tr.block(nil, "%s%s/%s needs several containers", s.where(), o.tests, name)
		}
	}
	switch {
	case o.image != nil:
		tr.needContainer("the verifier has an image")
	case !tr.exists(o.dockerfile):
		tr.block(s.node, "%sthe verifier has an environment of its own, which needs %s or docker_image", s.where(), o.dockerfile)
		return nil
	default:
		tr.readOwnDockerfile(o)
	}
	return o
}

// readOwnDockerfile reads the Dockerfile of a verifier. It needs no container if it only puts its folder to
// /tests.
func (tr *translator) readOwnDockerfile(o *ownVerifier) {
	sub := &translator{Translation: tr.Translation, root: tr.root, dir: tr.dir, context: o.tests, workdir: "/", paths: map[string]string{}, quiet: true}
	sub.readDockerfile(tr.readText(o.dockerfile))
	for _, c := range sub.copies {
		rel, found := strings.CutPrefix(c.from, tr.path(o.tests))
		if !found || path.Join("/tests", rel) != c.to {
			sub.needContainer("%s copies files to %s", o.dockerfile, text.Clip(c.to, 80))
		}
	}
	if len(sub.copies) == 0 || len(sub.missing)+len(sub.unset) > 0 {
		sub.needContainer("%s does not only copy its folder to /tests", o.dockerfile)
	}
	if len(sub.reasons) > 0 {
		tr.needContainer("the verifier: %s", sub.reasons[0])
	} else if o.workdir == "" && sub.workdir != "/" {
		o.workdir = sub.workdir
	}
}

// setOwn sets the options of a separate verifier.
func (tr *translator) setOwn(s *step, options dialect.Map) {
	o := s.own
	separate := dialect.NewMap(o.node)
	if len(tr.reasons) > 0 {
		if o.image != nil {
			separate.Set("image", dialect.Scalar(o.image, dialect.TextOf(o.image)))
		} else {
			separate.Set("dockerfile", dialect.Scalar(nil, o.dockerfile))
		}
	}
	if o.workdir != "" {
		separate.Set("workdir", dialect.Scalar(o.node, o.workdir))
	}
	artifacts := dialect.List(nil)
	for _, a := range append([]artifact{{source: published}}, tr.artifactsOf(s)...) {
		one := dialect.NewMap(a.at)
		one.Set("source", dialect.Scalar(a.at, a.source))
		if len(dialect.Items(a.exclude)) > 0 {
			one.Set("exclude", a.exclude)
		}
		artifacts.Content = append(artifacts.Content, one.Node)
	}
	separate.Set("artifacts", artifacts)
	options.Set("separate", separate.Node)
}

// setCollect sets the commands that run after the agent.
func (tr *translator) setCollect(s *step, options dialect.Map) {
	commands := dialect.List(nil)
	for _, n := range dialect.Items(tr.keyOf(s, "verifier", "collect")) {
		command := lookup(n, "command")
		switch service := dialect.TextOf(lookup(n, "service")); {
		case dialect.TextOf(command) == "":
			tr.warn(n, "an entry of verifier.collect without command has no effect")
			continue
		case service != "" && service != mainService:
			tr.block(n, "a command of verifier.collect runs in the container %q, and waza has only that of the agent", text.Clip(service, 40))
			continue
		}
		if user := lookup(n, "user"); user != nil {
			tr.warn(user, "user of verifier.collect has no effect: the command runs as the user of the agent")
		}
		one := dialect.NewMap(n)
		one.Set("command", dialect.Scalar(command, command.Value))
		one.Set("timeout", dialect.Scalar(lookup(n, "timeout_sec"), tr.collectTimeout(n)))
		commands.Content = append(commands.Content, one.Node)
	}
	if len(commands.Content) > 0 {
		options.Set("collect", commands)
	}
}

// collectTimeout returns the limit of a command that runs after the agent, in seconds.
func (tr *translator) collectTimeout(n *yaml.Node) float64 {
	return tr.seconds(lookup(n, "timeout_sec"), collectTimeout, "timeout_sec of verifier.collect")
}

// An artifact is a file or a folder that is taken out of the sandbox of the agent.
type artifact struct {
	at      *yaml.Node
	source  string // absolute
	exclude *yaml.Node
}

// artifactsOf returns the artifacts of a step: those of the task, and its own.
func (tr *translator) artifactsOf(s *step) (list []artifact) {
	nodes := dialect.Items(tr.get("artifacts"))
	if s.name != "" {
		nodes = append(slices.Clone(nodes), dialect.Items(lookup(s.node, "artifacts"))...)
	}
	for _, n := range nodes {
		source := dialect.TextOf(n)
		if n.Kind == yaml.MappingNode {
			source = dialect.TextOf(lookup(n, "source"))
		}
		if service := dialect.TextOf(lookup(n, "service")); service != "" && service != mainService {
			continue
		}
		if source == "" || slices.Contains(strings.Split(source, "/"), "..") || tr.ofImage && !path.IsAbs(source) {
			continue // checkArtifacts reports it
		}
		if !path.IsAbs(source) {
			source = path.Join(tr.workdir, source)
		}
		if source = path.Clean(source); untransferable(source) != "" || isRewards(source) {
			continue // checkArtifacts reports it
		}
		list = append(list, artifact{n, source, lookup(n, "exclude")})
	}
	return list
}

// untransferable returns the reason why waza gives no separate verifier an artifact; empty if it does.
func untransferable(source string) string {
	switch {
	case source == "/":
		return "is the whole sandbox"
	case path.Dir(source) == "/" && path.Ext(source) != "":
		return "is a file directly below /; put it into a folder"
	case source == "/tests" || strings.HasPrefix(source, "/tests/"):
		return "is in /tests, and an agent must not change the tests of the verifier"
	}
	return ""
}

// isRewards reports whether an artifact is in the folder of the rewards, which is empty when the agent ends.
func isRewards(source string) bool {
	return source == "/logs/verifier" || strings.HasPrefix(source, "/logs/verifier/")
}

// needsSeparate reports whether a separate verifier gets the artifacts of a step or, in root, of the task.
func (tr *translator) needsSeparate(n *yaml.Node, s *step) bool {
	if n == tr.root && tr.isMulti() {
		return slices.ContainsFunc(tr.steps, func(s step) bool { return tr.isSeparate(&s) })
	}
	return tr.isSeparate(s)
}

// checkArtifacts reports artifacts that waza cannot take, and makes those outside of the work folder a part of
// the workspace, as far as that changes nothing for the agent.
func (tr *translator) checkArtifacts(n *yaml.Node, s *step) {
	separate := tr.needsSeparate(n, s)
	for i, item := range dialect.Items(lookup(n, "artifacts")) {
		source := dialect.TextOf(item)
		if item.Kind == yaml.MappingNode {
			source = dialect.TextOf(lookup(item, "source"))
			if service := dialect.TextOf(lookup(item, "service")); service != "" && service != mainService {
				tr.block(item, "an artifact is in the container %q, and waza has only that of the agent", text.Clip(service, 40))
				continue
			}
		}
		switch {
		case source == "":
			tr.fault(item, "an artifact must be a path, or a map with source, got %s", decode.Describe(item))
			continue
		case slices.Contains(strings.Split(source, "/"), ".."):
			tr.fault(item, "the artifact %q must not contain ..", text.Clip(source, 80))
			continue
		case tr.ofImage && !path.IsAbs(source):
			if separate {
				tr.block(item, "the artifact %q is relative to a work folder that only the image knows; write its absolute path", text.Clip(source, 80))
			}
			continue // in the work folder of the image
		case !path.IsAbs(source):
			source = path.Join(tr.workdir, source)
		}
		source = path.Clean(source)
		if why := untransferable(source); why != "" && separate {
			tr.block(item, "artifacts[%d], %q, %s", i, text.Clip(source, 80), why)
			continue
		}
		if isRewards(source) && separate {
			tr.warn(item, "artifacts[%d] has no effect: %s belongs to the verifier, and is empty in the sandbox of the agent", i, text.Clip(source, 80))
			continue
		}
		inside := !tr.ofImage && (source == tr.workdir || strings.HasPrefix(source, tr.workdir+"/"))
		isPublished := source == published || strings.HasPrefix(source, published+"/")
		switch {
		case inside:
		case isPublished:
			tr.inWorkspace(published, false)
		case len(tr.reasons) == 0 && !surroundings.IsReserved(path.Dir(source)):
			tr.inWorkspace(source, true)
		case separate:
		default:
			tr.warn(item, "the record of a run does not contain the artifact %s unless it is in the work folder or in %s", text.Clip(source, 80), published)
		}
	}
}
