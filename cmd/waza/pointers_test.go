package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"waza/cmd/waza/flags"
	"waza/cmd/waza/migrating"
)

// Each command and flag of microsoft/waza exists under its name, or is a pointer that has the
// same effect or prints the replacement.
func TestCommandsOfMicrosoftWaza(t *testing.T) {
	t.Parallel()
	for command, names := range map[string]string{
		"run": "baseline cache cache-dir context-dir discover format interpret judge-model model " +
			"no-cache no-summary output output-dir parallel recommend reporter session-dir session-log strict suggest " +
			"tags task transcript-dir verbose workers skip-graders trials update-snapshots keep-workspace no-skills " +
			"snapshot redact otel-endpoint auto-file-issue debug no-update-check",
		"init":                 "no-skill skills-dir evals-dir results-dir",
		"new skill":            "template output-dir",
		"new eval":             "output",
		"new task from-prompt": "model root testname tags overwrite timeout",
		"serve":                "port no-browser results-dir http tcp tcp-allow-remote",
		"preflight":            "format context-dir strict",
		"check":                "format",
		"tokens count":         "format sort min-tokens no-total tokenizer",
		"tokens check":         "format strict quiet",
		"tokens compare":       "show-unchanged strict format skills threshold",
		"tokens profile":       "format tokenizer",
		"tokens suggest":       "format min-savings copilot model",
		"dev":                  "target max-iterations auto all filter copilot model scaffold-triggers",
		"suggest":              "model dry-run apply output-dir format force count focus",
		"compare":              "format max-regression-pct golden-must-pass on-new-tasks on-removed-tasks",
		"grade":                "task results workspace judge-model output verbose",
		"coverage":             "format path",
		"quality":              "model format",
		"spec":                 "",
		"completion":           "", "results": "", "session": "", "cache": "", "models": "", "gate": "", "generate": "", "update": "",
		"adversarial": "", "replay": "", "migrate": "", "registry": "", "get": "", "assure": "", "scenario": "",
		"release": "", "results list": "", "results compare": "", "session list": "", "session view": "", "cache clear": "", "spec verify": "",
	} {
		app := newTestApp()
		at, commands, have := "waza", app.Commands, []cli.Flag(nil)
		for word := range strings.FieldsSeq(command) {
			if alias := migrating.Alias(at + " " + word); alias != "" {
				word = alias
			}
			var found *cli.Command
			for _, c := range commands {
				if c.HasName(word) {
					found = c
				}
			}
			at += " " + word
			if found == nil {
				_, ok := migrating.Command(at)
				require.True(t, ok, "%s neither exists nor is a pointer", at)
				break
			}
			commands, have = found.Subcommands, found.Flags
		}
		for name := range strings.FieldsSeq(names) {
			_, points := migrating.Flag(at, name)
			require.True(t, points || name == "debug" || flags.Find(have, name) != nil, "%s --%s neither exists nor is a pointer", at, name)
		}
	}
}
