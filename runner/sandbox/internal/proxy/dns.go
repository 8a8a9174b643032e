package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	maxQuestionBytes = 4 << 10 // bytes of a DNS message of a program
	maxQuestions     = 64      // questions by UDP that are answered at the same time
	nameSeconds      = 60      // time to live of an answer
)

// ServeDNS answers DNS questions by UDP until the connection fails or the proxy is closed. It closes
// the connection. It drops questions while 64 are being answered. After Close, the error is
// net.ErrClosed.
func (p *Proxy) ServeDNS(c net.PacketConn) error {
	release, err := p.adopt(c)
	if err != nil {
		return err
	}
	defer release()
	places := make(chan struct{}, maxQuestions)
	buf := make([]byte, maxQuestionBytes)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			if p.ctx.Err() != nil {
				return net.ErrClosed
			}
			return err
		}
		select {
		case places <- struct{}{}:
		default:
			continue
		}
		if !p.enter() {
			return net.ErrClosed
		}
		question := append([]byte(nil), buf[:n]...)
		go func() {
			defer p.wait.Done()
			defer func() { <-places }()
			if reply := p.answer(p.ctx, question); reply != nil {
				_, _ = c.WriteTo(reply, from) // the program asks again
			}
		}()
	}
}

// ServeDNSStream answers DNS questions by TCP until the listener fails or the proxy is closed. It
// closes the listener. After Close, the error is net.ErrClosed.
func (p *Proxy) ServeDNSStream(l net.Listener) error { return p.accept(l, DNS, p.serveDNSStream) }

func (p *Proxy) serveDNSStream(c *conn) {
	defer c.Close()
	for {
		_ = c.SetDeadline(time.Now().Add(headerTime))
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint16(size[:])
		if n > maxQuestionBytes {
			return
		}
		question := make([]byte, n)
		if _, err := io.ReadFull(c, question); err != nil {
			return
		}
		reply := p.answer(p.ctx, question)
		if reply == nil {
			return
		}
		reply = append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)
		if _, err := c.Write(reply); err != nil {
			return
		}
	}
}

// answer returns the reply to a message, or nil if it is no question.
func (p *Proxy) answer(ctx context.Context, message []byte) []byte {
	var parser dnsmessage.Parser
	h, err := parser.Start(message)
	if err != nil || h.Response {
		return nil
	}
	head := dnsmessage.Header{
		ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true,
	}
	questions, err := parser.AllQuestions()
	var found netip.Addr
	switch {
	case err != nil || len(questions) != 1:
		head.RCode, questions = dnsmessage.RCodeFormatError, nil
	case h.OpCode != 0:
		head.RCode = dnsmessage.RCodeNotImplemented
	default:
		found, head.RCode = p.lookUp(ctx, questions[0])
	}
	reply := dnsmessage.Message{Header: head, Questions: questions}
	if found.IsValid() {
		reply.Answers = []dnsmessage.Resource{resource(questions[0].Name, found)}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// resource returns the record with the address of a name.
func resource(name dnsmessage.Name, addr netip.Addr) dnsmessage.Resource {
	r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: nameSeconds}}
	if addr.Is4() {
		r.Body = &dnsmessage.AResource{A: addr.As4()}
	} else {
		r.Body = &dnsmessage.AAAAResource{AAAA: addr.As16()}
	}
	return r
}

// lookUp returns the answer to a question. A name that the rules allow has an address if it exists, and
// no other records. IPv4 addresses suffice: programs ask for both kinds.
func (p *Proxy) lookUp(ctx context.Context, q dnsmessage.Question) (addr netip.Addr, status dnsmessage.RCode) {
	if q.Class != dnsmessage.ClassINET {
		return addr, dnsmessage.RCodeRefused
	}
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	switch {
	case name == localhost && q.Type == dnsmessage.TypeA:
		return loopback4, dnsmessage.RCodeSuccess
	case name == localhost && q.Type == dnsmessage.TypeAAAA:
		return loopback6, dnsmessage.RCodeSuccess
	case name == localhost:
		return addr, dnsmessage.RCodeSuccess
	case strings.HasSuffix(name, ".arpa"): // programs ask for the names of addresses without being asked to
		return addr, dnsmessage.RCodeNameError
	case q.Type != dnsmessage.TypeA && p.rules.allowsName(name, 0):
		return addr, dnsmessage.RCodeSuccess
	}
	if err := p.find(ctx, name); err != nil {
		if _, ok := errors.AsType[*refusal](err); ok || errors.Is(err, errNotFound) {
			return addr, dnsmessage.RCodeNameError
		}
		return addr, dnsmessage.RCodeServerFailure
	}
	addr, ok := p.names.address(name)
	if !ok {
		return addr, dnsmessage.RCodeServerFailure
	}
	return addr, dnsmessage.RCodeSuccess
}

// find reports whether a name is allowed and exists. If only the proxy of this machine reaches it, this
// machine need not know it.
func (p *Proxy) find(ctx context.Context, name string) error {
	h, err := p.allow(DNS, name, 0)
	if err != nil {
		return err
	}
	parent, err := p.parentOf(DNS, h, 0)
	if err != nil || parent != nil {
		return err
	}
	_, err = p.addresses(ctx, DNS, h, 0)
	return err
}
