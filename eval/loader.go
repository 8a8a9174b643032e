package eval

import "waza/eval/decode"

// A loader assembles one suite. It holds the options, the findings, and the parts that are loaded so
// far. Types such as [graderLoader], [executorLoader], [matrixLoader], [skillLoader] and [taskSet]
// embed it and load one part each. [loader.load] calls them in order.
type loader struct {
	decode.Findings
	reader
	options Options
	suite   *Suite
	src     *decode.Source // the suite file
	skills  *skillLoader
	matrix  map[string]matrixNodes
	texts   []string // of the YAML files that were read

	fixtures     map[string]string // texts of fixtures in prompts, by path
	fixtureBytes int               // of all of them

	skillsNamed []namedSkill // by options of graders
}

// parse reads a file of the suite, see [decode.ParseFile].
func (l *loader) parse(path string, data []byte) *decode.Source {
	src := decode.ParseFile(path, l.display(path), data, &l.Findings)
	l.texts = append(l.texts, src.Text)
	return src
}

// decoder returns a decoder for the content of a file of the suite.
func (l *loader) decoder(src *decode.Source) *decode.Decoder {
	d := decode.NewDecoder(src, &l.Findings)
	d.Context, d.WithoutEffect = l, withoutEffect
	return d
}

// reportAt reports a finding at a place in the suite file.
func (l *loader) reportAt(severity decode.Severity, code decode.Code, path decode.Path, format string, args ...any) {
	l.Reportf(l.src, decode.Place(l.src.Root, path...), severity, code, format, args...)
}
