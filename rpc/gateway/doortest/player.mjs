// player.mjs DIR plays the clients of dialogues with the npm package ws from
// DIR/node_modules. It reads actions from stdin, one JSON object per line, and writes events
// to stdout in the same format.
import {createRequire} from 'node:module';
import {createInterface} from 'node:readline';

const WebSocket = createRequire(process.argv[2] + '/')('ws');
const sockets = new Map();

const report = (event) => process.stdout.write(JSON.stringify(event) + '\n');

const connect = ({name, url, header, pings}) => {
	const {Origin: origin, ...headers} = header ?? {};
	const ws = new WebSocket(url, {origin, headers, perMessageDeflate: false, maxPayload: 0});
	let open = false;
	sockets.set(name, ws);
	ws.on('open', () => { open = true; report({name, event: 'open'}); });
	ws.on('message', (data) => report({name, event: 'message', text: data.toString()}));
	if (pings) ws.on('ping', () => report({name, event: 'ping'}));
	ws.on('unexpected-response', (request, response) => {
		report({name, event: 'refused', code: response.statusCode});
		request.destroy();
	});
	ws.on('error', () => {});
	ws.on('close', (code, reason) => { if (open) report({name, event: 'closed', code, reason: reason.toString()}); });
};

const crowd = ({url, code}) => {
	for (let i = 0; i < code; i++) {
		const ws = new WebSocket(url);
		ws.on('error', () => {});
		sockets.set(`crowd ${i}`, ws);
	}
};

const actions = {
	connect,
	crowd,
	say: ({name, text}) => sockets.get(name).send(text),
	binary: ({name, text}) => sockets.get(name).send(Buffer.from(text)),
	drop: ({name}) => sockets.get(name).terminate(),
	close: ({name, code, reason}) => sockets.get(name).close(code, reason),
	pause: ({name}) => sockets.get(name).pause(),
	resume: ({name}) => sockets.get(name).resume(),
};

for await (const line of createInterface({input: process.stdin})) {
	const action = JSON.parse(line);
	actions[action.do](action);
}
for (const ws of sockets.values()) ws.terminate();
