package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"waza/eval/text"
	"waza/runner/executor"
)

// line returns a report about waiting trials. The first one omits reasons that pass by themselves.
func (x *assistants) line(ctx context.Context, wants []*Want, first bool) (level, line string) {
	level, why := x.why(ctx, wants[0])
	if why == "" || first && level == "info" {
		return "", ""
	}
	return level, text.Count(len(wants), "trial waits for a browser", "trials wait for a browser") + ": " + why
}

// why returns the reason why no extension can execute a trial. The level is info if the reason
// passes by itself.
func (x *assistants) why(ctx context.Context, w *Want) (level, why string) {
	listing, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	all, err := x.hub.Extensions(listing)
	switch {
	case ctx.Err() != nil:
		return "", ""
	case errors.Is(err, executor.ErrNoServer):
		return "warning", err.Error()
	case err != nil:
		return "warning", fmt.Sprintf("cannot list the extensions of the waza server: %v", err)
	}
	fit := 0
	for _, e := range all {
		if w.Fits(e) {
			fit++
		}
	}
	switch {
	case fit == 0 && w.Extension != "":
		return "warning", fmt.Sprintf("the extension %s is not connected", w.Extension)
	case fit == 0 && len(all) == 0:
		return "warning", "no extension is connected: start one with waza browser-agent"
	case fit == 0:
		return "warning", "no connected extension is available for evaluations: start one with waza browser-agent, or set config.extension"
	case fit == 1:
		return "info", "the extension is busy"
	}
	if free := slices.IndexFunc(all, func(e *Extension) bool { return w.Fits(e) && e.Trial == "" && e.Command == "" }); free >= 0 {
		return "info", "" // an extension has just become free
	}
	return "info", fmt.Sprintf("all %d extensions are busy", fit)
}
