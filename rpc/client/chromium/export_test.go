package chromium

// Kill ends the browser like a crash.
func (b *Browser) Kill() {
	b.busy.Lock()
	defer b.busy.Unlock()
	b.live.cancel()
	<-b.live.process.Done()
}
