package runnertest

// Endless is a suite whose run does not end by itself during a test.
const Endless = `
-- eval.yaml --
name: long
config: {mock: {latency_ms: 1000000}}
tasks: [{id: a, prompt: x}]
`
