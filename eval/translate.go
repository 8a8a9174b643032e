package eval

import (
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/dialect/builtin"
	"waza/eval/reach"
)

// translate returns the eval.yaml that a file in the format of another tool means; nil if the file is
// in no such format. It reports a file that has the name of a format and another content, and returns
// false.
func (l *loader) translate(src *decode.Source) (translated *decode.Source, ok bool) {
	if IsTriggerTests(src.Path) {
		return nil, true
	}
	d := builtin.Recognize(src)
	if d == nil {
		if reason := builtin.Refusal(src); reason != "" {
			l.Reportf(src, nil, decode.Error, decode.CodeOtherDialect, "%s", reason)
			return nil, false
		}
		return nil, true
	}
	l.suite.Format = d.Name
	l.suite.Places = reach.AtHome(l.suite.File, d.HomeOf(l.suite.File))
	l.places = l.suite.Places
	t := &dialect.Translation{Findings: &l.Findings, Source: src, Files: &dialect.Files{
		Places: l.places, View: l.view, Shown: l.display, Parse: l.parse,
	}}
	d.Translate(t)
	l.suite.more = t.Tasks
	suite := *src
	suite.Root = t.Suite
	return &suite, true
}

// Node returns the suite as the root of an eval.yaml. Paths in it are relative to the suite's
// directory. Of a suite in the format of another tool, it contains all tasks; of an eval.yaml, it is
// the content of the file. The caller owns it. The error is that of [dialect.Copy].
func (s *Suite) Node() (*yaml.Node, error) {
	node, err := dialect.Copy(s.src.Root)
	if err != nil || len(s.more) == 0 {
		return node, err
	}
	root := dialect.Map{Node: node}
	tasks := root.Get("tasks")
	if tasks == nil {
		tasks = dialect.List(nil)
		root.Set("tasks", tasks)
	}
	for _, t := range s.more {
		task, err := dialect.Copy(t.Node)
		if err != nil {
			return nil, err
		}
		tasks.Content = append(tasks.Content, task)
	}
	return root.Node, nil
}
