// Package validate implements `waza validate`, which checks suites without running them. Call [Command].
package validate

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
	"waza/cmd/waza/runflags"
	"waza/cmd/waza/state"
	"waza/cmd/waza/suites"
	"waza/cmd/waza/terminal"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/sarif"
)

// Options connects the command to the runner and the outputs.
type Options struct {
	state.Reader
}

// Command returns waza validate.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "validate", Category: help.Suites,
		Usage:     "check suites without running them",
		ArgsUsage: suites.Argument,
		Description: `It prints each finding with its position, the line in question and, if a known name
is similar, a suggestion. A missing python3 or other program on this machine is a
finding, too. A directory means all suites below it; no argument means this directory.

Examples:
  waza validate                        check every suite below this directory
  waza validate evals/demo/eval.yaml   check one
  waza validate --strict --json        in CI
  waza validate --format sarif         for code scanning

A valid suite can still pass agents that did nothing: see waza attack.

Exit codes: 0 without errors (with --strict: and warnings), 2 otherwise.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "executor", Usage: "check as if run with the executor `NAME`", DefaultText: "the suite's"},
			&cli.StringFlag{Name: "agent", Usage: "check as if run with the agent `NAME`", DefaultText: "the suite's"},
			runflags.JudgeModelFlag(""), runflags.JudgeAgentFlag(""), runflags.SandboxFlag(""), runflags.ParamFlag(""),
			&cli.StringFlag{Name: "context-dir", Usage: "use the fixtures in `DIR`", DefaultText: "the task's, else fixtures beside the suite"},
			&cli.BoolFlag{Name: "strict", Usage: "treat warnings as errors"},
			&cli.StringFlag{Name: "format", Usage: "print the findings as `FORMAT`: text, json or sarif", Value: "text", DefaultText: "text"},
			flags.JSON("the same as --format json"),
		},
		Action: o.validate,
	}
}

// validation is the outcome for one suite.
type validation struct {
	Path        string             `json:"path"`
	Name        string             `json:"name"`
	Skill       string             `json:"skill"`
	Valid       bool               `json:"valid"`
	Tasks       int                `json:"tasks"`
	Diagnostics decode.Diagnostics `json:"diagnostics"`
	// Error is the reason why the file could not be read at all.
	Error string `json:"error,omitempty"`
}

// validations is the output of `waza validate --json`.
type validations struct {
	Valid    bool         `json:"valid"`
	Errors   int          `json:"errors"`
	Warnings int          `json:"warnings"`
	Suites   []validation `json:"suites"`
}

func (o Options) validate(c *cli.Context) error {
	if c.String("format") == "human" { // the name that waza preflight of other tools uses
		_ = c.Set("format", "text") // the flag exists
	}
	format, err := flags.Format(c, "text", "json", "sarif")
	if err != nil {
		return err
	}
	sandbox, err := runflags.Sandbox(c)
	if err != nil {
		return err
	}
	params, err := runflags.Params(c)
	if err != nil {
		return err
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	req := record.Request{
		Executor: runflags.Executor(c), Agent: c.String("agent"), ContextDir: c.String("context-dir"),
		JudgeModel: c.String("judge-model"), JudgeAgent: c.String("judge-agent"), Sandbox: sandbox,
		Params: params, Fleet: record.FleetSuite,
	}
	if err := runflags.CheckExecutor(rn.Planner(), req.Executor); err != nil {
		return err
	}
	paths, err := suites.Find(o.Streams, c.Args().Slice())
	if err != nil {
		return err
	}
	all := validations{Valid: true}
	for _, path := range paths {
		v := validateOne(c.Context, rn, path, req)
		errs, warnings := v.count()
		all.Errors += errs
		all.Warnings += warnings
		if c.Bool("strict") && warnings > 0 {
			v.Valid = false
		}
		all.Valid = all.Valid && v.Valid
		all.Suites = append(all.Suites, v)
	}
	switch format {
	case "json":
		err = o.Stdout.JSON(all)
	case "sarif":
		err = o.printSARIF(all)
	default:
		err = o.printValidations(all)
	}
	if err == nil && !all.Valid {
		return exit.With(exit.Usage)
	}
	return err
}

// count returns the numbers of findings; a file that cannot be read is an error.
func (v validation) count() (errors, warnings int) {
	if v.Error != "" {
		errors++
	}
	for _, d := range v.Diagnostics {
		switch d.Severity {
		case decode.Error:
			errors++
		case decode.Warning:
			warnings++
		}
	}
	return errors, warnings
}

func validateOne(ctx context.Context, rn *state.Opened, path string, req record.Request) validation {
	v := validation{Path: path, Diagnostics: decode.Diagnostics{}}
	p, err := rn.Planner().Prepare(ctx, path, req, plan.PrepareOptions{})
	defer p.Close() //nolint:staticcheck // on an error, Prepare returns a preparation as well
	if err != nil && p.Suite == nil {
		v.Error = err.Error()
		return v
	}
	ds := p.All()
	if selection := (*record.SelectionError)(nil); err != nil && !record.IsUnchosen(err) && !(errors.As(err, &selection) && len(p.Suite.Tasks) == 0) {
		d := decode.Diagnostic{File: path, Severity: decode.Error, Code: decode.CodeUnreadable, Message: err.Error()}
		if limit := (*record.LimitError)(nil); errors.As(err, &limit) {
			d.Code = decode.CodeInvalidValue
		}
		ds = append(ds, d)
	} // otherwise the suite has only trigger tests and an executor that cannot measure them
	if p.Suite != nil {
		v.Name, v.Skill, v.Tasks = p.Suite.Name, p.Suite.Skill, len(p.Suite.Tasks)
		plan.SortDiagnostics(ds)
	}
	v.Valid = p.Suite != nil && !ds.HasErrors()
	v.Diagnostics = append(v.Diagnostics, ds...)
	return v
}

// printSARIF prints the findings for code scanning.
func (o Options) printSARIF(all validations) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	var ds decode.Diagnostics
	for _, v := range all.Suites {
		if v.Error != "" {
			ds = append(ds, decode.Diagnostic{File: v.Path, Severity: decode.Error, Code: decode.CodeUnreadable, Message: v.Error})
		}
		ds = append(ds, v.Diagnostics...)
	}
	return sarif.Diagnostics(o.Stdout, ds, dir)
}

// printValidations prints the findings, then a summary in one line.
func (o Options) printValidations(all validations) error {
	style := terminal.Options(o.Stdout)
	var ds decode.Diagnostics
	invalid := 0
	for _, v := range all.Suites {
		if v.Error != "" {
			fmt.Fprintln(o.Stdout, output.Clean(v.Error))
		}
		if !v.Valid {
			invalid++
		}
		if err := report.Diagnostics(o.Stdout, v.Diagnostics, style); err != nil {
			return err
		}
		ds = append(ds, v.Diagnostics...)
	}
	line := text.Count(len(all.Suites), "suite is valid", "suites are valid")
	if invalid > 0 {
		line = fmt.Sprintf("%d of %s invalid", invalid, text.Count(len(all.Suites), "suite is", "suites are"))
	}
	if sum := report.DiagnosticsSummary(ds); sum != "" {
		line += "; " + sum
	}
	_, err := fmt.Fprintln(o.Stdout, line)
	return err
}
