package agents_test

import (
	"waza/rpc/gateway/doortest"
)

type (
	action = doortest.Action
	event  = doortest.Event
	player = doortest.Player
)
