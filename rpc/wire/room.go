package wire

import "context"

// Queued is how many bytes of output wait to be written, or are being written.
func (s *Stream) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued
}

// Room waits until a notification could be sent: for whoever is about to make a
// large reply and should not pile it upon output that the client leaves unread.
// It does not wait for batches, which may be waiting for that very reply: when
// they hold too much, it fails with an *Error.
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
