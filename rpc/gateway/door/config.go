package door

import (
	"fmt"
	"strings"
	"time"
)

// Off is the value of Config.Listen that keeps a door closed.
const Off = "off"

// Duration is a time.Duration that reads and writes itself as "60s" or "1h30m".
type Duration time.Duration

// UnmarshalText reads a duration that is not negative.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	switch {
	case err != nil:
		return fmt.Errorf("duration %q: want a number with a unit, as in 90s, 5m or 1h30m", text)
	case v < 0:
		return fmt.Errorf("duration %q: must not be negative", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the duration as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String writes the duration as people do: 1m, not 1m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// Config has the settings that all doors share. A door starts from [Defaults], because
// 0 means off or without a limit.
type Config struct {
	// Address to listen on, such as 127.0.0.1:8080, or off. Without a host it is localhost,
	// which is 127.0.0.1 and ::1. Addresses that other machines can reach need tls_cert and
	// tls_key, or insecure, and a key or token that clients must show.
	Listen string `yaml:"listen"`
	// File with the TLS certificate and its chain, in PEM.
	TLSCert string `yaml:"tls_cert"`
	// File with the private key of the TLS certificate, in PEM.
	TLSKey string `yaml:"tls_key"`
	// Accept connections without TLS on addresses that other machines can reach.
	Insecure bool `yaml:"insecure"`
	// Further host names under which clients reach this door. IP addresses, localhost and
	// the names in the TLS certificate need no entry.
	Hosts []string `yaml:"hosts"`
	// Further origins of web pages that may connect, such as https://example.com.
	Origins []string `yaml:"origins"`
	// Size of the largest message that clients may send, in bytes. A larger one closes the
	// connection with code 1009. Connections that have yet to identify themselves may send 64 KiB.
	MaxMessageBytes int64 `yaml:"max_message_bytes"`
	// Most clients that are connected at once. Further ones get the HTTP status 503.
	MaxConnections int `yaml:"max_connections"`
	// Most connections that have yet to identify themselves. A further one waits until the
	// oldest of them is a second old, and then takes its place.
	MaxUnidentified int `yaml:"max_unidentified"`
	// Most bytes that wait for a client to read them. A client that falls further behind is
	// closed with code 1013.
	SendQueueBytes int64 `yaml:"send_queue_bytes"`
	// Most messages of a client in a minute.
	MessagesPerMinute int `yaml:"messages_per_minute"`
	// How long a client may send neither a message nor a ping.
	IdleTimeout Duration `yaml:"idle_timeout"`
	// How long a client may take to receive one message.
	WriteTimeout Duration `yaml:"write_timeout"`
	// How long a client may take to answer a close frame.
	CloseTimeout Duration `yaml:"close_timeout"`
	// Time between pings that waza sends to a client. 0 sends none.
	Heartbeat Duration `yaml:"heartbeat"`
	// How long a client may take to answer a ping.
	PongTimeout Duration `yaml:"pong_timeout"`
}

// Defaults is the Config that doors start from. It listens nowhere.
func Defaults() Config {
	return Config{
		Listen:          Off,
		MaxMessageBytes: 10 << 20,
		MaxConnections:  2000,
		MaxUnidentified: 256,
		SendQueueBytes:  16 << 20,
		IdleTimeout:     Duration(time.Minute),
		WriteTimeout:    Duration(30 * time.Second),
		CloseTimeout:    Duration(5 * time.Second),
		PongTimeout:     Duration(10 * time.Second),
	}
}

// IsOff reports whether the door stays closed.
func (c *Config) IsOff() bool { return c.Listen == "" || c.Listen == Off }
