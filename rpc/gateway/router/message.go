package router

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"waza/eval/text"
	"waza/rpc/gateway/internal/message"
	"waza/runner/routing"
)

// The types of messages from clients.
const (
	typeRegistration = "registration"
	typeResponse     = "response"
)

// The error codes of registrations.
const (
	codeName        = "INVALID_NAME"
	codeDescription = "INVALID_DESCRIPTION"
	codeDuplicate   = "DUPLICATE_NAME"
	codeRegistered  = "ALREADY_REGISTERED"
	codeValidation  = "VALIDATION_ERROR"
)

// Limits for texts of clients. The protocol limits only names and descriptions.
const (
	maxVersionChars      = 256
	maxCapabilities      = 100
	maxCapabilityChars   = 256
	maxNotificationTitle = 256      // bytes; longer ones are cut
	maxNotificationBody  = 4 << 10  // bytes; longer ones are cut
	maxReason            = 2 << 10  // bytes; longer ones are cut
	maxMessageID         = 1 << 10  // bytes
	maxText              = 64 << 10 // bytes of a message to clients
)

// incoming is a message of a client with an undecoded payload.
type incoming struct {
	kind    string          // typeRegistration or typeResponse
	payload json.RawMessage // nil when it is absent
}

// parse determines the kind of a message. It returns false for messages that are not part of the
// protocol, which are ignored.
func parse(data []byte) (incoming, bool) {
	if !json.Valid(data) {
		return incoming{}, false
	}
	fields, ok := message.MembersOf(data, "type", "payload")
	kind, isText := message.Text(fields.Get("type"))
	if !ok || !isText || kind != typeRegistration && kind != typeResponse {
		return incoming{}, false
	}
	return incoming{kind, fields.Get("payload")}, true
}

// fault is the reason why a registration fails.
type fault = message.Fault[string]

// registration decodes the payload of a registration.
func (c *Config) registration(payload json.RawMessage) (*routing.Client, *fault) {
	fields, ok := message.MembersOf(payload, "name", "description", "version", "capabilities")
	if !ok {
		return nil, &fault{Code: codeValidation, Message: "The payload of a registration must be an object"}
	}
	client := &routing.Client{}
	if client.Name, ok = message.Text(fields.Get("name")); !ok {
		return nil, &fault{Code: codeName, Message: "Name is required and must be a string"}
	}
	if why := c.checkName(client.Name); why != "" {
		return nil, &fault{Code: codeName, Message: why}
	}
	if client.Description, ok = message.Text(fields.Get("description")); !ok {
		return nil, &fault{Code: codeDescription, Message: "Description is required and must be a string"}
	}
	switch {
	case strings.TrimSpace(client.Description) == "":
		return nil, &fault{Code: codeDescription, Message: "Description cannot be empty"}
	case utf8.RuneCountInString(client.Description) > c.MaxDescriptionChars:
		return nil, &fault{Code: codeDescription, Message: fmt.Sprintf("Description must be %d characters or less", c.MaxDescriptionChars)}
	}
	if version := fields.Get("version"); version != nil {
		if client.Version, ok = message.Text(version); !ok || utf8.RuneCountInString(client.Version) > maxVersionChars {
			return nil, &fault{
				Code:    codeValidation,
				Message: fmt.Sprintf("Version must be a string of %d characters or less if provided", maxVersionChars),
			}
		}
	}
	if list := fields.Get("capabilities"); list != nil {
		if client.Capabilities, ok = textsOf(list); !ok {
			return nil, &fault{
				Code: codeValidation,
				Message: fmt.Sprintf("Capabilities must be an array of at most %d strings of %d characters or less if provided",
					maxCapabilities, maxCapabilityChars),
			}
		}
	}
	return client, nil
}

// checkName returns an error text for an invalid name of a client, or "".
func (c *Config) checkName(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "Name cannot be empty"
	case utf8.RuneCountInString(name) > c.MaxNameChars:
		return fmt.Sprintf("Name must be %d characters or less", c.MaxNameChars)
	}
	for i := range len(name) {
		b := name[i]
		letter := 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
		if !letter && (i == 0 || b != '-' && b != '_' && (b < '0' || b > '9')) {
			return "Name must start with a letter and contain only alphanumeric characters, hyphens, and underscores"
		}
	}
	return ""
}

// textsOf decodes the capabilities of a client.
func textsOf(data json.RawMessage) ([]string, bool) {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil || list == nil || len(list) > maxCapabilities {
		return nil, false
	}
	texts := make([]string, len(list))
	for i, item := range list {
		s, ok := message.Text(item)
		if !ok || utf8.RuneCountInString(s) > maxCapabilityChars {
			return nil, false
		}
		texts[i] = s
	}
	return texts, true
}

// response decodes the payload of a response. It returns false when the payload is malformed.
// Missing fields of a notification get their defaults.
func response(payload json.RawMessage, client string) (messageID string, a routing.Answer, ok bool) {
	fields, ok := message.MembersOf(payload, "messageId", "type", "payload")
	if !ok {
		return "", a, false
	}
	messageID, ok = message.Text(fields.Get("messageId"))
	kind, isText := message.Text(fields.Get("type"))
	if !ok || !isText || len(messageID) > maxMessageID {
		return "", a, false
	}
	var more message.Members
	if inner := fields.Get("payload"); inner != nil && string(inner) != "null" {
		if more, ok = message.MembersOf(inner, "reason", "title", "body", "priority"); !ok {
			return "", a, false
		}
	}
	switch kind {
	case "ack":
		a.Kind = routing.Acknowledged
	case "reject":
		a.Kind = routing.Rejected
		a.Reason, ok = optional(more, "reason", maxReason)
	case "notification":
		a.Kind = routing.Notified
		a.Notification, ok = notification(more, client)
	default:
		return "", a, false
	}
	return messageID, a, ok
}

// notification decodes a notification. An unknown priority becomes the normal one.
func notification(fields message.Members, client string) (*routing.Notification, bool) {
	title, ok := optional(fields, "title", maxNotificationTitle)
	body, isText := optional(fields, "body", maxNotificationBody)
	priority, isPriority := optional(fields, "priority", 16)
	if !ok || !isText || !isPriority {
		return nil, false
	}
	if strings.TrimSpace(title) == "" {
		title = client
	}
	switch priority {
	case "low", "high":
	default:
		priority = "normal"
	}
	return &routing.Notification{Client: client, Title: title, Body: body, Priority: priority, At: time.Now().UTC()}, true
}

// optional decodes a string that can be absent or null, and cuts it.
func optional(fields message.Members, name string, most int) (string, bool) {
	data := fields.Get(name)
	if data == nil || string(data) == "null" {
		return "", true
	}
	s, ok := message.Text(data)
	return text.Clip(s, most), ok
}
