package harbor

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// solutionInside is the folder where the script of a solution finds its files.
const solutionInside = "/solution"

// addSolution sets the solution of the task, if each step has one.
func (tr *translator) addSolution() {
	var turns []dialect.Map
	for i := range tr.steps {
		turn, ok := tr.solutionOf(&tr.steps[i])
		if !ok {
			return
		}
		turns = append(turns, turn)
	}
	solution := turns[0]
	if len(turns) > 1 {
		list := dialect.List(nil)
		for _, turn := range turns[1:] {
			list.Content = append(list.Content, turn.Node)
		}
		solution.Set("follow_ups", list)
	}
	if solution.Len() == 1 {
		tr.task.Set("solution", decode.Lookup(solution.Node, "script"))
	} else {
		tr.task.Set("solution", solution.Node)
	}
}

// solutionOf returns the script and the files of the solution of a step.
func (tr *translator) solutionOf(s *step) (turn dialect.Map, ok bool) {
	script := s.file("solution/solve.sh")
	if !tr.exists(script) {
		return turn, false
	}
	turn = dialect.NewMap(nil)
	turn.Set("script", dialect.Scalar(nil, script))
	if files := tr.solutionFiles(tr.path(s.file("solution"))); len(files) > 0 {
		turn.Set("files", dialect.List(nil, files...))
		tr.inWorkspace(solutionInside, false)
	}
	return turn, true
}

// solutionFiles returns the files of a folder except for the script.
func (tr *translator) solutionFiles(dir string) (list []*yaml.Node) {
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
