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

// Main lets this program be its own worker for JavaScript. Every program that grades with
// JavaScript assertions, such as waza or a program that embeds the runner, calls Main at the
// very start of main, before it starts anything or reads its arguments. A test binary calls it
// in TestMain. In a process that was started as a worker, Main evaluates assertions until
// standard input ends, and does not return. In any other process it returns at once.
func Main() {
	if len(os.Args) == 2 && os.Args[1] == workerArgument {
		// A signal to waza's process group must not end this process: waza ends it.
		signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
		restrict()
		serve(os.Stdin, os.Stdout)
		syscall.Exit(0) // runs no exit hooks: they would only delay the end
	}
	mainCalled.Store(true)
}

// serve answers requests, one per line, until the input ends.
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
		if r.Value {
			value, complaint := s.engine.value(source, r.Subject)
			s.send(reply{Value: value, Complaint: &complaint})
			continue
		}
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

// send writes a reply. It ignores errors, because a failed write means that nobody reads.
func (s *server) send(r reply) {
	if err := s.out.Encode(r); err != nil {
		syscall.Exit(1)
	}
}

// quit ends the process with a reason on stderr, which waza shows.
func quit(why string) {
	fmt.Fprintln(os.Stderr, why)
	syscall.Exit(1)
}
