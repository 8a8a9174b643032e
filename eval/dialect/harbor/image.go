package harbor

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/surroundings"
	"waza/eval/text"
)

// outside is the folder of the workspace for files outside of the work folder.
const outside = ".outside"

// defaultWorkdir is the work folder of images that name none.
const defaultWorkdir = "/app"

// maxCopied limits the entries of a folder that is copied into the work folder.
const maxCopied = 1_000

// dockerfile is the file that builds the image.
const dockerfile = "environment/Dockerfile"

// readImage turns the image into a work folder and files, as far as that needs no container. Otherwise the
// task gets the mode container.
func (tr *translator) readImage() {
	for _, name := range []string{"docker-compose.yaml", "docker-compose.yml"} {
		if tr.exists("environment/" + name) {
			tr.block(nil, "environment/%s needs several containers", name)
		}
	}
	tr.workdir = defaultWorkdir
	n := tr.get("environment", "docker_image")
	switch {
	case tr.exists(dockerfile):
		tr.readDockerfile(tr.readText(dockerfile))
	case n != nil:
		tr.needContainer("environment.docker_image is set")
	}
	tr.readOwnVerifiers()
	own := tr.get("environment", "workdir")
	if own != nil {
		tr.workdir = path.Clean(dialect.TextOf(own))
	}
	if surroundings.IsReserved(tr.workdir) {
		tr.needContainer("the work folder %s is a directory of the system", text.Clip(tr.workdir, 80))
	}
	tr.ofImage = len(tr.reasons) > 0 && own == nil
	if tr.ofImage {
		tr.workdir = defaultWorkdir // any name does
	}
	if !path.IsAbs(tr.workdir) || tr.workdir == "/" {
		tr.block(nil, "the work folder %s is not a folder below /", text.Clip(tr.workdir, 80))
		tr.workdir = defaultWorkdir
	}
	if !tr.ofImage {
		tr.paths[tr.workdir] = "."
	}
	files := dialect.List(nil)
	switch {
	case len(tr.reasons) > 0 && !tr.exists(dockerfile): // no image contains them
		if tr.exists("environment") {
			tr.addFile(files, tr.path("environment"), tr.workdir)
		}
	case len(tr.reasons) == 0:
		for _, name := range tr.missing {
			tr.block(nil, "environment/Dockerfile copies %s, which does not exist", text.Clip(name, 80))
		}
		for _, c := range tr.copies {
			tr.addFile(files, c.from, c.to)
		}
		for _, line := range tr.unset {
			tr.warn(nil, "environment/Dockerfile: %s has no effect; use environment.env", text.Clip(line, 80))
		}
	}
	for _, entry := range tr.workdirOf(&tr.steps[0]) {
		tr.addFile(files, entry.from, entry.to)
	}
	if len(files.Content) > 0 {
		tr.inputs.Set("files", files)
	}
}

// needContainer notes why the task needs its image.
func (tr *translator) needContainer(format string, args ...any) {
	tr.reasons = append(tr.reasons, fmt.Sprintf(format, args...))
}

// addContainer sets the mode container with the image of the task, if it needs that. A prebuilt image has
// precedence over a Dockerfile, as for Harbor. The work folder is that of the image.
func (tr *translator) addContainer() {
	if len(tr.reasons) == 0 || len(tr.blocked) > 0 {
		return
	}
	prebuilt := tr.get("environment", "docker_image")
	if prebuilt == nil && !tr.exists(dockerfile) {
		tr.block(nil, "the environment needs %s or docker_image", dockerfile)
		return
	}
	if prebuilt != nil {
		tr.box.Set("image", dialect.Scalar(prebuilt, dialect.TextOf(prebuilt)))
	} else {
		tr.box.Set("dockerfile", dialect.Scalar(nil, dockerfile))
	}
	if tr.ofImage {
		tr.box.Set("image_workdir", dialect.Scalar(nil, true))
	}
	mode := dialect.NewMap(nil)
	mode.Set("mode", dialect.Scalar(prebuilt, "container"))
	if size, at := tr.memory(); at != nil {
		limits := dialect.NewMap(at)
		limits.Set("memory", dialect.Scalar(at, fmt.Sprintf("%dMiB", size)))
		mode.Set("limits", limits.Node)
	}
	tr.config.Set("sandbox", mode.Node)
}

// addSkills gives the agent the skills of environment.skills_dir, if the Dockerfile copies them.
func (tr *translator) addSkills() {
	n := tr.get("environment", "skills_dir")
	if n == nil {
		return
	}
	dir := path.Clean(dialect.TextOf(n))
	for _, c := range slices.Backward(tr.copies) {
		rel, err := filepath.Rel(c.to, dir)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		from := filepath.Join(c.from, rel)
		if info, err := tr.Files.Stat(from); err == nil && info.IsDir() {
			tr.task.Set("skill_directories", dialect.List(n, dialect.Scalar(n, tr.Files.Relative(from))))
			return
		}
	}
	tr.block(n, "environment.skills_dir: environment/Dockerfile copies no folder of the task to %s, so the agent cannot get its skills", text.Clip(dir, 80))
}

// memory returns environment.memory_mb, or the deprecated environment.memory, and its place; nil without one.
func (tr *translator) memory() (size int, at *yaml.Node) {
	if at = tr.get("environment", "memory_mb"); at != nil {
		if at.Decode(&size) != nil || size <= 0 {
			tr.fault(at, "environment.memory_mb must be a number of megabytes, got %s", decode.Describe(at))
			return 0, nil
		}
		return size, at
	}
	if at = tr.get("environment", "memory"); at != nil {
		var ok bool
		if size, ok = megabytes(dialect.TextOf(at)); !ok || size <= 0 {
			tr.fault(at, "environment.memory must be a size such as 2G, got %s", decode.Describe(at))
			return 0, nil
		}
	}
	return size, at
}

// inWorkspace returns the path of a file in the workspace from its absolute one. It adds the directory
// to the paths of the sandbox.
func (tr *translator) inWorkspace(abs string, isFile bool) string {
	if rel, err := filepath.Rel(tr.workdir, abs); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	dir := abs
	if isFile {
		dir = path.Dir(abs)
	}
	if dir != "/" {
		tr.paths[dir] = outside + dir
	}
	return outside + abs
}

// A copied file or folder of the task, and its absolute path in the environment.
type copied struct{ from, to string }

// plainImages are base images whose programs this machine has as well, or which contain nothing of a task.
var plainImages = []string{"ubuntu", "debian", "python"}

// isPlain reports whether an image is one of plainImages, with any tag.
func isPlain(image string) bool {
	image = strings.TrimPrefix(strings.TrimPrefix(image, "docker.io/"), "library/")
	name, _, _ := strings.Cut(image, "@")
	name, _, _ = strings.Cut(name, ":")
	return slices.Contains(plainImages, name)
}

// linesOf returns the lines of a Dockerfile, of which each is an instruction. The lines of a here-document
// are among them.
func linesOf(content string) (lines []string) {
	open := ""
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if start, found := strings.CutSuffix(line, "\\"); found {
			open += start + " "
			continue
		}
		lines, open = append(lines, open+line), ""
	}
	if open != "" {
		lines = append(lines, open)
	}
	return lines
}

// instruction returns the name of the instruction in a line of a Dockerfile, in capitals, and the rest.
func instruction(line string) (name, rest string) {
	i := strings.IndexFunc(line, unicode.IsSpace)
	if i < 0 {
		return strings.ToUpper(line), ""
	}
	return strings.ToUpper(line[:i]), strings.TrimSpace(line[i:])
}

func (tr *translator) readDockerfile(content string) {
	stages, inside := 0, "/"
	for _, line := range linesOf(content) {
		name, rest := instruction(line)
		switch name {
		case "FROM":
			words := slices.DeleteFunc(strings.Fields(rest), func(w string) bool { return strings.HasPrefix(w, "--") })
			switch stages++; {
			case stages > 1:
				tr.needContainer("%s/Dockerfile has several stages", tr.context)
			case len(words) == 0 || !isPlain(words[0]):
				tr.needContainer("%s/Dockerfile starts from %q", tr.context, text.Clip(rest, 80))
			}
		case "WORKDIR":
			if strings.ContainsAny(rest, `$'"`) {
				tr.needContainer("%s/Dockerfile has the work folder %q", tr.context, text.Clip(rest, 80))
				continue
			}
			if !path.IsAbs(rest) {
				rest = path.Join("/", inside, rest)
			}
			inside = path.Clean(rest)
			tr.workdir = inside
		case "COPY", "ADD":
			tr.copies = append(tr.copies, tr.copiesOf(name, rest)...)
		case "RUN":
			if !isHarmless(rest) {
				tr.needContainer("%s/Dockerfile runs %q", tr.context, text.Clip(rest, 80))
			}
		case "ENV", "ARG":
			tr.unset = append(tr.unset, line)
		case "ENTRYPOINT":
			tr.needContainer("%s/Dockerfile has an ENTRYPOINT", tr.context)
			if !tr.quiet {
				tr.warn(nil, "environment/Dockerfile: ENTRYPOINT does not run; start the program in setup.sh of a step, or in the command of the agent")
			}
		case "USER", "VOLUME", "SHELL":
			tr.needContainer("%s/Dockerfile has a %s", tr.context, name)
		}
	}
}

// isHarmless reports whether a command of a Dockerfile only makes directories, or installs bash,
// coreutils and python3, which the machine has.
func isHarmless(command string) bool {
	command = strings.NewReplacer("&&", ";", "||", ";").Replace(command)
	if strings.ContainsAny(command, "|&$`<>()") {
		return false
	}
	for part := range strings.SplitSeq(command, ";") {
		words := strings.Fields(part)
		switch {
		case len(words) == 0:
		case words[0] == "mkdir", words[0] == "rm" && strings.Contains(part, "/var/lib/apt/lists"), slices.Equal(words, []string{"true"}):
		case words[0] == "apt-get" || words[0] == "apt":
			for _, w := range words[1:] {
				if !strings.HasPrefix(w, "-") && !slices.Contains([]string{"update", "install", "clean", "bash", "coreutils", "python3", "ca-certificates"}, w) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// archives are the endings of files that ADD unpacks.
var archives = []string{".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".zst"}

// copiesOf returns the files and folders of a COPY or ADD.
func (tr *translator) copiesOf(name, rest string) (copies []copied) {
	words := strings.Fields(rest)
	if len(words) < 2 || slices.ContainsFunc(words, func(w string) bool {
		if flag, ok := strings.CutPrefix(w, "--"); ok {
			flag, _, _ = strings.Cut(flag, "=")
			return !slices.Contains([]string{"chown", "chmod", "link"}, flag)
		}
		return strings.ContainsAny(w, `*?$[:"'`) || strings.Contains(w, "<<") ||
			name == "ADD" && slices.ContainsFunc(archives, func(end string) bool { return strings.HasSuffix(w, end) })
	}) {
		tr.needContainer("%s/Dockerfile copies %q", tr.context, text.Clip(rest, 80))
		return nil
	}
	words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "--") })
	if len(words) < 2 {
		return nil
	}
	target := words[len(words)-1]
	for _, source := range words[:len(words)-1] {
		from := tr.path(path.Join(tr.context, path.Clean("/"+source)))
		to := target
		if !path.IsAbs(to) {
			to = path.Join(tr.workdir, to)
		}
		info, err := tr.Files.Stat(from)
		switch {
		case err != nil:
			tr.missing = append(tr.missing, source) // the engine reports it if it builds the image
			continue
		case info.IsDir() && tr.exists(tr.context+"/.dockerignore"):
			tr.needContainer("%s/.dockerignore limits the copy of a folder", tr.context)
		case !info.IsDir() && (strings.HasSuffix(target, "/") || target == "." || len(words) > 2 || to == tr.workdir):
			to = path.Join(to, path.Base(source))
		}
		dir := path.Clean(to)
		if !info.IsDir() {
			dir = path.Dir(dir)
		}
		if dir != "/" && surroundings.IsReserved(dir) {
			tr.needContainer("%s/Dockerfile copies %s to %s, a directory of the system", tr.context, text.Clip(source, 80), text.Clip(dir, 80))
		}
		copies = append(copies, copied{from, path.Clean(to)})
	}
	return copies
}

// addFile adds a file or folder of the task at an absolute path of the environment. A folder at the
// work folder is added by its entries, because a suite has no file at the workspace itself.
func (tr *translator) addFile(list *yaml.Node, from, to string) {
	info, err := tr.Files.Stat(from)
	if err != nil {
		tr.block(nil, "%s cannot be read", tr.Files.Shown(from))
		return
	}
	at := tr.inWorkspace(to, !info.IsDir())
	if at != "." {
		f := dialect.NewMap(nil)
		f.Set("path", dialect.Scalar(nil, at))
		f.Set("source", dialect.Scalar(nil, tr.Files.Relative(from)))
		list.Content = append(list.Content, f.Node)
		return
	}
	entries, err := tr.Files.List(from)
	if err != nil || len(entries) > maxCopied {
		tr.block(nil, "%s cannot be read, or has more than %d entries", tr.Files.Shown(from), maxCopied)
		return
	}
	for _, e := range entries {
		tr.addFile(list, filepath.Join(from, e.Name()), path.Join(to, e.Name()))
	}
}

// otherPaths are directories that tasks use without naming them in their environment.
var otherPaths = []string{"/app", "/root", "/workspace", "/custom-workdir", "/logs/artifacts", "/logs/agent"}

// addOtherPaths adds the directories that the texts of the task name.
func (tr *translator) addOtherPaths() {
	if len(tr.reasons) > 0 {
		return // a container has all directories
	}
	for i := range tr.steps {
		if tr.steps[i].own != nil {
			tr.inWorkspace(published, false)
			break
		}
	}
	all := tr.readText("tests/test.sh")
	for i := range tr.steps {
		s := &tr.steps[i]
		all += "\n" + s.prompt
		for _, script := range []string{"tests/test.sh", "solution/solve.sh", "workdir/setup.sh"} {
			all += "\n" + tr.readText(s.file(script))
		}
	}
	for _, dir := range otherPaths {
		if names(all, dir) && tr.paths[dir] == "" && !strings.HasPrefix(tr.workdir+"/", dir+"/") {
			tr.inWorkspace(dir, false)
		}
	}
}

// names reports whether a text names a directory or a file in it: /app and /app/a, but not /apps.
func names(content, dir string) bool {
	for rest := content; ; {
		_, after, found := strings.Cut(rest, dir)
		if !found {
			return false
		}
		if next, _ := utf8.DecodeRuneInString(after); after == "" || next != '_' && next != '-' && !unicode.IsLetter(next) && !unicode.IsDigit(next) {
			return true
		}
		rest = after
	}
}
