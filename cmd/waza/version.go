package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
)

// command returns waza version.
func (v versionInfo) command(stdout *output.Stdout) *cli.Command {
	return &cli.Command{
		Name: "version", Category: help.More,
		Usage: "print the version",
		Description: `Examples:
  waza version --json`,
		Flags:  []cli.Flag{flags.JSON("print it as JSON")},
		Action: flags.AtMost(0, func(c *cli.Context) error { return v.print(stdout, c.Bool("json")) }),
	}
}

// versionInfo describes this build of waza. Fields that the build does not set are empty.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildVersion() versionInfo {
	v := versionInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// commit returns the commit of the build, or "" if it is unknown or the sources had changes.
func (v versionInfo) commit() string {
	if v.Modified {
		return ""
	}
	return v.Revision
}

func (v versionInfo) print(stdout *output.Stdout, asJSON bool) error {
	if asJSON {
		return stdout.JSON(v)
	}
	line := "waza " + v.Version
	if v.Revision != "" {
		line += " " + v.Revision[:min(12, len(v.Revision))]
	}
	if v.Modified {
		line += " (modified)"
	}
	_, err := fmt.Fprintf(stdout, "%s, %s, %s\n", line, v.Go, v.Platform)
	return err
}
