package plan

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"waza/eval/decode"
	"waza/runner/fleetaddr"
	"waza/runner/provider"
	"waza/runner/record"
)

// FleetVariable names the fleet that the user of this machine has chosen. Commands about fleets
// use it, and it permits suites to use the fleet that they name.
const FleetVariable = "WAZA_FLEET"

// chooseFleet sets the fleet that executes the trials: the requested one or that of the suite. A
// suite may come from a stranger, and a fleet receives files of this machine. The suite's fleet
// is therefore used only if it is embedded, equals the user's own fleet, or the request permits
// it. The error is a [*record.FleetError].
func (p *Plan) chooseFleet() error {
	var err error
	switch p.Asked.Fleet {
	case record.FleetNone:
		return nil
	case "":
		err = p.takeSuiteFleet(false)
	default:
		if p.Asked.Fleet == record.FleetSuite {
			err = p.takeSuiteFleet(true)
		} else {
			err = p.takeFleet()
		}
		if err == nil && p.Fleet != nil {
			p.Asked.Fleet = p.Fleet.String() // the suite may later name a fleet that nobody has permitted
		}
	}
	if err == nil && p.Fleet != nil && p.Asked.UpdateSnapshots {
		err = errSnapshots
	}
	if err != nil {
		return &record.FleetError{Err: err}
	}
	return nil
}

// takeFleet uses the requested fleet, by its address.
func (p *Plan) takeFleet() error {
	a, err := here(p.Asked.Fleet)
	if err != nil {
		return err
	}
	if a.Hidden() { // it comes from a record
		own, err := ownFleet()
		if err != nil || own == nil || !own.Same(*a) {
			return fmt.Errorf("the password of %s is not recorded: pass --fleet again, or set %s to the address", a, FleetVariable)
		}
		*a = a.WithLogin(*own)
	}
	p.Fleet = a
	return a.Check()
}

// takeSuiteFleet uses the fleet of the suite, if it names one. The error states that it is not
// permitted.
func (p *Plan) takeSuiteFleet(agreed bool) error {
	if p.Suite.Config.Fleet.URL == "" {
		return nil
	}
	a, err := fleetaddr.Parse(p.Suite.Config.Fleet.Address())
	if err != nil {
		return err
	}
	a = a.In(p.Suite.Dir)
	own, err := ownFleet()
	if err != nil {
		return err
	}
	same := own != nil && own.Same(a)
	switch {
	case !a.Embedded && !same && !agreed:
		return fmt.Errorf("config.fleet would send files of this machine to %s, which is not permitted: pass --fleet suite, or set %s to the same servers and team; --fleet none executes the trials here",
			strings.Join(a.Servers, ","), FleetVariable)
	case same && !a.HasLogin():
		a = a.WithLogin(*own)
	}
	p.Fleet = &a
	return nil
}

// here parses an address whose relative files are below the working directory.
func here(given string) (*fleetaddr.Address, error) {
	a, err := fleetaddr.Parse(given)
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	a = a.In(dir)
	return &a, nil
}

// ownFleet returns the fleet that the user has chosen for this machine; nil for none.
func ownFleet() (*fleetaddr.Address, error) {
	given := os.Getenv(FleetVariable)
	if given == "" {
		return nil, nil
	}
	a, err := here(given)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", FleetVariable, err)
	}
	return a, nil
}

// preflightFleet finds parts of the plan that do not work on the workers of a fleet.
func (p *Plan) preflightFleet() decode.Diagnostics {
	if p.Fleet == nil {
		return nil
	}
	var ds decode.Diagnostics
	if err := p.Fleet.Check(); err != nil { // the suite's fleet: that of the request was checked before
		ds = append(ds, p.Suite.Diagnose(decode.At("config", "fleet"), decode.Warning, decode.CodeFleet, "config."+err.Error()))
	}
	seen := map[string]bool{}
	for _, c := range p.cells {
		why := ""
		if c.Executor.LocalReason != nil && p.used(c) {
			why = c.Executor.LocalReason(c.Settings)
		}
		if why == "" || seen[why] {
			continue
		}
		seen[why] = true
		ds = append(ds, p.Suite.DiagnoseExecutor(decode.Error, decode.CodeFleet,
			fmt.Sprintf("executor %s does not work with a fleet: %s; --fleet none executes the trials here", c.Executor.Name, why)))
	}
	for _, c := range p.cells {
		if base := c.baseURL(); !p.Fleet.Embedded && isLoopback(base) && !seen[base] {
			seen[base] = true
			ds = append(ds, p.Suite.Diagnose(decode.At("config", "base_url"), decode.Warning, decode.CodeFleet,
				fmt.Sprintf("config.base_url is %s, which means a different machine on each worker", base)))
		}
	}
	if h := p.Suite.Hooks; len(h.BeforeRun)+len(h.AfterRun)+len(h.BeforeTask)+len(h.AfterTask) > 0 {
		ds = append(ds, p.Suite.Diagnose(decode.At("hooks"), decode.Warning, decode.CodeFleet,
			"hooks run on this machine, but trials run on the workers of the fleet: they do not see what hooks start or write"))
	}
	return ds
}

// errSnapshots reports that a fleet cannot replace snapshots.
var errSnapshots = errors.New("workers cannot replace snapshots, which are files of this machine: omit --fleet or --update-snapshots")

// baseURL returns the model API address that the suite sets for the executor of a cell; "" for
// others.
func (c *Setup) baseURL() string {
	if o, ok := c.Settings.Options.(interface{ ProviderEndpoint() provider.Endpoint }); ok {
		return o.ProviderEndpoint().BaseURL
	}
	return ""
}

// isLoopback reports whether an address refers to the machine that uses it.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
