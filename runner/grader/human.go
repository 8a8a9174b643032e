package grader

import (
	"strings"

	"waza/eval"
)

// human and humanCalibration are known to suites; this program cannot ask a
// person, so trials they apply to end in error.
var (
	human = kindOf[HumanOptions](eval.Kind{
		Name:    "human",
		Summary: "Waits for a person's score.",
	}, nil, nil) // nothing to check: without options there is still a person to ask
	humanCalibration = kindOf(eval.Kind{
		Name:    "human_calibration",
		Summary: "Collects a person's scores to compare a judge with.",
	}, checkHumanCalibration, nil)
)

// HumanOptions are the options of the human grader.
type HumanOptions struct {
	// What the person is to look at.
	Instructions string `yaml:"instructions"`
	// What the person is to judge, one by one.
	Criteria []string `yaml:"criteria"`
}

// HumanCalibrationOptions are the options of the human_calibration grader.
type HumanCalibrationOptions struct {
	// Name of the grader whose scores are compared with the person's.
	CalibrateGrader string `yaml:"calibrate_grader"`
	// What the person is to look at.
	Instructions string `yaml:"instructions"`
}

func checkHumanCalibration(c *eval.Check, o *HumanCalibrationOptions) {
	if strings.TrimSpace(o.CalibrateGrader) == "" {
		c.Errorf(eval.At("calibrate_grader"), eval.CodeMissingField, "calibrate_grader is missing")
	}
}
