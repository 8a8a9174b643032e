package harbor

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/dialect"
	"waza/eval/text"
)

// outside is the folder of the workspace for files outside of the work folder.
const outside = ".outside"

// defaultWorkdir is the work folder of images that name none.
const defaultWorkdir = "/app"

// maxCopied limits the entries of a folder that is copied into the work folder.
const maxCopied = 1_000

// readImage turns the Dockerfile into a work folder and files, as far as that needs no image.
func (tr *translator) readImage() {
	for _, name := range []string{"docker-compose.yaml", "docker-compose.yml"} {
		if tr.exists("environment/" + name) {
			tr.block(nil, "environment/%s needs containers", name)
		}
	}
	tr.workdir = defaultWorkdir
	var copies []copied
	switch n := tr.get("environment", "docker_image"); {
	case tr.exists("environment/Dockerfile"):
		copies = tr.readDockerfile(tr.readText("environment/Dockerfile"))
	case n != nil:
		tr.block(n, "the task needs the image %s", text.Clip(dialect.TextOf(n), 100))
	}
	if n := tr.get("environment", "workdir"); n != nil {
		tr.workdir = path.Clean(dialect.TextOf(n))
	}
	if !path.IsAbs(tr.workdir) || tr.workdir == "/" {
		tr.block(nil, "the work folder %s is not a folder below /", text.Clip(tr.workdir, 80))
		tr.workdir = defaultWorkdir
	}
	tr.paths[tr.workdir] = "."
	files := dialect.List(nil)
	for _, c := range copies {
		tr.addFile(files, c.from, c.to)
	}
	for _, entry := range tr.workdirOf(&tr.steps[0]) {
		tr.addFile(files, entry.from, entry.to)
	}
	if len(files.Content) > 0 {
		tr.inputs.Set("files", files)
	}
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

func (tr *translator) readDockerfile(content string) (copies []copied) {
	content = strings.ReplaceAll(content, "\\\n", " ")
	stages := 0
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		switch strings.ToUpper(word) {
		case "FROM":
			if stages++; stages > 1 {
				tr.block(nil, "environment/Dockerfile has several stages, so it needs a container")
			}
		case "WORKDIR":
			if tr.workdir = path.Clean(rest); !path.IsAbs(rest) {
				tr.workdir = path.Join(defaultWorkdir, rest)
			}
		case "COPY", "ADD":
			copies = append(copies, tr.copiesOf(rest)...)
		case "RUN":
			if !isHarmless(rest) {
				tr.block(nil, "environment/Dockerfile runs %q, so it needs a container", text.Clip(rest, 80))
			}
		case "ENV", "ARG":
			tr.warn(nil, "environment/Dockerfile: %s has no effect; use environment.env", text.Clip(line, 80))
		}
	}
	return copies
}

// isHarmless reports whether a command of a Dockerfile only makes directories, or installs bash,
// coreutils and python3, which the machine has.
func isHarmless(command string) bool {
	for part := range strings.SplitSeq(strings.NewReplacer("&&", ";", "||", ";").Replace(command), ";") {
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

// copiesOf returns the files and folders of a COPY.
func (tr *translator) copiesOf(rest string) (copies []copied) {
	words := strings.Fields(rest)
	if len(words) < 2 || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--from") || strings.ContainsAny(w, `*?$[:"`) }) {
		tr.block(nil, "environment/Dockerfile copies %q, so it needs a container", text.Clip(rest, 80))
		return nil
	}
	words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "--") })
	if len(words) < 2 {
		return nil
	}
	target := words[len(words)-1]
	for _, source := range words[:len(words)-1] {
		from := tr.path(path.Join("environment", path.Clean("/"+source)))
		to := target
		if !path.IsAbs(to) {
			to = path.Join(tr.workdir, to)
		}
		switch info, err := tr.Files.Stat(from); {
		case err != nil:
			tr.block(nil, "environment/Dockerfile copies %s, which does not exist", text.Clip(source, 80))
			continue
		case info.IsDir() && tr.exists("environment/.dockerignore"):
			tr.block(nil, "environment/.dockerignore limits the copy of a folder, so it needs a container")
		case !info.IsDir() && (strings.HasSuffix(target, "/") || target == "." || len(words) > 2 || to == tr.workdir):
			to = path.Join(to, path.Base(source))
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
	all := tr.readText("tests/test.sh")
	for i := range tr.steps {
		s := &tr.steps[i]
		all += "\n" + s.prompt
		for _, script := range []string{"tests/test.sh", "solution/solve.sh", "workdir/setup.sh"} {
			all += "\n" + tr.readText(s.file(script))
		}
	}
	for _, dir := range otherPaths {
		if strings.Contains(all, dir+"/") && tr.paths[dir] == "" && !strings.HasPrefix(tr.workdir+"/", dir+"/") {
			tr.inWorkspace(dir, false)
		}
	}
}
