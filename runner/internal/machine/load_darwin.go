package machine

import (
	"encoding/binary"
	"runtime"

	"golang.org/x/sys/unix"
)

// systemLoad returns the load average of the last minute per processor; negative if it is unknown.
// The system returns three loads of 32 bits, 4 unused bytes, and their scale of 64 bits.
func systemLoad() float64 {
	raw, err := unix.SysctlRaw("vm.loadavg")
	if err != nil || len(raw) < 24 {
		return -1
	}
	scale := binary.NativeEndian.Uint64(raw[16:])
	if scale == 0 {
		return -1
	}
	return float64(binary.NativeEndian.Uint32(raw)) / float64(scale) / float64(runtime.NumCPU())
}
