package assertion

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"waza/eval/text"
)

// Main lets this program be its own worker for JavaScript. A program that grades
// with it, waza or one that embeds the runner, calls Main at the very beginning of
// main, before it starts anything and looks at its arguments; a test binary does so
// in TestMain. When the process was started as a worker, Main evaluates assertions
// until its standard input ends, and does not return. Otherwise it returns at once.
func Main() {
	if len(os.Args) == 2 && os.Args[1] == workerArgument {
		// Whatever ends waza's process group must not end this one: waza does.
		signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
		restrict()
		serve(os.Stdin, os.Stdout)
		syscall.Exit(0) // no hooks: nothing of this process is worth keeping
	}
	serves.Store(true)
}

// serve answers requests, a line each, until there are no more.
func serve(in io.Reader, out io.Writer) {
	s := &server{out: json.NewEncoder(out), engine: newEngine()}
	s.send(reply{Ready: true})
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		s.answer(line)
	}
}

type server struct {
	out    *json.Encoder
	engine *engine
}

// answer writes the replies to one request.
func (s *server) answer(line []byte) {
	var r struct {
		request
		Subject map[string]json.RawMessage `json:"subject"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		s.send(reply{Fault: text.Clip(err.Error(), maxMessage)})
		return
	}
	for name, text := range r.Subject {
		if tooDeep(string(text)) {
			s.send(reply{Fault: name + " is nested too deeply"})
			return
		}
	}
	if len(r.Check) > 0 {
		s.send(reply{Faults: checkAll(r.Check)})
		return
	}
	for _, source := range r.Assertions {
		limitCPU(r.CPUSeconds)
		complaint := s.engine.evaluate(source, r.Subject)
		s.send(reply{Complaint: &complaint})
	}
}

func checkAll(sources []string) []*Fault {
	faults := make([]*Fault, len(sources))
	for i, source := range sources {
		faults[i] = CheckJavaScript(source)
	}
	return faults
}

// send writes a reply. Nobody is there to read when it cannot be written.
func (s *server) send(r reply) {
	if err := s.out.Encode(r); err != nil {
		syscall.Exit(1)
	}
}

// quit ends the process with a reason, which waza shows.
func quit(why string) {
	fmt.Fprintln(os.Stderr, why)
	syscall.Exit(1)
}
