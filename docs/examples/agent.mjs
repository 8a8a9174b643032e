// An evaluation agent for `waza serve`, without any package:
//
//   node --experimental-websocket docs/examples/agent.mjs ws://127.0.0.1:8080
//
// It requires Node 20 or later. Replace chat with your agent.
import { randomUUID } from 'node:crypto';

const url = process.argv[2] ?? 'ws://127.0.0.1:8080';
const clientId = process.env.AGENT_ID ?? randomUUID(); // the same after each reconnect
const now = () => new Date().toISOString();
const tools = { chat };
const answers = new Map(); // by the id of the request, so that each evaluation runs once

async function chat(input, evaluation) {
  return `You said: ${input.message}`;
}

async function evaluate({ id, params }) {
  const failed = (code, message, data) => ({ jsonrpc: '2.0', error: { code, message, data }, id });
  const tool = tools[params.tool];
  if (!tool) return failed(-32004, 'Invalid tool', { tool: params.tool });
  let timer;
  const timeout = new Promise((resolve) => {
    timer = setTimeout(() => resolve(failed(-32001, 'Evaluation exceeded its timeout')), params.timeout);
  });
  const start = Date.now();
  const work = tool(params.input, params).then(
    (output) => ({ jsonrpc: '2.0', result: { status: 'success', output, executionTime: Date.now() - start }, id }),
    (error) => failed(-32000, 'Tool execution failed', { tool: params.tool, error: String(error) }),
  );
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer));
}

function connect(pause = 1000) {
  const socket = new WebSocket(url);
  const send = (message) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));
  const ping = setInterval(() => send({ type: 'ping', timestamp: now() }), 30_000);
  socket.onmessage = async ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === 'welcome') {
      const capabilities = { tools: Object.keys(tools), maxConcurrency: 4, version: '1.0.0' };
      send({ type: 'register', clientId, secretKey: process.env.WAZA_AGENT_KEY, capabilities });
    } else if (message.type === 'registration_ack') {
      console.error(`${clientId}: ${message.status} ${message.reason ?? ''}`);
      if (message.status === 'accepted') send({ type: 'ready', timestamp: now() });
      pause = 1000;
    } else if (message.method === 'evaluate') {
      if (!answers.has(message.id)) answers.set(message.id, evaluate(message));
      if (answers.size > 1000) answers.delete(answers.keys().next().value);
      send(await answers.get(message.id));
    }
  };
  socket.onerror = socket.onclose = () => { // Node 20 sends no close event if nothing listens on the port
    socket.onerror = socket.onclose = null;
    clearInterval(ping);
    setTimeout(() => connect(Math.min(pause * 2, 30_000)), pause * (0.5 + Math.random()));
  };
}
connect();
