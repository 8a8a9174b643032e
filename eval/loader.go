package eval

import (
	"path/filepath"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/reach"
)

// A loader is shared by everything that reads one suite. It holds the options, the findings, and
// the paths and files that they refer to. Types such as [graderLoader], [executorLoader],
// [matrixLoader], [skillLoader] and [taskSet] embed it and load one part each. [loader.load]
// calls them in order.
type loader struct {
	decode.Findings
	options  Options
	suite    *Suite
	shownDir string         // the suite's directory as the caller wrote it
	src      *decode.Source // the suite file
	skills   *skillLoader
	matrix   map[string]matrixNodes
	texts    []string // of the YAML files that were read

	fixtures     map[string]string // texts of fixtures in prompts, by path
	fixtureBytes int               // of all of them

	skillsNamed []namedSkill // by options of graders
}

// dependsOn reports the paths that the suite depends on to the caller of Load.
func (l *loader) dependsOn(paths ...string) {
	l.options.view().Note(paths...)
}

// MaxFixtureBytes limits a file that is put into a workspace, maxTaskFixtures all such files of
// one task. Every trial copies them.
const (
	MaxFixtureBytes = 1 << 30
	maxTaskFixtures = 4 << 30
)

// Size limits of the files that are read. A file that is too large is refused before its first
// byte is read.
const (
	maxYAMLBytes    = decode.MaxTextBytes
	maxPromptBytes  = decode.MaxTextBytes
	maxDatasetBytes = 64 << 20
)

// readFile returns the content of a file of the suite of at most limit bytes, or of the editor's
// unsaved copy of it. [reach.Places.Open] documents the files that it refuses.
func (l *loader) readFile(path string, limit int64) ([]byte, error) {
	return l.read(path, limit, l.suite.ReadFile)
}

// readSkill is like readFile, for the files of a skill.
func (l *loader) readSkill(path string, limit int64) ([]byte, error) {
	return l.read(path, limit, l.suite.ReadSkill)
}

// readNear is like readFile, for a file above the suite. It refuses a link that leads out of the
// file's directory.
func (l *loader) readNear(path string, limit int64) ([]byte, error) {
	return l.read(path, limit, func(path string, limit int64) ([]byte, error) {
		if reach.Within(l.root(), path) {
			return l.suite.ReadFile(path, limit)
		}
		f, err := files.OpenNamed(filepath.Dir(path), "its directory", path)
		return files.ReadOpened(f, err, limit)
	})
}

func (l *loader) read(path string, limit int64, read func(path string, limit int64) ([]byte, error)) ([]byte, error) {
	return l.options.view().Read(path, limit, read)
}

// display returns an absolute path as the caller of Load would write it: relative to the
// caller's path of the suite.
func (l *loader) display(abs string) string {
	rel, err := filepath.Rel(l.suite.Dir, abs)
	if err != nil {
		return filepath.ToSlash(abs)
	}
	return filepath.ToSlash(filepath.Join(l.shownDir, rel))
}

// parse reads a YAML file of the suite, see [parse].
func (l *loader) parse(path string, data []byte) *decode.Source {
	src := decode.Parse(path, l.display(path), data, &l.Findings)
	l.texts = append(l.texts, src.Text)
	return src
}

// decoder returns a decoder for the content of a file of the suite.
func (l *loader) decoder(src *decode.Source) *decode.Decoder {
	d := decode.NewDecoder(src, &l.Findings)
	d.Context, d.WithoutEffect = l, withoutEffect
	return d
}
