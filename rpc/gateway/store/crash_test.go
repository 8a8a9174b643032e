package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// childEnv turns the test binary into a process that writes to the database in a directory until
// it is killed.
const childEnv = "WAZA_TEST_STORE_CHILD"

// writeForEver writes answers, runs and assignments, removes every third answer again, and
// prints each completed step.
func writeForEver(dir string) {
	must := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	ctx := context.Background()
	s, err := Open(dir)
	must(err)
	s.answers.mostCount, s.answers.mostAll = 1<<40, 1<<40
	secret, err := s.Secret(ctx, "crash")
	must(err)
	fmt.Printf("secret %x\n", secret)
	for i := 0; ; i++ {
		id := fmt.Sprintf("%d-%d", os.Getpid(), i)
		must(s.SaveAnswer(ctx, id, "c", []byte(strings.Repeat(id, 1+i%500))))
		fmt.Println("saved", id)
		s.Assign(id, "c")
		if i%3 == 0 {
			_, _, ok, err := s.TakeAnswer(ctx, id)
			must(err)
			if !ok {
				must(fmt.Errorf("%s was not found", id))
			}
			fmt.Println("taken", id)
			s.Unassign(id)
		}
		if i%10 == 0 {
			must(RunsOf(s).Own(ctx, id, "ann"))
			fmt.Println("own", id)
		}
	}
}

// A process that is killed at any moment leaves an intact database with everything that it had
// written.
func TestCrashWhileWriting(t *testing.T) {
	t.Parallel()
	times := 10
	switch os.Getenv("WAZA_TEST_CRASH") {
	case "":
	case "ci":
		times = 40
	default:
		times = 200
	}
	dir := t.TempDir()
	acknowledged := map[string]bool{}
	for range times {
		killWriter(t, dir, acknowledged)
		s := open(t, dir)
		for _, check := range []string{"integrity_check", "foreign_key_check"} {
			var result string
			if err := s.write.QueryRow("PRAGMA " + check).Scan(&result); err == nil {
				require.Equal(t, "ok", result)
			}
		}
		stored := map[string]bool{}
		collect := func(kind, query string) {
			rows, err := s.read.Query(query)
			require.NoError(t, err)
			defer rows.Close()
			for rows.Next() {
				var id string
				require.NoError(t, rows.Scan(&id))
				stored[kind+" "+id] = true
			}
		}
		collect("saved", "SELECT id FROM answers")
		collect("own", "SELECT run_id FROM owned_runs JOIN run_users USING (run_id)")
		collect("secret", "SELECT lower(hex(value)) FROM secrets")
		for step := range acknowledged {
			kind, id, _ := strings.Cut(step, " ")
			if kind == "taken" {
				require.False(t, stored["saved "+id], step)
			} else if !acknowledged["taken "+id] && !stored[step] {
				// The child may have been killed after it took the answer and before it printed
				// the step.
				var number int
				_, err := fmt.Sscanf(id[strings.Index(id, "-")+1:], "%d", &number)
				require.NoError(t, err)
				require.True(t, kind == "saved" && number%3 == 0 && step == lastOf(acknowledged, id), "%s is lost", step)
			}
		}
		var count, bytes int64
		require.NoError(t, s.read.QueryRow("SELECT count(*), coalesce(sum(length(answer)), 0) FROM answers").Scan(&count, &bytes))
		require.Equal(t, s.answers.count, count)
		require.Equal(t, s.answers.bytes, bytes)
		require.NoError(t, s.Close())
	}
	require.Greater(t, len(acknowledged), times, "the children must have written something")
}

// lastOf returns the step "saved ID" if the child of that id saved nothing after it.
func lastOf(acknowledged map[string]bool, id string) string {
	var pid, number int
	if _, err := fmt.Sscanf(id, "%d-%d", &pid, &number); err != nil || acknowledged[fmt.Sprintf("saved %d-%d", pid, number+1)] {
		return ""
	}
	return "saved " + id
}

// killWriter starts a child, kills it at a random moment, and records its output.
func killWriter(t *testing.T, dir string, acknowledged map[string]bool) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	kill := func() { time.AfterFunc(rand.N(10*time.Millisecond), func() { _ = child.Process.Kill() }) }
	// Counting lines rather than time, so that a busy machine does not kill every child before it writes.
	last := rand.N(40)
	if last == 0 {
		kill()
	}
	lines := bufio.NewScanner(out)
	for n := 1; lines.Scan(); n++ {
		require.NotContains(t, lines.Text(), "error")
		acknowledged[lines.Text()] = true
		if n == last {
			kill()
		}
	}
	require.Error(t, child.Wait(), "it was killed")
}
