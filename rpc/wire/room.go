package wire

import "context"

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
