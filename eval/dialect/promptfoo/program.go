package promptfoo

import (
	_ "embed"
	"fmt"
	"path"
	"strings"

	"waza/eval/dialect"
	"waza/eval/jsonwalk"
	"waza/eval/text"
)

// askPython and askNode are programs that ask a provider in a file. Their arguments are the file, beside the
// suite, the function and the config of the provider; their standard input is the prompt.
//
//go:embed provider.py
var askPython string

//go:embed provider.js
var askNode string

// readFile reads a provider that is a file with code.
func (p *provider) readFile(id string, config part) error {
	file, function := splitFunction(strings.TrimPrefix(id, "python:"))
	settings, err := valueOf(config.Node)
	if err != nil {
		return err
	}
	if settings == nil {
		settings = map[string]any{}
	}
	data, err := jsonwalk.Encode(settings)
	if err != nil {
		return err
	}
	var words []string
	switch path.Ext(file) {
	case ".py":
		words = []string{"python3", "-c", askPython, file, firstOf(function, "call_api"), string(data)}
	case ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts":
		words = []string{"node", "-e", loadModule + askNode, file, function, string(data)}
	default:
		return fmt.Errorf("waza runs no providers in %s files", path.Ext(file))
	}
	p.label = firstOf(p.label, text.Clip(id, 60))
	p.settings = dialect.NewMap(p.at)
	p.settings.Set("executor", dialect.Scalar(p.at, "command"))
	below, others := p.besides(file)
	p.settings.Set("command", dialect.Texts(p.at, append(words, below...)...))
	p.reads = others
	p.settings.Set("no_steps", dialect.Scalar(p.at, true))
	p.usesContext, p.hasMetadata = true, true
	return nil
}
