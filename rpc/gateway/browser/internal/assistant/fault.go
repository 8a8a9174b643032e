package assistant

import "waza/rpc/gateway/internal/message"

// The codes of faults in the protocol.
const (
	CodeAssistantNotFound    = "ASSISTANT_NOT_FOUND"    // the assistant does not exist
	CodeAssistantInactive    = "ASSISTANT_INACTIVE"     // only the active assistant accepts commands
	CodeSessionNotFound      = "SESSION_NOT_FOUND"      // the session does not exist, or belongs to a different assistant
	CodeCommandNotFound      = "COMMAND_NOT_FOUND"      // the command does not exist
	CodeQueueFull            = "QUEUE_FULL"             // too many commands of the assistant are waiting
	CodeInvalidText          = "INVALID_TEXT"           // the text of a command is empty or too long
	CodeNameTaken            = "NAME_TAKEN"             // another assistant has this name
	CodeInvalidName          = "INVALID_NAME"           // the name is empty, too long or contains other characters
	CodeInvalidInstructions  = "INVALID_INSTRUCTIONS"   // the instructions are too short or too long
	CodeInvalidCapabilities  = "INVALID_CAPABILITIES"   // unknown capabilities, none or too many
	CodeMaxAssistants        = "MAX_ASSISTANTS_REACHED" // the maximum number of assistants exists
	CodeConfirmationRequired = "CONFIRMATION_REQUIRED"  // deleting an assistant requires confirm
	CodeInvalidMessage       = "INVALID_MESSAGE"        // the message violates the protocol
	CodeServiceUnavailable   = "SERVICE_UNAVAILABLE"    // the model does not answer
	CodeInternal             = "INTERNAL_ERROR"         // a server error
)

// Fault is an error of a client's request.
type Fault = message.Fault[string]
