package eval

import (
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
)

// Task files are read and parsed on all processors. The loader takes them over one after the other,
// in the order of the suite, while the next are being parsed: tasks share skills, fixtures and the
// order of findings.
//
//	parseLane 0: file 0, 2, 4, … ─┐
//	parseLane 1: file 1, 3, 5, … ─┴─► addAll: 0, 1, 2, 3, …

// A taskPlace is the place of a task, or of the tasks of a file, in the list of tasks.
type taskPlace struct {
	src    *decode.Source // contains the node
	at     *yaml.Node     // the task, or the node that names its file; nil for the file of src
	path   string         // of the task file; empty for a task of src
	number int            // of a task of src in its list, from 1
}

// placesOf returns the places of task files that a node names.
func placesOf(paths []string, src *decode.Source, at *yaml.Node) []taskPlace {
	places := make([]taskPlace, len(paths))
	for i, path := range paths {
		places[i] = taskPlace{src: src, at: at, path: path}
	}
	return places
}

// addAll reads the tasks at these places, each file once.
func (ts *taskSet) addAll(places []taskPlace) {
	l := ts.loader
	var paths []string
	fresh := make([]bool, len(places))
	for i, p := range places {
		if fresh[i] = p.path != "" && !ts.files[p.path]; fresh[i] {
			ts.files[p.path] = true
			paths = append(paths, p.path)
		}
	}
	next, stop := iter.Pull(l.parseAll(paths))
	defer stop()
	for i, p := range places {
		switch {
		case p.path == "":
			ts.addTask(p.src, p.at, p.src.Path, fmt.Sprintf("task-%d", p.number))
		case fresh[i]:
			parsed, _ := next()
			ts.addFile(p, parsed)
		}
	}
}

// addFile takes over a task file.
func (ts *taskSet) addFile(p taskPlace, parsed *parsedFile) {
	l := ts.loader
	l.dependsOn(p.path)
	if parsed.err != nil {
		l.reportUnreadable(p.path, p.src, p.at, parsed.err)
		return
	}
	l.Add(&parsed.found)
	l.texts = append(l.texts, parsed.src.Text)
	if parsed.src.Root == nil {
		return
	}
	stem := strings.TrimSuffix(filepath.Base(p.path), filepath.Ext(p.path))
	ts.addTask(parsed.src, parsed.src.Root, p.path, stem)
}

// A parsedFile is a file of the suite that was read and parsed, and the findings in it.
type parsedFile struct {
	src   *decode.Source
	found decode.Findings
	err   error // the file cannot be read
}

// parsedAhead is the number of files of a lane that are parsed and not yet taken over.
const parsedAhead = 16

// parseAll reads and parses files and yields them in their order. The paths are below the suite's
// root. The caller reports that the suite depends on them.
func (r *reader) parseAll(paths []string) iter.Seq[*parsedFile] {
	return func(yield func(*parsedFile) bool) {
		var parsing sync.WaitGroup
		defer parsing.Wait()
		stop := make(chan struct{})
		defer close(stop)
		lanes := make([]chan *parsedFile, min(runtime.GOMAXPROCS(0), len(paths)))
		for n := range lanes {
			lanes[n] = make(chan *parsedFile, parsedAhead)
			parsing.Go(func() { r.parseLane(paths, n, len(lanes), lanes[n], stop) })
		}
		for i := range paths {
			if !yield(<-lanes[i%len(lanes)]) {
				return
			}
		}
	}
}

// parseLane parses every nth path, from the first on, until stop is closed.
func (r *reader) parseLane(paths []string, first, nth int, to chan<- *parsedFile, stop <-chan struct{}) {
	tree := r.places.Tree()
	defer tree.Close()
	unnoted := files.View{Overlay: r.view.Overlay}
	for i := first; i < len(paths); i += nth {
		f := &parsedFile{}
		data, err := unnoted.Read(paths[i], maxYAMLBytes, tree.Read)
		if f.err = err; err == nil {
			f.src = decode.Parse(paths[i], r.display(paths[i]), data, &f.found)
		}
		select {
		case to <- f:
		case <-stop:
			return
		}
	}
}
