package doortest

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

// steps returns the steps that all doors share. The default client is a.
func steps() map[string]func(d *Dialogue, rest string) {
	return map[string]func(d *Dialogue, rest string){
		"connect":  (*Dialogue).Connect,
		"refused":  (*Dialogue).refused,
		"drop":     func(d *Dialogue, name string) { d.Drop(cmp.Or(name, "a")) },
		"close":    (*Dialogue).closeWith,
		"binary":   (*Dialogue).binary,
		"large":    (*Dialogue).large,
		"flood":    (*Dialogue).flood,
		"crowd":    (*Dialogue).crowd,
		"pause":    func(d *Dialogue, name string) { d.Player.Play(Action{Do: "pause", Name: cmp.Or(name, "a")}) },
		"resume":   func(d *Dialogue, name string) { d.Player.Play(Action{Do: "resume", Name: cmp.Or(name, "a")}) },
		"logs":     (*Dialogue).logs,
		"place":    (*Dialogue).place,
		"restart":  (*Dialogue).restart,
		"shutdown": func(d *Dialogue, _ string) { d.shutdown() },
	}
}

// refused connects a client that the server refuses: STATUS, and then the arguments of
// [Dialogue.Connect].
func (d *Dialogue) refused(rest string) {
	code, rest, _ := strings.Cut(rest, " ")
	a := d.target(rest)
	d.Player.Play(a)
	e := d.Next(a.Name)
	require.Equal(d.T, "refused "+code, fmt.Sprint(e.Event, " ", e.Code), d.At)
}

// Drop drops the connection of a client and skips its remaining messages. If the door supports
// it, Drop also waits until the server has noticed.
func (d *Dialogue) Drop(client string) {
	d.Player.Play(Action{Do: "drop", Name: client})
	d.closed(client)
}

func (d *Dialogue) closed(client string) {
	for d.Next(client).Event != "closed" {
	}
	if d.door.AwaitLeft != nil {
		d.door.AwaitLeft(client)
	}
}

// closeWith closes the connection of a client: NAME CODE.
func (d *Dialogue) closeWith(rest string) {
	name, code, _ := strings.Cut(rest, " ")
	d.Player.Play(Action{Do: "close", Name: name, Code: d.Number(code), Reason: "bye"})
	d.closed(name)
}

// binary sends a binary message: [NAME].
func (d *Dialogue) binary(name string) {
	d.Player.Play(Action{Do: "binary", Name: cmp.Or(name, "a"), Text: "{}"})
}

// large sends a message of the given size: NAME BYTES.
func (d *Dialogue) large(rest string) {
	name, size, _ := strings.Cut(rest, " ")
	d.send(name, `{"type":"`+strings.Repeat("x", d.Number(size)-11)+`"}`)
}

// flood sends a message many times: NAME TIMES TEXT.
func (d *Dialogue) flood(rest string) {
	name, rest, _ := strings.Cut(rest, " ")
	times, text, _ := strings.Cut(rest, " ")
	for range d.Number(times) {
		d.Say(name, text)
	}
}

// crowd connects idle clients: NUMBER.
func (d *Dialogue) crowd(rest string) {
	a := d.target("")
	a.Do, a.Code = "crowd", d.Number(rest)
	d.Player.Play(a)
}

// Number parses a number of the dialogue.
func (d *Dialogue) Number(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(d.T, err, d.At)
	return n
}

// logs waits until the log contains a text, which can be an error.
func (d *Dialogue) logs(text string) {
	d.Until("the log", func() bool { return strings.Contains(d.Log.String(), text) })
	d.ExpectError(text)
}

// place waits until the server has a place for another connection.
func (d *Dialogue) place(_ string) {
	d.Until("a free place", func() bool { return !d.current.IsFull() })
}

// restart stops the server and starts one with the stored state.
func (d *Dialogue) restart(_ string) {
	d.stop()
	d.start()
}
