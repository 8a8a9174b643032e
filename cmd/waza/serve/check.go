package serve

import (
	"fmt"
	"io"
	"text/tabwriter"

	"waza/cmd/waza/config"
	"waza/cmd/waza/output"
	"waza/eval/decode"
	"waza/runner/journal"
	"waza/runner/report"
)

// DoorInfo is a door in the output of a check.
type DoorInfo struct {
	Name string `json:"name"`
	// Listen is an address, or off.
	Listen string `json:"listen"`
	// URL is the URL that clients connect to; empty when the door is closed.
	URL string `json:"url,omitempty"`
	// Secret is what clients present: key or token; empty for nothing.
	Secret string `json:"secret,omitempty"`
	// Clients describes who can connect.
	Clients string `json:"clients,omitempty"`
	TLS     bool   `json:"tls"`
}

// Checked is the output of `waza serve --check --json`.
type Checked struct {
	Valid       bool               `json:"valid"`
	Errors      int                `json:"errors"`
	Warnings    int                `json:"warnings"`
	Diagnostics decode.Diagnostics `json:"diagnostics"`
	// Exposed describes why other users may reach the state directory; empty when they cannot.
	Exposed string `json:"exposed,omitempty"`
	// Unwritable describes why waza cannot write the state directory; empty when it can.
	Unwritable string `json:"unwritable,omitempty"`
	// Doors is empty when the configuration is invalid.
	Doors []DoorInfo `json:"doors"`
}

// Check describes a configuration and its findings, and those about the state directory.
func Check(c *config.Config, ds decode.Diagnostics, stateDir string) Checked {
	checked := Checked{Valid: !ds.HasErrors(), Diagnostics: output.NonNil(ds), Doors: []DoorInfo{}, Exposed: journal.Exposure(stateDir)}
	if checked.Exposed != "" {
		checked.Warnings++
	}
	if err := journal.Writable(stateDir); err != nil {
		checked.Unwritable, checked.Valid = err.Error(), false
		checked.Errors++
	}
	for _, d := range ds {
		switch d.Severity {
		case decode.Error:
			checked.Errors++
		case decode.Warning:
			checked.Warnings++
		}
	}
	if !checked.Valid {
		return checked
	}
	for _, d := range c.Doors() {
		info := DoorInfo{Name: d.Name, Listen: "off"}
		if d.Open() {
			info = DoorInfo{Name: d.Name, Listen: d.Config.Listen, URL: d.URL(), Secret: d.Secret, Clients: d.Clients(), TLS: d.TLS()}
		}
		checked.Doors = append(checked.Doors, info)
	}
	return checked
}

// Write prints the findings and, if there are no errors, a line per door.
func (c Checked) Write(w io.Writer, o report.Options) error {
	if err := report.Diagnostics(w, c.Diagnostics, o); err != nil {
		return err
	}
	if c.Exposed != "" {
		fmt.Fprintf(w, "warning: %s\n", output.Clean(c.Exposed))
	}
	if c.Unwritable != "" {
		fmt.Fprintf(w, "error: %s\n", output.Clean(c.Unwritable))
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, d := range c.Doors {
		if d.URL == "" {
			fmt.Fprintf(tw, "%s\toff\n", d.Name)
			continue
		}
		encryption := "not encrypted"
		if d.TLS {
			encryption = "TLS"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", d.Name, output.Clean(d.URL), encryption, d.Clients)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	line := "the configuration is valid"
	if !c.Valid {
		line = "the configuration is invalid"
	}
	if sum := report.DiagnosticsSummary(c.Diagnostics); sum != "" {
		line += "; " + sum
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
