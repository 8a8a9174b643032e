//go:build unix

package executor_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
)

// TestProgramNeeds checks that files of a suite need the interpreter in their first line, that
// other files need nothing, and that a pipe does not block planning.
func TestProgramNeeds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.Empty(t, executor.ProgramNeeds(pipe, true))
	require.Empty(t, executor.ProgramNeeds(dir, true))
	require.Empty(t, executor.ProgramNeeds(filepath.Join(dir, "absent"), true))
	require.Empty(t, executor.ProgramNeeds("", false))
	require.Empty(t, executor.ProgramNeeds("./in/the/workspace", false))
	for line, want := range map[string]string{
		"#!/bin/sh\n":                          "sh",
		"#! /usr/bin/python3 -u\n":             "python3",
		"#!/usr/bin/env node\n":                "node",
		"#!/usr/bin/env -S A=1 deno run\n":     "deno",
		"#!/usr/bin/env\n":                     "env",
		"#!/opt/tool/run\n":                    "/opt/tool/run",
		"#!\n":                                 "",
		"echo\n":                               "",
		"\x7fELF":                              "",
		"#!/bin/" + strings.Repeat("x", 1<<20): "",
		"#!/bin/sh":                            "sh",
		"#!/usr/bin/env   \t" + "perl" + "  -w\n": "perl",
	} {
		file := filepath.Join(dir, "script")
		require.NoError(t, os.WriteFile(file, []byte(line), 0o600))
		var needs []record.Need
		if want != "" {
			needs = []record.Need{{Kind: record.NeedProgram, Name: want}}
		}
		require.Equal(t, needs, executor.ProgramNeeds(file, true), line[:min(len(line), 40)])
	}
}
