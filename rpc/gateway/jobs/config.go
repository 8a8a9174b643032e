package jobs

import (
	"time"

	"waza/rpc/gateway/door"
)

// Config configures the jobs door. It starts from [Defaults]; a time of 0 turns it off.
type Config struct {
	door.Config `yaml:",inline"`
	// File with the token that clients of /rpc show, mode 0600. Without this setting, waza
	// creates a token at the first start, in serve.token in the state directory.
	TokenFile string `yaml:"token_file"`
	// How long a client of the job stream can stay connected without sending a message.
	ReceiveTimeout door.Duration `yaml:"receive_timeout"`
	// Maximum number of connections per user to the job stream.
	ConnectionsPerUser int `yaml:"connections_per_user"`
	// Maximum number of runs per user that the server executes at once; further runs wait. 0
	// means no limit.
	MaxJobs int `yaml:"max_jobs"`
}

// Defaults returns the Config that serve starts from. It has no idle timeout, because clients of
// /rpc wait for runs that take hours.
func Defaults() Config {
	c := Config{
		Config:             door.Defaults(),
		ReceiveTimeout:     door.Duration(90 * time.Second),
		ConnectionsPerUser: 5,
		MaxJobs:            2,
	}
	c.Listen = "127.0.0.1:8501"
	c.IdleTimeout = 0
	c.MaxConnections = 200
	return c
}
