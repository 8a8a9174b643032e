package eval

import (
	"path/filepath"

	"waza/eval/discover"
	"waza/eval/files"
	"waza/eval/project"
)

// List finds the suites below a directory, like [discover.Suites]. If a suite names no executor,
// List fills in the one of its .waza.yaml, else the default. It reports suites that only repeat others,
// see [SameCases].
func List(dir string, v files.View) (*discover.Found, error) {
	found, err := discover.Suites(dir, v)
	if err != nil {
		return nil, err
	}
	type place struct {
		dir     string
		foreign bool // a format of another tool, which names no executor
	}
	executors := map[place]string{}
	for i := range found.Suites {
		s := &found.Suites[i]
		if s.Executor != "" {
			continue
		}
		at := place{filepath.Dir(s.Path), s.Format != ""}
		executor, known := executors[at]
		if !known {
			var c Config
			c.SetDefaults()
			if at.foreign {
				c.Executor = ""
			}
			if p, _, err := project.Find(at.dir, v); err == nil {
				applyDefaults(p, at.dir, &c)
			}
			executor = c.Executor
			executors[at] = executor
		}
		s.Executor = executor
	}
	reportSameCases(found, v)
	return found, nil
}
