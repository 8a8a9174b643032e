package wire

import "context"

// Queued returns the number of bytes of output that are queued or being written.
func (s *Stream) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued
}

// Room waits until a notification could be sent. Call it before making a large reply, to avoid
// adding to output that the client leaves unread. Room does not wait for batches, which may be
// waiting for that very reply. If they hold too much, it fails with an *Error.
func (s *Stream) Room(ctx context.Context) error {
	full := false
	err := s.wait(ctx, func() bool {
		full = s.held >= s.opts.MaxQueued
		return full || s.queued < s.opts.NotifyQueued
	})
	if err == nil && full {
		return busy("bytes of replies in batches", s.opts.MaxQueued)
	}
	return err
}
