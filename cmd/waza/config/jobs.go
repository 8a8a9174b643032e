package config

import "waza/rpc/gateway/door"

// Jobs are the keys of the door of JSON-RPC, health and metrics.
type Jobs struct {
	door.Config `yaml:",inline"`
	// File with the token that clients of /rpc show, mode 0600. Without one, waza makes a
	// token at the first start, in serve.token in the state directory.
	TokenFile string `yaml:"token_file"`
}

func defaultJobs() Jobs {
	c := Jobs{Config: door.Defaults()}
	c.Listen = "127.0.0.1:8501"
	return c
}
