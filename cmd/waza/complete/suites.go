package complete

import (
	"slices"

	"waza/eval"
	"waza/eval/discover"
	"waza/eval/files"
)

// mostLoaded limits the suites of a directory that are read for their tasks.
const mostLoaded = 50

// Suites returns the paths of the suites below the current directory, as one types them.
func Suites() []string { return suitesBelow(".") }

func suitesBelow(dir string) []string {
	found, err := discover.Suites(dir, files.View{})
	if err != nil {
		return nil
	}
	var paths []string
	for _, s := range found.Suites {
		paths = append(paths, s.Path)
	}
	return paths
}

// Tasks returns the ids and the tags of the tasks of the suites that the arguments name, files
// or directories. Without arguments, it reads the suites below the current directory.
func Tasks(arguments []string, o eval.Options) (ids, tags []string) {
	if len(arguments) == 0 {
		arguments = []string{"."}
	}
	var paths []string
	for _, a := range arguments {
		if below := suitesBelow(a); below != nil {
			paths = append(paths, below...)
		} else {
			paths = append(paths, a)
		}
	}
	for _, path := range paths[:min(len(paths), mostLoaded)] {
		suite, _, err := eval.Load(path, o)
		if err != nil || suite == nil {
			continue
		}
		for _, t := range suite.Tasks {
			ids = append(ids, t.ID)
			tags = append(tags, t.Tags...)
		}
	}
	slices.Sort(tags)
	return ids, slices.Compact(tags)
}
