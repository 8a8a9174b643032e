package jobs

import (
	"time"

	"waza/rpc/gateway/door"
)

// Config of the jobs door. It starts from [Defaults]; a time of 0 is off.
type Config struct {
	door.Config `yaml:",inline"`
	// File with the token that clients of /rpc show, mode 0600. Without one, waza makes a
	// token at the first start, in serve.token in the state directory.
	TokenFile string `yaml:"token_file"`
	// How long a client of the job stream may send no message.
	ReceiveTimeout door.Duration `yaml:"receive_timeout"`
	// Most connections of a user to the job stream.
	ConnectionsPerUser int `yaml:"connections_per_user"`
	// Most runs of a user that the server started and that run at once; further ones wait. 0 is no limit.
	MaxJobs int `yaml:"max_jobs"`
}

// Defaults is the Config that serve starts from. Connections are never idle, because
// clients of /rpc wait for runs that take hours.
func Defaults() Config {
	c := Config{
		Config:             door.Defaults(),
		ReceiveTimeout:     door.Duration(90 * time.Second),
		ConnectionsPerUser: 5,
		MaxJobs:            2,
	}
	c.Listen = "127.0.0.1:8501"
	c.IdleTimeout = 0
	c.MaxConnections, c.MaxUnidentified = 200, 64
	return c
}
