package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// options are the flags of the program.
type options struct {
	program          string
	short, guardOnly bool
	only             string
	json, page       string
	accept           bool
	promptfoo        string
}

// main measures, prints the table, and compares or accepts the figures.
func (o options) main(ctx context.Context, stdout io.Writer) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	measured := results{Machine: thisMachine(), Rows: map[string]figure{}}
	if o.promptfoo != "" {
		if measured.Machine.Promptfoo, err = promptfooVersion(o.promptfoo); err != nil {
			return err
		}
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "measure\tfigure\tfloor\tratio\ttarget\treached")
	err = o.measure(ctx, b, only, func(r row, f figure) {
		measured.Rows[r.name] = f
		fmt.Fprintln(table, strings.Join(r.cells(f), "\t"))
	})
	err = errors.Join(err, table.Flush())
	if o.json != "" {
		err = errors.Join(err, measured.write(o.json))
	}
	return errors.Join(err, o.compare(b.root, measured, stdout))
}

// errUnavailable is the error of measures that this machine does not offer.
var errUnavailable = errors.New("not available here")

// measure carries out the selected measures, and reports each figure. A measure that fails does not
// end the others.
func (o options) measure(ctx context.Context, b *bench, only *regexp.Regexp, report func(row, figure)) error {
	list := measures()
	if o.promptfoo != "" {
		list = append(list, peers()...)
	}
	var failed []error
	for _, m := range list {
		if !o.selects(m, only) || ctx.Err() != nil {
			continue
		}
		figures, err := m.run(ctx, b)
		switch {
		case errors.Is(err, errUnavailable):
			fmt.Fprintf(os.Stderr, "notice: %s: %v\n", m.rows[0].name, err)
			continue
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", m.rows[0].name, err))
			continue
		}
		for i, r := range m.rows {
			report(r, figures[i])
		}
	}
	return errors.Join(failed...)
}

// compare compares the measured figures with the accepted ones, or accepts them, and writes the page.
func (o options) compare(root string, measured results, stdout io.Writer) error {
	file := filepath.Join(root, acceptedFile)
	accepted, err := readAccepted(file)
	if err != nil {
		return err
	}
	if o.accept {
		accepted.take(measured)
		if err := accepted.write(file); err != nil {
			return err
		}
	}
	if o.page != "" {
		if err := os.WriteFile(o.page, []byte(page(accepted)), 0o644); err != nil {
			return err
		}
	}
	if o.accept {
		return nil
	}
	return accepted.Guard.check(measured, stdout)
}

// selects reports whether the flags select a measure.
func (o options) selects(m measure, only *regexp.Regexp) bool {
	switch {
	case o.guardOnly && !m.guarded(), o.short && m.slow:
		return false
	}
	return slices.ContainsFunc(m.rows, func(r row) bool { return only.MatchString(r.name) })
}

// A bench holds the programs that measures need, and a directory for their files.
type bench struct {
	options
	root string // of the module
	dir  string
	self string // this program, for its helpers
	// overlay replaces source files of waza by others. Tests seed regressions with it.
	overlay map[string]string
}

func newBench(ctx context.Context, o options) (*bench, error) {
	b := &bench{options: o, overlay: map[string]string{}}
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "waza").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find the module waza: %w", err)
	}
	b.root = strings.TrimSpace(string(out))
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "perfbench"); err != nil {
		return nil, err
	}
	if b.program != "" {
		b.program, err = filepath.Abs(b.program)
		return b, err
	}
	b.program = filepath.Join(b.dir, "waza")
	return b, b.build(ctx, b.program, b.overlay)
}

func (b *bench) close() { _ = os.RemoveAll(b.dir) }

// build builds waza as a release is built, with some files replaced.
func (b *bench) build(ctx context.Context, program string, overlay map[string]string) error {
	flag, err := b.overlayFlag(overlay)
	if err != nil {
		return err
	}
	return b.goCommand(ctx, "build", "-ldflags", "-s -w", flag, "-o", program, "./cmd/waza")
}

// overlayFlag returns the flag of the go command that replaces files.
func (b *bench) overlayFlag(overlay map[string]string) (string, error) {
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	file := filepath.Join(b.dir, "overlay.json")
	return "-overlay=" + file, os.WriteFile(file, text, 0o600)
}

// goCommand runs the go command in the root of the module.
func (b *bench) goCommand(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// rounds is the number of repetitions: fewer with -short.
func (b *bench) rounds(long, short int) int {
	if b.short {
		return short
	}
	return long
}
