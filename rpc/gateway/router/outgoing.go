package router

import (
	"encoding/json"

	"waza/runner/routing"
)

// The messages of the server.
type (
	frame struct {
		Type    string `json:"type"`
		Payload any    `json:"payload"`
	}
	registered struct {
		Success  bool   `json:"success"`
		ClientID string `json:"clientId"`
		Message  string `json:"message"`
	}
	refused struct {
		Success bool   `json:"success"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	routed struct {
		ID        string   `json:"id"`
		Text      string   `json:"text"`
		Timestamp string   `json:"timestamp"`
		Metadata  metadata `json:"metadata"`
	}
	metadata struct {
		InputMethod   string   `json:"inputMethod"`
		DirectRouted  bool     `json:"directRouted"`
		Confidence    *float64 `json:"confidence,omitempty"`
		RoutingReason string   `json:"routingReason,omitempty"`
	}
)

// successOf returns the answer to a successful registration. Its text is for people. It starts
// like that of the existing server, and contains the sentence of the protocol document.
func successOf(clientID, name string) frame {
	return frame{"registration_response", registered{true, clientID, "Registration successful: Client '" + name + "' registered successfully"}}
}

func failureOf(f *fault) frame {
	return frame{"registration_response", refused{false, f.Code, f.Message}}
}

// messageOf returns a message in the form for clients.
func messageOf(d *routing.Delivery) frame {
	m := routed{
		ID: d.ID, Text: d.Text, Timestamp: d.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z"),
		Metadata: metadata{InputMethod: d.InputMethod, DirectRouted: d.Direct},
	}
	if d.InputMethod == routing.Voice {
		m.Metadata.Confidence = d.Confidence
	}
	if !d.Direct {
		m.Metadata.RoutingReason = d.Reason
	}
	return frame{"message", m}
}

func (f frame) encode() []byte {
	data, _ := json.Marshal(f) // strings, booleans and finite numbers never fail
	return data
}
