package flags

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
)

// Time returns a flag that takes a duration such as 90s or 5m. A plain number is seconds, as in
// suites. [TimeOf] returns its value.
func Time(name, category, usage, otherwise string) cli.Flag {
	return &cli.GenericFlag{Name: name, Category: category, Usage: usage, DefaultText: otherwise, Value: new(duration)}
}

// TimeOf returns the value of a flag that [Time] made, 0 when it is absent.
func TimeOf(c *cli.Context, name string) time.Duration {
	if d, ok := c.Generic(name).(*duration); ok {
		return time.Duration(*d)
	}
	return 0
}

// duration implements [cli.Generic].
type duration time.Duration

var errNoTime = errors.New("invalid duration")

// Set parses the user's input.
func (d *duration) Set(s string) error {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		ns := seconds * float64(time.Second)
		if math.IsNaN(ns) || math.Abs(ns) >= math.MaxInt64 {
			return errNoTime
		}
		*d = duration(math.Round(ns))
		return nil
	}
	parsed, err := time.ParseDuration(s)
	*d = duration(parsed)
	return err
}

func (d *duration) String() string { return time.Duration(*d).String() }
