package browser

import (
	"time"

	"waza/rpc/gateway/door"
)

// Config configures the door of browser assistants. It starts from [Defaults].
type Config struct {
	door.Config `yaml:",inline"`
	// Accept only extensions that send their id in the address.
	RequireExtensionID bool `yaml:"require_extension_id"`
	// Maximum number of reconnections per minute of an extension. It applies to clients that
	// send an id or the Origin of an extension.
	ReconnectsPerMinute int `yaml:"reconnects_per_minute" jsonschema:"minimum=1"`
	// Time limit for a command, without the time of its tools.
	CommandTimeout door.Duration `yaml:"command_timeout" least:"100ms"`
	// Time limit for a tool in the browser, unless its call sets a different one.
	ToolTimeout door.Duration `yaml:"tool_timeout" least:"1s" most:"60s"`
	// How long a cancelled command waits for its running tool.
	CancelTimeout door.Duration `yaml:"cancel_timeout"`
	// Interval at which extensions are asked to ping.
	HeartbeatInterval door.Duration `yaml:"heartbeat_interval" least:"1s"`
	// Number of consecutive pings that an extension can miss before it is disconnected, once it
	// has pinged. 0 means no limit.
	MissedHeartbeats int `yaml:"missed_heartbeats"`
	// How often the token of a connection is replaced. The ids of its executions derive from the
	// token.
	TokenLifetime door.Duration `yaml:"token_lifetime" least:"1s"`
	// How long sessions are kept after their last message, unless they are archived.
	SessionLifetime door.Duration `yaml:"session_lifetime" least:"1s"`
	// Maximum number of assistants.
	MaxAssistants int `yaml:"max_assistants" jsonschema:"minimum=1"`
	// Maximum number of capabilities of an assistant.
	MaxCapabilities int `yaml:"max_capabilities" jsonschema:"minimum=1"`
	// Maximum number of waiting commands of an assistant.
	MaxWaiting int `yaml:"max_waiting" jsonschema:"minimum=1"`
	// Maximum length of a command's text, in characters.
	MaxTextChars int `yaml:"max_text_chars" jsonschema:"minimum=1"`
	// Maximum length of an assistant's name, in characters.
	MaxNameChars int `yaml:"max_name_chars" jsonschema:"minimum=1"`
	// Maximum length of an assistant's instructions, in characters.
	MaxInstructionsChars int `yaml:"max_instructions_chars" jsonschema:"minimum=10"`
}

// Defaults returns the Config that serve starts from.
func Defaults() Config {
	c := Config{
		Config:              door.Defaults(),
		ReconnectsPerMinute: 10,
		CommandTimeout:      door.Duration(30 * time.Second), ToolTimeout: door.Duration(30 * time.Second),
		CancelTimeout:     door.Duration(5 * time.Second),
		HeartbeatInterval: door.Duration(30 * time.Second), MissedHeartbeats: 3,
		TokenLifetime: door.Duration(24 * time.Hour), SessionLifetime: door.Duration(90 * 24 * time.Hour),
		MaxAssistants: 20, MaxCapabilities: 10, MaxWaiting: 10,
		MaxTextChars: 10_000, MaxNameChars: 100, MaxInstructionsChars: 10_000,
	}
	c.Listen = "127.0.0.1:8000"
	c.MaxMessageBytes = 10 << 20
	c.MessagesPerMinute = 100
	c.IdleTimeout = door.Duration(time.Hour)
	return c
}
