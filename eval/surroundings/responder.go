package surroundings

// A Responder is a model that simulates the agent's user. After each answer of the agent it
// replies, ends the conversation or gives up.
type Responder struct {
	// Model that replies, named like a judge model; config.judge_model when absent, else config.model.
	Model string `yaml:"model"`
	// Instructions for the simulated user: what this person needs and knows, and what not to answer. They can use template variables.
	Instructions string `yaml:"instructions" jsonschema:"required"`
	// Maximum number of replies. Graders grade the agent's answer to the last one.
	MaxFollowups int `yaml:"max_followups" jsonschema:"required,minimum=1,maximum=100"`
}
