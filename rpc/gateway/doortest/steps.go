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
		"refused":  refused,
		"drop":     func(d *Dialogue, name string) { d.Drop(cmp.Or(name, "a")) },
		"close":    closeWith,
		"binary":   binary,
		"large":    large,
		"flood":    flood,
		"crowd":    crowd,
		"pause":    func(d *Dialogue, name string) { d.Player.Play(Action{Do: "pause", Name: cmp.Or(name, "a")}) },
		"resume":   func(d *Dialogue, name string) { d.Player.Play(Action{Do: "resume", Name: cmp.Or(name, "a")}) },
		"logs":     logs,
		"restart":  restart,
		"shutdown": func(d *Dialogue, _ string) { shutdown(d) },
	}
}

// refused connects a client that the server refuses: STATUS, and then the arguments of
// [Dialogue.Connect].
func refused(d *Dialogue, rest string) {
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
	closed(d, client)
}

func closed(d *Dialogue, client string) {
	for d.Next(client).Event != "closed" {
	}
	if d.door.AwaitLeft != nil {
		d.door.AwaitLeft(client)
	}
}

// closeWith closes the connection of a client: NAME CODE.
func closeWith(d *Dialogue, rest string) {
	name, code, _ := strings.Cut(rest, " ")
	d.Player.Play(Action{Do: "close", Name: name, Code: d.Number(code), Reason: "bye"})
	closed(d, name)
}

// binary sends a binary message: [NAME].
func binary(d *Dialogue, name string) {
	d.Player.Play(Action{Do: "binary", Name: cmp.Or(name, "a"), Text: "{}"})
}

// large sends a message of the given size: NAME BYTES.
func large(d *Dialogue, rest string) {
	name, size, _ := strings.Cut(rest, " ")
	d.send(name, `{"type":"`+strings.Repeat("x", d.Number(size)-11)+`"}`)
}

// flood sends a message many times: NAME TIMES TEXT.
func flood(d *Dialogue, rest string) {
	name, rest, _ := strings.Cut(rest, " ")
	times, text, _ := strings.Cut(rest, " ")
	for range d.Number(times) {
		d.Say(name, text)
	}
}

// crowd connects idle clients: NUMBER.
func crowd(d *Dialogue, rest string) {
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
func logs(d *Dialogue, text string) {
	d.Until("the log", func() bool { return strings.Contains(d.Log.String(), text) })
	d.ExpectError(text)
}

// restart stops the server and starts one with the stored state.
func restart(d *Dialogue, _ string) {
	d.stop()
	d.start()
}
