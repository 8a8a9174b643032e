package flags

import (
	"log/slog"

	"github.com/urfave/cli/v2"
)

// LogLevels are the values of --log-level.
var LogLevels = []string{"debug", "info", "warn", "error"}

// LogLevel returns the flag --log-level of commands that run until a signal ends them.
func LogLevel() cli.Flag {
	return &cli.StringFlag{
		Name: "log-level", Usage: "log to stderr at `LEVEL` and above: debug, info, warn or error",
		Value: "info", DefaultText: "info",
	}
}

// LogLevelOf returns the value of --log-level.
func LogLevelOf(c *cli.Context) (level slog.Level, err error) {
	if err := OneOf("log-level", c.String("log-level"), LogLevels...); err != nil {
		return level, err
	}
	return level, level.UnmarshalText([]byte(c.String("log-level")))
}
