package project

import (
	"path/filepath"
	"reflect"
	"strings"

	"waza/eval/decode"

	"gopkg.in/yaml.v3"
)

// withoutEffect maps types to ignored keys that are not among their fields.
var withoutEffect = map[reflect.Type]map[string]string{
	reflect.TypeFor[Defaults](): {
		"model_reasoning_effort": "set the parameters of a model in a suite's config, as options of its executor",
		"modelReasoningEffort":   "set the parameters of a model in a suite's config, as options of its executor",
	},
}

// An idle is a key that waza accepts and ignores.
type idle struct {
	section, key, alias string
	usual               string // the value that other tools write into every file
	why                 string
}

var idles = []idle{
	{
		"defaults", "sessionLog", "session_log", "false",
		"the record of every run contains its events; use `waza runs follow RUN --events` to print them",
	},
	{"cache", "dir", "dir", ".waza-cache", "waza reuses trials from the records of earlier runs, in the state directory $WAZA_STATE"},
	{"server", "port", "port", "3000", "`waza serve --config FILE` reads the addresses of the dashboard from another file"},
	{"server", "resultsDir", "results_dir", "results", "the dashboard of `waza serve` shows all recorded runs"},
	{"graders", "programTimeout", "program_timeout", "30", "set the timeout of each program grader instead"},
}

// reportIdle reports keys without effect. It is a note if the value is the one that other tools
// write into every file, else a warning.
func reportIdle(d *decode.Decoder, root *yaml.Node) {
	for _, k := range idles {
		section := decode.Lookup(root, k.section)
		key, value := decode.LookupPair(section, k.key)
		if key == nil {
			key, value = decode.LookupPair(section, k.alias)
		}
		value = decode.Follow(value)
		if key == nil || decode.IsNull(value) {
			continue
		}
		severity := decode.Warning
		if value.Kind == yaml.ScalarNode && filepath.Clean(value.Value) == k.usual {
			severity = decode.Info
		}
		d.Report(key, severity, decode.CodeNoEffect, "", "%s.%s has no effect: %s", k.section, key.Value, k.why)
	}
	if key, value := decode.LookupPair(root, "storage"); key != nil && !decode.IsNull(decode.Follow(value)) {
		severity := decode.Info
		if enabled := decode.Follow(decode.Lookup(value, "enabled")); enabled != nil && strings.EqualFold(enabled.Value, "true") {
			severity = decode.Warning
		}
		d.Report(key, severity, decode.CodeNoEffect, "",
			"storage has no effect: waza uploads nothing; use `waza run --report results=FILE` to write a file for upload")
	}
	if key, _ := decode.LookupPair(root, "registries"); key != nil {
		d.Report(key, decode.Warning, decode.CodeNoEffect, "", "registries has no effect: suites and skills must be files of the repository")
	}
}
