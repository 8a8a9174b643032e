// Package person lets people score trials. Its graders [Human] and [HumanCalibration] ask for a
// score; [SetReview] records the score that a person gives.
package person

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/grader"
	"waza/runner/record"
)

// Human and HumanCalibration leave the score to a person: see [SetReview].
var (
	Human = grader.KindOf(eval.Kind{
		Name:    record.TypeHuman,
		Summary: "Asks a person. The trial stays in state needs_review until a person gives a score with `waza review` or `run.review`.",
		Options: func() any { return &HumanOptions{Threshold: record.DefaultPass} },
	}, checkHuman, newHuman)
	HumanCalibration = func() grader.Kind {
		k := grader.KindOf(eval.Kind{
			Name: record.TypeHumanCalibration,
			Summary: "Collects a person's scores and compares them with another grader's, usually a judge's. It does not " +
				"affect the trial's verdict or score, " +
				"and no trial waits for it. The run's summary shows how well the two agree.",
			Options: func() any { return &HumanCalibrationOptions{Threshold: record.DefaultPass} },
		}, checkHumanCalibration, newHumanCalibration)
		k.Preflight = preflightCalibration
		return k
	}()
)

// HumanOptions holds the options of the human grader.
type HumanOptions struct {
	// Instructions for the person. Can use template variables.
	Instructions string `yaml:"instructions"`
	// Criteria that the person should judge, one by one. Can use template variables.
	Criteria []string `yaml:"criteria"`
	// Minimum score, 0 to 1, that passes.
	Threshold float64 `yaml:"threshold" alias:"pass_score" jsonschema:"minimum=0,maximum=1"`
}

// HumanCalibrationOptions holds the options of the human_calibration grader.
type HumanCalibrationOptions struct {
	// Name of the grader whose scores are compared with the person's.
	CalibrateGrader string `yaml:"calibrate_grader" jsonschema_extras:"x-refers=grader"`
	// Instructions for the person. Can use template variables.
	Instructions string `yaml:"instructions"`
	// Criteria that the person should judge, one by one. Can use template variables.
	Criteria []string `yaml:"criteria"`
	// Minimum score, 0 to 1, with which the trial passes in the person's view. It decides
	// whether the two agree.
	Threshold float64 `yaml:"threshold" alias:"pass_score" jsonschema:"minimum=0,maximum=1"`
}

func checkHuman(c *eval.Check, o *HumanOptions) { checkPerson(c, o.Threshold) }

func checkHumanCalibration(c *eval.Check, o *HumanCalibrationOptions) {
	if strings.TrimSpace(o.CalibrateGrader) == "" {
		c.Errorf(decode.At("calibrate_grader"), decode.CodeMissingField, "calibrate_grader is missing")
	}
	checkPerson(c, o.Threshold)
}

func checkPerson(c *eval.Check, threshold float64) {
	if threshold == 0 {
		c.Warnf(decode.At("threshold"), decode.CodeChecksNothing, "threshold: at 0 every score passes")
	}
	if c.Negated() {
		c.Errorf(nil, decode.CodeInvalidValue, "negate cannot be used with the score of a person; ask the opposite question")
	}
}

// A personGrader asks for a person's score. It does not score by itself.
type personGrader struct {
	instructions string
	criteria     []string
	threshold    float64
	calibrates   string
}

func newHuman(o *HumanOptions, _ *grader.Env) (grader.Grader, error) {
	return &personGrader{instructions: o.Instructions, criteria: o.Criteria, threshold: o.Threshold}, nil
}

func newHumanCalibration(o *HumanCalibrationOptions, _ *grader.Env) (grader.Grader, error) {
	return &personGrader{o.Instructions, o.Criteria, o.Threshold, o.CalibrateGrader}, nil
}

func (g *personGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	r := record.Review{Instructions: strings.TrimSpace(s.Expanded(g.instructions)), Threshold: g.threshold, Calibrates: g.calibrates}
	for _, c := range g.criteria {
		r.Criteria = append(r.Criteria, s.Expanded(c))
	}
	return grader.Score{NeedsReview: true, Details: r}, nil
}

// preflightCalibration reports calibrated names that no grader has, because nothing could be
// compared with the person's scores.
func preflightCalibration(_ context.Context, specs []*eval.Grader, env *grader.Env) []grader.Finding {
	names := graderNames(env.Suite)
	var findings []grader.Finding
	for _, spec := range specs {
		o, ok := spec.Options.(*HumanCalibrationOptions)
		if !ok || slices.Contains(names, o.CalibrateGrader) {
			continue
		}
		message := fmt.Sprintf("calibrate_grader: no grader is named %q, so there is nothing to compare with", o.CalibrateGrader)
		if near := decode.Nearest(o.CalibrateGrader, names); near != "" {
			message += fmt.Sprintf(" (did you mean %q?)", near)
		}
		findings = append(findings, grader.Finding{
			Grader: spec, Path: []any{"calibrate_grader"}, Severity: decode.Warning, Code: decode.CodeNoEffect, Message: message,
		})
	}
	return findings
}

// graderNames returns the names of the graders of a suite and its tasks, once each.
func graderNames(suite *eval.Suite) []string {
	var names []string
	add := func(graders []*eval.Grader) {
		for _, g := range graders {
			if !slices.Contains(names, g.Name) {
				names = append(names, g.Name)
			}
		}
	}
	add(suite.Graders)
	for _, t := range suite.Tasks {
		add(t.Graders)
	}
	return names
}
