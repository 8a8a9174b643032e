// Prints the jobs of `waza serve` as they change, without any package:
//
//   TOKEN=… node --experimental-websocket docs/examples/jobs.mjs ws://127.0.0.1:8501
//
// It requires Node 20 or later, and the access_token of `waza token create --ttl 30d --json`.
const url = process.argv[2] ?? 'ws://127.0.0.1:8501';
let delay = 1000; // until the next attempt to connect, in milliseconds

function connect() {
  const ws = new WebSocket(`${url}/ws?token=${process.env.TOKEN}`);
  const ping = setInterval(() => ws.readyState === WebSocket.OPEN && ws.send('{"type":"ping"}'), 30_000);
  ws.onmessage = ({ data }) => {
    delay = 1000;
    const { type, job_id, data: result, ...job } = JSON.parse(data);
    if (type === 'sync') console.log(`${job.active_jobs.length} active, ${job.recent_jobs.length} recent`);
    if (type === 'job_created') console.log(`${job_id} ${job.progress_detail}`);
    if (type === 'tool_eval_result') console.log(`${job_id} ${result.test_case_id}: ${result.verdict}`);
    if (/^job_(completed|failed|cancelled)$/.test(type)) console.log(`${job_id} ${job.status} ${job.error ?? ''}`.trim());
  };
  ws.onclose = ({ code, reason }) => {
    clearInterval(ping);
    if (code === 4001 || code === 4008) return console.error(`${code} ${reason}`); // retrying cannot succeed
    setTimeout(connect, delay);
    delay = Math.min(2 * delay, 30_000);
  };
}
connect();
