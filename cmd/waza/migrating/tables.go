package migrating

// The tables are functions, so that nothing is built when the program starts.

func flags(command string) map[string]Pointer {
	switch command {
	case "":
		return map[string]Pointer{"no-update-check": same()}
	case "waza run":
		return runFlags()
	case "waza serve":
		return map[string]Pointer{
			"port":             takes(func(port string) ([]string, error) { return []string{"--jobs", "127.0.0.1:" + port}, nil }),
			"no-browser":       same(), // --open opens one
			"http":             same(), // the dashboard door is open unless it is off
			"results-dir":      refuse("the dashboard shows all recorded runs"),
			"tcp":              refuse("waza jsonrpc --tcp ADDR serves JSON-RPC there"),
			"tcp-allow-remote": refuse("waza jsonrpc --tcp ADDR --allow-remote serves JSON-RPC there"),
		}
	case "waza new skill":
		none := takes(func(string) ([]string, error) { return nil, nil }) // which has no effect in microsoft/waza either
		return map[string]Pointer{"template": none, "t": none}
	}
	return nil
}

func runFlags() map[string]Pointer {
	parallel := means("--workers", "4")
	parallel.Default = true
	return map[string]Pointer{
		"tags": takes(tags),
		"format": oneOf(map[string][]string{"default": nil, "github-comment": {"--report", "comment=/dev/stdout"}},
			"default and github-comment"),
		"reporter": takes(reporter),
		"parallel": parallel,

		"discover":    same(), // a directory means all suites below it
		"session-log": same(), // the record of each run has its events
		"no-summary":  same(),
		"redact":      same(), // keys are never written

		"session-dir":     refuse("the record of each run has its events: waza runs follow RUN --events"),
		"transcript-dir":  refuse("the record of each run has its transcripts: waza runs show RUN --json, or --report html=FILE"),
		"snapshot":        refuse("the record of each run has the files that agents left: waza runs export RUN --format archive"),
		"cache-dir":       refuse("--cache reuses trials recorded by earlier runs, in the directory that $WAZA_STATE names"),
		"interpret":       refuse("the table shows intervals and failures; --report html=FILE explains them"),
		"recommend":       refuse("--model A --model B runs both, and the table compares them"),
		"suggest":         refuse("waza runs show RUN lists the failures and their reasons"),
		"strict":          refuse("waza validate --strict fails on warnings; --fail-on unmeasured fails when a threshold could not be measured"),
		"auto-file-issue": refuse("--report markdown=FILE writes the text of an issue for gh issue create --body-file FILE"),
	}
}

func commands() map[string]string {
	return map[string]string{
		"waza results":     "waza runs list lists recorded runs, and waza compare A B compares them",
		"waza session":     "waza runs follow RUN --events prints the events of a run; waza runs show RUN --json has its transcripts",
		"waza cache":       "waza run --cache reuses trials recorded by earlier runs; waza runs gc deletes old runs",
		"waza models":      "waza run --model NAME accepts any model of the executor; its provider or agent lists them",
		"waza gate":        "waza compare BASE RUN --max-regression-pct 0 --golden-must-pass",
		"waza spec":        "waza check SKILL checks a skill, and waza dev SKILL measures its description with trigger tests",
		"waza generate":    "waza new skill NAME",
		"waza update":      "install the new version like this one; waza version prints the installed version",
		"waza replay":      "waza runs show RUN shows a recorded run, and waza grade RUN grades it with today's graders",
		"waza migrate":     "suites run unchanged; waza validate lists keys with a different meaning",
		"waza registry":    "suites and skills are files of a repository; waza list lists the suites",
		"waza get":         "suites and skills are files of a repository; waza new skill NAME creates a skill",
		"waza adversarial": "write the attacks as tasks with graders such as text (not_contains) and tool_constraint, and waza run runs them",
		"waza assure":      "waza validate --strict checks suites, waza run runs them, and waza compare BASE RUN finds regressions",
		"waza scenario":    "write it as a task with follow_up_prompts; waza run runs it",
		"waza release":     "waza compare BASE RUN --fail-on regression decides whether a run is good enough",
	}
}
