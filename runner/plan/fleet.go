package plan

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/fleetaddr"
	"waza/runner/provider"
	"waza/runner/record"
)

// FleetVariable names the fleet that the user of this machine has chosen. Commands about fleets
// use it, and it permits suites to use the fleet that they name.
const FleetVariable = "WAZA_FLEET"

// chooseFleet returns the fleet that executes the trials: the requested one or that of the suite;
// nil for none. It makes the choice part of the request, because the suite may later name a fleet
// that nobody has permitted. A suite may come from a stranger, and a fleet receives files of this
// machine. The suite's fleet is therefore used only if it is embedded, equals the user's own fleet,
// or the request permits it. The error is a [*record.FleetError].
func chooseFleet(suite *eval.Suite, asked *record.Request) (a *fleetaddr.Address, err error) {
	switch asked.Fleet {
	case record.FleetNone:
	case "":
		a, err = suiteFleet(suite, false)
	case record.FleetSuite:
		a, err = suiteFleet(suite, true)
	default:
		a, err = fleetAt(asked.Fleet)
	}
	if err == nil && a != nil {
		if asked.UpdateSnapshots {
			err = errSnapshots
		}
		if asked.Fleet != "" {
			asked.Fleet = a.String()
		}
	}
	if err != nil {
		return nil, &record.FleetError{Err: err}
	}
	return a, nil
}

// fleetAt returns the requested fleet, by its address.
func fleetAt(given string) (*fleetaddr.Address, error) {
	a, err := here(given)
	if err != nil {
		return nil, err
	}
	if a.Hidden() { // it comes from a record
		own, err := ownFleet()
		if err != nil || own == nil || !own.Same(*a) {
			return nil, fmt.Errorf("the password of %s is not recorded: pass --fleet again, or set %s to the address", a, FleetVariable)
		}
		*a = a.WithLogin(*own)
	}
	return a, a.Check()
}

// suiteFleet returns the fleet of the suite; nil if it names none. The error states that it is not
// permitted.
func suiteFleet(suite *eval.Suite, agreed bool) (*fleetaddr.Address, error) {
	if suite.Config.Fleet.URL == "" {
		return nil, nil
	}
	a, err := fleetaddr.Parse(suite.Config.Fleet.Address())
	if err != nil {
		return nil, err
	}
	a = a.In(suite.Dir)
	own, err := ownFleet()
	if err != nil {
		return nil, err
	}
	same := own != nil && own.Same(a)
	switch {
	case !a.Embedded && !same && !agreed:
		return nil, fmt.Errorf("config.fleet would send files of this machine to %s, which is not permitted: pass "+
			"--fleet suite, or set %s to the same servers and team; --fleet none executes the trials here",
			strings.Join(a.Servers, ","), FleetVariable)
	case same && !a.HasLogin():
		a = a.WithLogin(*own)
	}
	return &a, nil
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

// fleet finds parts of the plan that do not work on the workers of a fleet.
func (f *preflight) fleet() {
	p := f.plan
	if p.Fleet == nil {
		return
	}
	if err := p.Fleet.Check(); err != nil { // the suite's fleet: that of the request was checked before
		f.add(p.Suite.Diagnose(decode.At("config", "fleet"), decode.Warning, decode.CodeFleet, "config."+err.Error()))
	}
	seen := map[string]bool{}
	for _, c := range p.setups() {
		why := ""
		if c.Executor.LocalReason != nil && p.used(c) {
			why = c.Executor.LocalReason(c.Settings)
		}
		if why == "" || seen[why] {
			continue
		}
		seen[why] = true
		f.add(p.Suite.DiagnoseExecutor(decode.Error, decode.CodeFleet,
			fmt.Sprintf("executor %s does not work with a fleet: %s; --fleet none executes the trials here", c.Executor.Name, why)))
	}
	for _, c := range p.cells {
		if base := c.baseURL(); !p.Fleet.Embedded && isLoopback(base) && !seen[base] {
			seen[base] = true
			f.add(p.Suite.Diagnose(decode.At("config", "base_url"), decode.Warning, decode.CodeFleet,
				fmt.Sprintf("config.base_url is %s, which means a different machine on each worker", base)))
		}
	}
	if h := p.Suite.Hooks; len(h.BeforeRun)+len(h.AfterRun)+len(h.BeforeTask)+len(h.AfterTask) > 0 {
		f.add(p.Suite.Diagnose(decode.At("hooks"), decode.Warning, decode.CodeFleet,
			"hooks run on this machine, but trials run on the workers of the fleet: they do not see what hooks start or write"))
	}
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
