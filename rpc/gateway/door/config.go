package door

import (
	"fmt"
	"strings"
	"time"
)

// Off is the value of Config.Listen that keeps a door closed.
const Off = "off"

// Duration is a time.Duration with a text form such as "60s" or "1h30m".
type Duration time.Duration

// UnmarshalText parses a duration. Negative durations are errors.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	switch {
	case err != nil:
		return fmt.Errorf("duration must be a number with a unit, such as 90s, 5m or 1h30m, got %q", text)
	case v < 0:
		return fmt.Errorf("duration must not be negative, got %q", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText returns the duration in the form of String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String returns the duration without zero units: 1m, not 1m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// Config holds the settings that all doors share. Start from [Defaults], because 0 turns a
// setting off or removes a limit.
type Config struct {
	// Address to listen on, such as 127.0.0.1:8080, or off. An address without a host means
	// localhost: 127.0.0.1 and ::1. Addresses that other machines can reach need tls_cert and
	// tls_key, or insecure, and a key or token that clients must show.
	Listen string `yaml:"listen"`
	// File with the TLS certificate and its chain, in PEM format.
	TLSCert string `yaml:"tls_cert"`
	// File with the private key of the TLS certificate, in PEM format.
	TLSKey string `yaml:"tls_key"`
	// Accept connections without TLS on addresses that other machines can reach.
	Insecure bool `yaml:"insecure"`
	// Additional host names that clients use to reach this door. IP addresses, localhost and the
	// names in the TLS certificate need no entry.
	Hosts []string `yaml:"hosts"`
	// Additional origins of web pages that can connect, such as `https://example.com`.
	Origins []string `yaml:"origins"`
	// Maximum size of a message from a client, in bytes. A larger message closes the connection
	// with code 1009. Connections that have not identified themselves are limited to 64 KiB,
	// except at the router.
	MaxMessageBytes int64 `yaml:"max_message_bytes"`
	// Maximum number of connections that have identified themselves, even several of one client.
	// While all places are taken, further connections get the HTTP status 503.
	MaxConnections int `yaml:"max_connections"`
	// Maximum number of connections that have not identified themselves. A further connection
	// takes the place of one that has sent nothing for 0.1 s, or has not identified itself 0.5 s
	// after its handshake, and waits for the first such moment.
	MaxUnidentified int `yaml:"max_unidentified"`
	// Maximum number of bytes queued for a client. A client that falls further behind is
	// disconnected with code 1013.
	SendQueueBytes int64 `yaml:"send_queue_bytes"`
	// Maximum number of messages per minute from a client.
	MessagesPerMinute int `yaml:"messages_per_minute"`
	// How long a client can stay connected without sending a message or a ping.
	IdleTimeout Duration `yaml:"idle_timeout"`
	// Time limit for a client to receive one message.
	WriteTimeout Duration `yaml:"write_timeout"`
	// Time limit for a client to answer a close frame.
	CloseTimeout Duration `yaml:"close_timeout"`
	// Interval between the pings that waza sends to a client. 0 sends none.
	Heartbeat Duration `yaml:"heartbeat"`
	// Time limit for a client to answer a ping.
	PongTimeout Duration `yaml:"pong_timeout"`
}

// Defaults returns the Config that doors start from. It does not listen.
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
