package harbor

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"waza/eval/dialect"
)

// solutionInside is the folder where the script of a solution finds its files.
const solutionInside = "/solution"

// addSolution sets the solution of a task without steps.
func (tr *translator) addSolution() {
	if !tr.exists("solution/solve.sh") {
		return
	}
	script := dialect.Scalar(nil, "solution/solve.sh")
	files := tr.solutionFiles()
	if len(files) == 0 {
		tr.task.Set("solution", script)
		return
	}
	solution := dialect.NewMap(nil)
	solution.Set("script", script)
	solution.Set("files", dialect.List(nil, files...))
	tr.task.Set("solution", solution.Node)
	tr.inWorkspace(solutionInside, false)
}

// solutionFiles returns the files beside the script.
func (tr *translator) solutionFiles() (list []*yaml.Node) {
	dir := tr.path("solution")
	if _, err := tr.Files.List(dir); err != nil {
		return nil
	}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || name == "solve.sh" {
			return err
		}
		if len(list) == maxCopied {
			tr.warn(nil, "the folder solution has more than %d files, and waza attack uses only these", maxCopied)
			return fs.SkipAll
		}
		f := dialect.NewMap(nil)
		f.Set("path", dialect.Scalar(nil, outside+path.Join(solutionInside, name)))
		f.Set("source", dialect.Scalar(nil, tr.Files.Relative(filepath.Join(dir, filepath.FromSlash(name)))))
		list = append(list, f.Node)
		return nil
	})
	if err != nil {
		tr.warn(nil, "the folder solution cannot be read, so waza attack does without its files")
	}
	return list
}
