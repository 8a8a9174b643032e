package config

import "waza/rpc/gateway/door"

// Browser are the keys of the door of browser assistants.
type Browser struct {
	// Address to listen at; off opens no door.
	Listen string `yaml:"listen"`
	// Take only extensions that give their id in the address.
	RequireExtensionID bool `yaml:"require_extension_id"`
	// Messages that a client may send in a minute; more are answered with an error.
	MessagesPerMinute int `yaml:"messages_per_minute"`
	// Connections that a client may open in a minute.
	ReconnectsPerMinute int `yaml:"reconnects_per_minute"`
	// Largest message of a client, in bytes.
	MaxMessageBytes int64 `yaml:"max_message_bytes"`
	// Time that a command may take.
	CommandTimeout door.Duration `yaml:"command_timeout"`
	// Time that a tool in the browser may take.
	ToolTimeout door.Duration `yaml:"tool_timeout" least:"1s" most:"60s"`
	// Time that a cancelled command may take to end by itself.
	CancelTimeout door.Duration `yaml:"cancel_timeout"`
	// Connections without a message for this long are closed.
	IdleTimeout door.Duration `yaml:"idle_timeout"`
	// Clients are asked to ping this often.
	Heartbeat door.Duration `yaml:"heartbeat"`
	// Connections that missed this many pings are closed.
	MissedHeartbeats int `yaml:"missed_heartbeats"`
	// Time in which a ping is answered.
	PongTimeout door.Duration `yaml:"pong_timeout"`
	// Session tokens are replaced this often.
	TokenLifetime door.Duration `yaml:"token_lifetime"`
	// Sessions that are not archived are deleted after this time.
	SessionLifetime door.Duration `yaml:"session_lifetime"`
	// Most assistants.
	MaxAssistants int `yaml:"max_assistants"`
	// Most capabilities of an assistant.
	MaxCapabilities int `yaml:"max_capabilities"`
	// Most commands of an assistant that wait or are carried out.
	MaxCommands int `yaml:"max_commands"`
	// Longest text of a command, in characters.
	MaxTextChars int `yaml:"max_text_chars"`
	// Longest name of an assistant, in characters.
	MaxNameChars int `yaml:"max_name_chars"`
	// Longest instructions of an assistant, in characters.
	MaxInstructionsChars int `yaml:"max_instructions_chars"`
}

func defaultBrowser() Browser {
	return Browser{
		Listen: off, MessagesPerMinute: 100, ReconnectsPerMinute: 10, MaxMessageBytes: 10 << 20,
		CommandTimeout: seconds(30), ToolTimeout: seconds(30), CancelTimeout: seconds(5), IdleTimeout: seconds(3600),
		Heartbeat: seconds(30), MissedHeartbeats: 3, PongTimeout: seconds(5),
		TokenLifetime: seconds(24 * 3600), SessionLifetime: seconds(90 * 24 * 3600),
		MaxAssistants: 20, MaxCapabilities: 10, MaxCommands: 10,
		MaxTextChars: 10_000, MaxNameChars: 100, MaxInstructionsChars: 10_000,
	}
}

// Router are the keys of the door of clients that messages are routed to.
type Router struct {
	// Address to listen at; off opens no door.
	Listen string `yaml:"listen"`
	// Clients get a ping frame this often.
	PingInterval door.Duration `yaml:"ping_interval"`
	// Clients that do not answer a ping frame within this time are disconnected.
	PongTimeout door.Duration `yaml:"pong_timeout"`
	// Time for the first response to a message; later it counts as rejected.
	ResponseTimeout door.Duration `yaml:"response_timeout"`
	// Most clients at once.
	MaxClients int `yaml:"max_clients"`
	// Largest message of a client, in bytes.
	MaxMessageBytes int64 `yaml:"max_message_bytes"`
	// Longest name of a client, in characters.
	MaxNameChars int `yaml:"max_name_chars"`
	// Longest description of a client, in characters.
	MaxDescriptionChars int `yaml:"max_description_chars"`
	// How often a message that was rejected goes to another client.
	MaxReroutes int `yaml:"max_reroutes"`
	// Deliveries that are remembered.
	History int `yaml:"history"`
}

func defaultRouter() Router {
	return Router{
		Listen: off, PingInterval: seconds(30), PongTimeout: seconds(10), ResponseTimeout: seconds(30),
		MaxClients: 100, MaxMessageBytes: 1 << 20, MaxNameChars: 64, MaxDescriptionChars: 1024, MaxReroutes: 3, History: 100,
	}
}

// off closes a door.
const off = "off"
