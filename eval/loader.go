package eval

import (
	"path/filepath"

	"waza/eval/decode"
	"waza/eval/files"
)

// loader is shared by all that reads one suite: its options, its findings, and the
// paths and files that they are about. What is loaded has a type of its own that
// embeds it: [graderLoader], [executorLoader], [matrixLoader], [skillLoader],
// [taskSet] and so on. [loader.load] calls them in their order.
type loader struct {
	decode.Findings
	options  Options
	suite    *Suite
	shownDir string         // the suite's directory as the caller wrote it
	src      *decode.Source // the suite file
	skills   *skillLoader
	matrix   map[string]matrixNodes
	texts    []string // of the YAML files that were read
}

// looked tells the caller of what the suite depends on.
func (l *loader) looked(paths ...string) {
	l.options.view().Note(paths...)
}

// MaxFixtureBytes is the largest file that is put into a workspace, and
// maxTaskFixtures bounds all files of one task. Every trial copies them.
const (
	MaxFixtureBytes = 1 << 30
	maxTaskFixtures = 4 << 30
)

// The largest files that are read. A file is refused by its size before its
// first byte is.
const (
	maxYAMLBytes    = decode.MaxTextBytes
	maxPromptBytes  = decode.MaxTextBytes
	maxDatasetBytes = 64 << 20
)

// readFile returns the content of a file of the suite of at most limit bytes, or of
// the editor's unsaved copy of it. See [Suite.Open] for what is refused.
func (l *loader) readFile(path string, limit int64) ([]byte, error) {
	return l.read(path, limit, l.suite.ReadFile)
}

// readSkill is readFile for a file of a skill.
func (l *loader) readSkill(path string, limit int64) ([]byte, error) {
	return l.read(path, limit, l.suite.ReadSkill)
}

// readNear is readFile for a file above the suite, which no link may lead out of its
// directory.
func (l *loader) readNear(path string, limit int64) ([]byte, error) {
	return l.read(path, limit, func(path string, limit int64) ([]byte, error) {
		if within(l.root(), path) {
			return l.suite.ReadFile(path, limit)
		}
		f, err := files.OpenNamed(filepath.Dir(path), "its directory", path)
		return files.ReadOpened(f, err, limit)
	})
}

func (l *loader) read(path string, limit int64, read func(path string, limit int64) ([]byte, error)) ([]byte, error) {
	return l.options.view().Read(path, limit, read)
}

// display gives an absolute path as the caller of Load would write it: relative
// to where the caller said the suite is.
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

// decoder decodes what stands in a file of the suite.
func (l *loader) decoder(src *decode.Source) *decode.Decoder {
	d := decode.NewDecoder(src, &l.Findings)
	d.Context, d.WithoutEffect = l, withoutEffect
	return d
}
