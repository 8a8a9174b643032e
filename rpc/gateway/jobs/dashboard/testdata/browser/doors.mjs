// Scenarios with clients of the other doors.

import assert from 'node:assert/strict';
import { eventually } from './harness.mjs';

/** Connects a WebSocket client. Its got lists the received messages, oldest first. */
export async function connect(address) {
  const ws = new WebSocket(address);
  ws.got = [];
  ws.say = (message) => ws.send(JSON.stringify(message));
  ws.addEventListener('message', (m) => {
    const message = JSON.parse(m.data);
    ws.got.push(message);
    ws.answer?.(message);
  });
  await new Promise((done, fail) => {
    ws.addEventListener('open', done);
    ws.addEventListener('error', () => fail(new Error(`${address} cannot be reached`)));
  });
  ws.first = (test) => eventually(() => ws.got.find(test), `a message at ${address}; there are ${JSON.stringify(ws.got)}`);
  return ws;
}

export const addressOf = (world, door) => new RegExp(`door=${door} address=(\\S+)`).exec(world.server.err)[1];

/** Connects a client of the message router, which answers messages with a function. */
export async function client(world, name, description, answer) {
  const ws = await connect(`ws://${addressOf(world, 'router')}/`);
  ws.answer = (m) => {
    if (m.type !== 'message') return;
    for (const payload of answer(m.payload)) ws.say({ type: 'response', payload: { messageId: m.payload.id, ...payload } });
  };
  ws.say({ type: 'registration', payload: { name, description, capabilities: ['notes'] } });
  const reply = await ws.first((m) => m.type === 'registration_response');
  assert.equal(reply.payload.success, true, JSON.stringify(reply));
  return ws;
}

const EXTENSION = '550e8400-e29b-41d4-a716-446655440000';

/** Connects an extension with one active assistant. */
export async function extension(world) {
  const ws = await connect(`ws://${addressOf(world, 'browser')}/ws?version=1.0.0&extension_id=${EXTENSION}`);
  const ask = async (type, payload) => {
    const id = crypto.randomUUID();
    ws.say({ type, id, timestamp: Date.now(), payload });
    return ws.first((m) => m.correlation_id === id && m.type !== 'ack');
  };
  const created = await ask('create_assistant', { name: 'Reader', instructions: 'Read pages and say what they say.', capabilities: ['navigate', 'extract_text'] });
  ws.assistant = created.payload.assistant.id;
  await ask('activate_assistant', { assistant_id: ws.assistant });
  ws.ask = ask;
  return ws;
}

const routed = async (v, w) => {
  const notebook = await client(w, 'notebook', 'I take notes.', () => [
    { type: 'ack', payload: {} },
    { type: 'notification', payload: { title: 'Note saved', body: 'It is in <b>today</b>.', priority: 'high' } },
  ]);
  await client(w, 'calendar', 'I manage meetings.', () => [{ type: 'reject', payload: { reason: 'the calendar is full' } }]);
  await v.signIn('#/messages');
  await v.reads('[data-testid="clients"]', /calendar[\s\S]*I manage meetings[\s\S]*notebook[\s\S]*I take notes/);
  await v.page.fill('input[aria-label="Message"]', 'notebook: buy milk');
  await v.page.click('text=Send');
  await v.reads('[data-testid="messages"] .card', /taken[\s\S]*notebook: buy milk[\s\S]*notebook\s+acknowledged[\s\S]*Note saved It is in <b>today<\/b>\./);
  assert.equal(await v.page.inputValue('input[aria-label="Message"]'), '');
  assert.equal(notebook.got.find((m) => m.type === 'message').payload.text, 'buy milk');
  await v.reads('[data-testid="clients"]', /1 message taken/);

  await v.page.fill('input[aria-label="Message"]', 'calendar: lunch');
  await v.page.keyboard.press('Enter');
  await v.reads('[data-testid="messages"] .card', /calendar: lunch[\s\S]*calendar\s+rejected[\s\S]*the calendar is full/);
  await v.page.click('[data-testid="messages"] .card >> text=Why');
  await v.reads('[data-testid="messages"] .card', /named by the message/);
  await v.shot('messages');

  notebook.close();
  await eventually(async () => !/notebook/.test(await v.text('[data-testid="clients"]')), 'the client to be gone');
};

const assisted = async (v, w) => {
  const ws = await extension(w);
  await v.signIn('#/assistants');
  await v.reads('[data-testid="assistants"]', /Reader[\s\S]*active[\s\S]*No active command[\s\S]*capabilities: navigate, extract_text/);
  await v.reads('[data-testid="extensions"]', new RegExp(`${EXTENSION}[\\s\\S]*free[\\s\\S]*a person's browser`));
  // No model is configured, so a command fails at once.
  ws.say({ type: 'command', id: crypto.randomUUID(), timestamp: Date.now(), payload: { text: 'read the news', assistant_id: ws.assistant } });
  await ws.first((m) => /SERVICE_UNAVAILABLE/.test(JSON.stringify(m)));
  await v.reads('[data-testid="assistants"]', /Reader[\s\S]*No active command/);
  await v.shot('assistants');
  ws.close();
  await v.reads('main', /No extension is connected/);
};

const fleet = async (v, w) => {
  await v.signIn('#/fleet');
  await v.reads('main', /No workers/); // the server runs an embedded fleet
  const worker = w.start('worker', '--fleet', 'embedded', '--slots', '3', '--name', 'hand', '--labels', 'gpu');
  await v.reads('[data-testid="fleet-workers"]', /hand-\w+[\s\S]*free[\s\S]*0 of 3 slots[\s\S]*label gpu/);
  const run = w.start('run', 'gated/eval.yaml', '--fleet', 'embedded?slots=0');
  await v.reads('[data-testid="fleet-runs"]', /gated[\s\S]*running[\s\S]*0 of 8 trials done/);
  await v.reads('[data-testid="fleet-workers"]', /busy[\s\S]*[23] of 3 slots/);
  await v.reads('[data-testid="fleet-queues"]', /Orders that need the program sh[\s\S]*[123] running[\s\S]*1 worker with 3 slots/);
  w.write('suites/lacks/eval.yaml', JSON.stringify({
    name: 'lacks', config: { executor: 'command', command: ['absent-program'] }, tasks: [{ id: 'a', prompt: 'x', expected: { output_contains: ['x'] } }],
  }));
  const lacks = w.start('run', 'lacks/eval.yaml', '--fleet', 'embedded?slots=0');
  await v.reads('[data-testid="fleet-queues"]', /the program absent-program[\s\S]*No worker can execute these orders[\s\S]*hand-\w+: the program absent-program is not installed/);
  await v.shot('fleet');
  lacks.kill('SIGINT');
  await lacks.over;
  w.open('all');
  await run.over;
  await v.reads('main', /No run uses the fleet/);
  worker.kill('SIGTERM');
  await worker.over;
  await v.reads('main', /No workers/);
};

export const scenarios = {
  'the fleet is shown': fleet,
  'messages are sent and followed': routed,
  'assistants and extensions are shown': assisted,
};
