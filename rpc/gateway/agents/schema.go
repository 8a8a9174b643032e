package agents

import (
	"embed"

	"waza/rpc/gateway/internal/message"
)

// schemaFiles contains the messages of both directions, one definition per message.
//
//go:embed schemas/*.json
var schemaFiles embed.FS

var (
	// Members without a definition are skipped instead of decoded.
	clientSchemas = message.SchemasOf(schemaFiles, "schemas/client.json", true, kindRegister, kindReady, kindPing,
		kindStatus, kindAuthVerify, kindRequest, kindResponse, methodAuth)
	serverSchemas = message.SchemasOf(schemaFiles, "schemas/server.json", false, "welcome", "registration_ack",
		"pong", methodEvaluate, "result", "error")
)
