package harbor

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/text"
)

// outside is the folder of the workspace for files outside of the work folder.
const outside = ".outside"

// defaultWorkdir is the work folder of images that name none.
const defaultWorkdir = "/app"

// Limits of the files that an image copies. The suite contains their texts.
const (
	maxCopied     = 1_000
	maxCopiedFile = 1 << 20
)

// readImage turns the Dockerfile into a work folder and files, as far as that needs no image.
func (tr *translator) readImage() {
	for _, name := range []string{"docker-compose.yaml", "docker-compose.yml"} {
		if tr.exists("environment/" + name) {
			tr.block(nil, "environment/%s needs containers", name)
		}
	}
	tr.workdir = defaultWorkdir
	files := dialect.List(nil)
	switch n := tr.get("environment", "docker_image"); {
	case tr.exists("environment/Dockerfile"):
		tr.readDockerfile(tr.readText("environment/Dockerfile"), files)
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
	if len(files.Content) > 0 {
		for _, f := range files.Content {
			at := decode.Lookup(f, "path")
			at.Value = tr.inWorkspace(at.Value, true)
		}
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

func (tr *translator) readDockerfile(content string, files *yaml.Node) {
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
			tr.copyFiles(rest, files)
		case "RUN":
			if !isHarmless(rest) {
				tr.block(nil, "environment/Dockerfile runs %q, so it needs a container", text.Clip(rest, 80))
			}
		case "ENV", "ARG":
			tr.warn(nil, "environment/Dockerfile: %s has no effect; use environment.env", text.Clip(line, 80))
		}
	}
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

// copyFiles adds the files of a COPY.
func (tr *translator) copyFiles(rest string, files *yaml.Node) {
	words := strings.Fields(rest)
	if len(words) < 2 || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--from") || strings.ContainsAny(w, `*?$[:"`) }) {
		tr.block(nil, "environment/Dockerfile copies %q, so it needs a container", text.Clip(rest, 80))
		return
	}
	words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "--") })
	target := words[len(words)-1]
	for _, source := range words[:len(words)-1] {
		from := tr.path(path.Join("environment", source))
		info, err := tr.Files.Stat(from)
		to := target
		if !path.IsAbs(to) {
			to = path.Join(tr.workdir, to)
		}
		switch {
		case err != nil:
			tr.block(nil, "environment/Dockerfile copies %s, which does not exist", text.Clip(source, 80))
		case info.IsDir():
			tr.copyTree(from, to, files)
		default:
			if strings.HasSuffix(target, "/") || target == "." || len(words) > 2 || to == tr.workdir {
				to = path.Join(to, path.Base(source))
			}
			tr.copyFile(from, to, files)
		}
	}
}

func (tr *translator) copyTree(from, to string, files *yaml.Node) {
	entries, err := tr.Files.List(from)
	if err != nil {
		tr.block(nil, "%s cannot be read", tr.Files.Shown(from))
		return
	}
	for _, e := range entries {
		at, inside := filepath.Join(from, e.Name()), path.Join(to, e.Name())
		switch {
		case len(files.Content) > maxCopied:
			tr.block(nil, "environment/Dockerfile copies more than %d files", maxCopied)
			return
		case e.IsDir():
			tr.copyTree(at, inside, files)
		case e.Name() != "Dockerfile":
			tr.copyFile(at, inside, files)
		}
	}
}

func (tr *translator) copyFile(from, to string, files *yaml.Node) {
	data, err := tr.Files.Read(from, maxCopiedFile)
	if err != nil || !utf8.Valid(data) {
		tr.block(nil, "%s is not a text of at most 1 MiB, so it needs a container", tr.Files.Shown(from))
		return
	}
	f := dialect.NewMap(nil)
	f.Set("path", dialect.Scalar(nil, path.Clean(to)))
	f.Set("content", dialect.Scalar(nil, string(data)))
	files.Content = append(files.Content, f.Node)
}

// otherPaths are directories that tasks use without naming them in their environment.
var otherPaths = []string{"/app", "/root", "/workspace", "/custom-workdir", "/logs/artifacts", "/logs/agent"}

// addOtherPaths adds the directories that the texts of the task name.
func (tr *translator) addOtherPaths(prompt string) {
	all := prompt + "\n" + tr.readText("tests/test.sh") + "\n" + tr.readText("solution/solve.sh")
	for _, dir := range otherPaths {
		if strings.Contains(all, dir+"/") && tr.paths[dir] == "" && !strings.HasPrefix(tr.workdir+"/", dir+"/") {
			tr.inWorkspace(dir, false)
		}
	}
}
