package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// trialFloor returns the time that the floor of so many trials uses.
func (b *bench) trialFloor(ctx context.Context, trials int) (u used, err error) {
	file := filepath.Join(b.dir, "floor.jsonl")
	defer os.Remove(file)
	cmd := exec.CommandContext(ctx, b.self, "floor-trials", file, strconv.Itoa(trials))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return u, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return u, err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, out, make([]byte, 1<<20)); err != nil {
		return u, err
	}
	err = cmd.Wait()
	return used{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), time.Since(start)}, err
}

// floorBatch is the number of trials that the floor writes at once.
const floorBatch = 8

// writeTrials appends the journal lines of so many trials to a file, which it syncs every 10 ms,
// and writes their notifications to stdout. It is the floor of a durable, streamed trial.
func writeTrials(args []string) error {
	f, err := os.Create(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	trials, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	dirty, synced := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		var err error
		for range dirty {
			time.Sleep(10 * time.Millisecond)
			err = f.Sync()
		}
		synced <- err
	}()
	w := newFloorWriter()
	for trial := range trials {
		t := newFloorTrial(trial)
		w.start(t)
		w.complete(t)
		if (trial+1)%floorBatch != 0 && trial+1 != trials {
			continue
		}
		if _, err := f.Write(w.journal); err != nil {
			return err
		}
		if _, err := os.Stdout.Write(w.stream); err != nil {
			return err
		}
		w.journal, w.stream = w.journal[:0], w.stream[:0]
		select {
		case dirty <- struct{}{}:
		default:
		}
	}
	close(dirty)
	return <-synced
}

// A floorWriter appends lines of the journal and notifications, field by field. Values are quoted as
// JSON, and each line of the journal has a signature that covers the line before, and a checksum.
type floorWriter struct {
	journal, stream []byte
	seq             int64
	mac             hash.Hash
	link            [sha256.Size]byte
}

func newFloorWriter() *floorWriter {
	return &floorWriter{mac: hmac.New(sha256.New, []byte("a key of 32 bytes for the floor."))}
}

// A floorTrial has the values of a trial.
type floorTrial struct {
	number                             int
	id, name, prompt, answer, trialSum string
}

func newFloorTrial(number int) floorTrial {
	return floorTrial{number, "t-00003", "T 3", "say 3", "Mock response for: say 3", "ed5f1c4043a41f35fe82bff8380e8cab"}
}

func (w *floorWriter) start(t floorTrial) {
	from := w.event("trial_start", t)
	w.seal(from)
	w.stream = append(w.stream, "}}\n"...)
}

func (w *floorWriter) complete(t floorTrial) {
	from := w.event("trial_complete", t)
	b := w.journal
	b = text(text(b, `,"verdict":`, "passed"), `,"score":1,"trial":{"taskId":`, t.id)
	b = text(integer(b, `,"trialNum":`, int64(t.number)), `,"hash":`, t.trialSum)
	b = now(text(b, `,"verdict":`, "passed"), `,"score":1,"startedAt":`)
	b = text(integer(integer(b, `,"durationMs":`, 0), `,"executorMs":`, 0), `,"prompt":`, t.prompt)
	b = text(text(text(b, `,"output":`, t.answer), `,"graders":[{"name":`, "has"), `,"type":`, "text")
	b = integer(append(b, `,"score":1,"passed":true,"weight":1`...), `,"durationMs":`, 0)
	b = text(text(integer(b, `}],"transcript":[{"type":"message","atMs":`, 0), `,"role":`, "user"), `,"text":`, t.prompt)
	b = text(text(integer(b, `},{"type":"message","atMs":`, 0), `,"role":`, "assistant"), `,"text":`, t.answer)
	b = append(b, `}]}`...)
	w.journal = b
	w.seal(from)
	w.stream = integer(text(w.stream, `,"status":`, "passed"), `,"score":1,"durationMs":`, 0)
	w.stream = append(w.stream, "}}\n"...)
}

// event appends the head of an event to both, and returns where its line of the journal starts.
func (w *floorWriter) event(name string, t floorTrial) (from int) {
	from = len(w.journal)
	w.seq++
	w.journal = w.task(text(now(integer(w.journal, `{"seq":`, w.seq), `,"time":`), `,"type":`, name), t)
	w.stream = text(w.stream, `{"jsonrpc":"2.0","method":"eval.progress","params":{"runId":`, "20261123-185705.443-oo4dak7n3v")
	w.stream = w.task(text(integer(w.stream, `,"seq":`, w.seq), `,"event":`, name), t)
	return from
}

func (w *floorWriter) task(b []byte, t floorTrial) []byte {
	b = integer(integer(text(text(b, `,"taskId":`, t.id), `,"taskName":`, t.name), `,"taskNum":`, 4), `,"totalTasks":`, someTasks)
	return integer(integer(b, `,"trialNum":`, int64(t.number)), `,"totalTrials":`, manyTrials)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal appends the signature of a line of the journal, its checksum, and its end.
func (w *floorWriter) seal(from int) {
	w.mac.Reset()
	w.mac.Write(w.link[:])
	w.mac.Write(w.journal[from:])
	w.journal = hex.AppendEncode(append(w.journal, `,"mac":"`...), w.link[:8])
	w.mac.Sum(w.link[:0])
	w.journal = hex.AppendEncode(w.journal, w.link[:16])
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(w.journal[from:], castagnoli))
	w.journal = hex.AppendEncode(append(w.journal, `","crc":"`...), sum[:])
	w.journal = append(w.journal, "\"}\n"...)
}

// text appends a key and a string.
func text(b []byte, key, value string) []byte {
	b = append(append(b, key...), '"')
	for i := range len(value) {
		if c := value[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			continue
		}
		b = append(b, value[i])
	}
	return append(b, '"')
}

const hexDigits = "0123456789abcdef"

// integer appends a key and an integer.
func integer(b []byte, key string, value int64) []byte {
	return strconv.AppendInt(append(b, key...), value, 10)
}

// now appends a key and the current time.
func now(b []byte, key string) []byte {
	b = time.Now().UTC().AppendFormat(append(append(b, key...), '"'), time.RFC3339Nano)
	return append(b, '"')
}
