package fleet

import (
	"fmt"
	"strings"

	"waza/cmd/waza/output"
	"waza/cmd/waza/terminal"
	"waza/eval/text"
	"waza/runner/fleet"
	"waza/runner/fleet/survey"
	"waza/runner/record"
	"waza/runner/report"
)

// status runs waza fleet status.
func (c *call) status() error {
	s, err := c.survey()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return c.Stdout.JSON(s)
	}
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(output.Clean(fmt.Sprintf(format, args...)) + "\n") }
	line("Fleet %s, team %s", s.Fleet, s.Team)
	if !s.Used {
		line("The fleet has not been used yet.")
		_, err := c.Stdout.Write([]byte(b.String()))
		return err
	}
	busy, slots := 0, 0
	for i := range s.Workers {
		busy, slots = busy+s.Workers[i].Busy, slots+s.Workers[i].Slots
	}
	line("%s: %d of %s busy", text.Count(len(s.Workers), "worker", "workers"), busy, text.Count(slots, "slot", "slots"))
	line("%s in %s, %s to be recorded in %s, files of %s",
		text.Count(int(s.Orders.Messages), "order", "orders"), output.Size(int64(s.Orders.Bytes)),
		text.Count(int(s.Results.Messages), "message of results", "messages of results"),
		output.Size(int64(s.Results.Bytes)), output.Size(int64(s.Files)))
	o := terminal.Options(c.Stdout)
	if rows := runRows(s); len(rows) > 1 {
		b.WriteString("\n")
		if err := report.Table(&b, rows, o); err != nil {
			return err
		}
	}
	if rows := classRows(s); len(rows) > 1 {
		b.WriteString("\n")
		if err := report.Table(&b, rows, o); err != nil {
			return err
		}
	}
	for _, why := range stuck(s) {
		line("%s", why)
	}
	if s.Dropped > 0 {
		line("%d more classes, runs and workers are not shown.", s.Dropped)
	}
	_, err = c.Stdout.Write([]byte(b.String()))
	return err
}

func runRows(s *survey.Survey) [][]string {
	rows := [][]string{{"Run", "Suite", "Owner", "State", "Trials", "Waiting", "Started", "Done"}}
	for i := range s.Runs {
		r := &s.Runs[i]
		if r.State == fleet.Over {
			continue
		}
		state := string(r.State)
		if r.Silent {
			state = "silent since " + r.Seen.Local().Format("15:04:05")
		}
		rows = append(rows, []string{
			r.Run, r.Suite, fmt.Sprintf("%s, process %d", r.Host, r.PID), state, fmt.Sprint(r.Trials),
			fmt.Sprint(r.Waiting), fmt.Sprint(r.Running), fmt.Sprint(r.Done),
		})
	}
	return rows
}

func classRows(s *survey.Survey) [][]string {
	rows := [][]string{{"Requirements", "Waiting", "Started", "Repeated", "Workers", "Slots"}}
	for i := range s.Classes {
		c := &s.Classes[i]
		rows = append(rows, []string{
			needed(c.Needs), fmt.Sprint(c.Waiting), fmt.Sprint(c.Running), fmt.Sprint(c.Again),
			fmt.Sprint(c.Workers), fmt.Sprint(c.Slots),
		})
	}
	return rows
}

// needed describes the requirements of a class of orders.
func needed(needs []record.Need) string {
	if len(needs) == 0 {
		return "nothing special"
	}
	words := make([]string, len(needs))
	for i, n := range needs {
		words[i] = n.String()
	}
	return strings.Join(words, ", ")
}

// maxReasons limits how many workers a line names.
const maxReasons = 5

// stuck describes the waiting orders that no worker can do, and the reasons.
func stuck(s *survey.Survey) []string {
	var lines []string
	for i := range s.Classes {
		c := &s.Classes[i]
		if c.Waiting == 0 || c.Workers > 0 {
			continue
		}
		line := fmt.Sprintf("No worker can execute orders that need %s", needed(c.Needs))
		var reasons []string
		for j := range s.Workers {
			if w := &s.Workers[j]; len(reasons) == maxReasons {
				reasons = append(reasons, "…")
				break
			} else if why := w.Lacks[c.Name]; why != "" {
				reasons = append(reasons, w.ID+": "+why)
			} else if w.Draining {
				reasons = append(reasons, w.ID+" is draining")
			}
		}
		if len(reasons) > 0 {
			line += ": " + strings.Join(reasons, "; ")
		}
		lines = append(lines, line)
	}
	return lines
}

// workers runs waza fleet workers.
func (c *call) workers() error {
	s, err := c.survey()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return c.Stdout.JSON(map[string]any{"fleet": s.Fleet, "team": s.Team, "workers": s.Workers})
	}
	if len(s.Workers) == 0 {
		fmt.Fprintf(c.Stderr, "waza: the fleet has no workers; waza worker --fleet %s starts one\n", output.Clean(s.Fleet))
		return nil
	}
	return c.Stdout.Table(workerRows(s.Workers))
}

func workerRows(list []survey.Worker) [][]string {
	rows := [][]string{{"Worker", "Host", "Busy", "Done", "Offers", "Since"}}
	for i := range list {
		w := &list[i]
		busy := fmt.Sprintf("%d of %d", w.Busy, w.Slots)
		if w.Draining {
			busy += ", draining"
		}
		rows = append(rows, []string{w.ID, w.Host, busy, fmt.Sprint(w.Done), w.Offers, w.Started.Local().Format("2006-01-02 15:04")})
	}
	return rows
}
