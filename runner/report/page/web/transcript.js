// A transcript: messages, thoughts, tool calls and other events, in order.

const MOST_ENTRIES = 200; // shown at a time

// transcript shows entries. It shows only the name of a text that is shown elsewhere.
function transcript(entries, shown = {}) {
  if (!entries || !entries.length) return el('p', { class: 'quiet' }, 'Nothing was recorded.');
  const place = el('ol', { class: 'transcript' });
  let done = 0;
  const more = el('button', { type: 'button', class: 'more', onclick: () => show() });
  const show = () => {
    place.append(...entries.slice(done, done + MOST_ENTRIES).map((e) => entry(e, shown)));
    done = Math.min(entries.length, done + MOST_ENTRIES);
    more.textContent = `Show ${count(Math.min(MOST_ENTRIES, entries.length - done))} more of ${plural(entries.length, 'entry', 'entries')}`;
    more.hidden = done === entries.length;
  };
  show();
  return [place, more];
}

const ENTRIES = {
  message: (e) => [
    e.role === 'user' ? 'User' : e.role === 'assistant' ? 'Assistant' : e.role || 'Message',
    prose(e.text || ''),
  ],
  thought: (e) => [
    'Thought',
    disclosure(el('span', { class: 'summary' }, clip((e.text || '').replace(/\s+/g, ' '), 160)), () =>
      prose(e.text || ''),
    ),
  ],
  tool_call: (e) => ['Tool', toolCall(e.tool || { name: '?' })],
  skill: (e) => ['Skill', el('p', {}, el('strong', {}, e.text))],
  error: (e) => ['Error', el('p', { class: 'v-error' }, mark('e'), ' ', e.text)],
  plan: (e) => [
    'Plan',
    el(
      'ul',
      { class: 'plan' },
      (e.plan || []).map((s) => el('li', {}, el('span', { class: 'quiet' }, s.status || 'pending'), ' ', s.text)),
    ),
  ],
  permission: (e) => ['Permission', permission(e.permission || {})],
  stop: (e) => ['Stop', el('p', { class: 'quiet' }, e.text || 'the turn ended')],
  dropped: (e) => ['Omitted', el('p', { class: 'quiet' }, e.text)],
};

function entry(e, shown) {
  let [who, what] = (Object.hasOwn(ENTRIES, e.type) ? ENTRIES[e.type] : (x) => [String(x.type), prose(x.text || '')])(
    e,
  );
  const again =
    e.type === 'message' &&
    e.text &&
    e.text.length > 80 &&
    Object.keys(shown).find((name) => shown[name].trim() === e.text.trim());
  if (again) what = disclosure(el('span', { class: 'quiet' }, `${again}, as above`), () => prose(e.text));
  return el(
    'li',
    { class: `entry e-${e.type === 'message' ? e.role : e.type}` },
    el('div', { class: 'gutter' }, el('span', { class: 'who' }, who), el('span', { class: 'at' }, offset(e.atMs || 0))),
    el('div', { class: 'what' }, what),
  );
}

// disclosure makes an element whose content is made when it is opened.
function disclosure(summary, make, open = false) {
  const box = el('details', { open }, el('summary', {}, summary));
  const fillIn = () => {
    if (box.open && box.childElementCount === 1) box.append(el('div', { class: 'inside' }, make()));
  };
  box.addEventListener('toggle', fillIn);
  fillIn();
  return box;
}

function toolCall(tool) {
  const bad = /^(failed|error)/i.test(tool.status || '');
  const summary = [
    el('code', { class: 'tool-name' }, tool.name || '?'),
    ' ',
    el(
      'span',
      { class: 'summary' },
      tool.title && tool.title !== tool.name ? clip(tool.title, 160) : oneLine(tool.arguments),
    ),
    bad && el('span', { class: 'badge v-failed' }, tool.status),
    tool.selfReported &&
      el('span', { class: 'badge', title: 'Only the agent says that it made this call.' }, 'self-reported'),
    tool.durationMs > 0 && el('span', { class: 'took' }, duration(tool.durationMs)),
  ];
  return disclosure(summary, () =>
    [
      tool.arguments !== undefined && [el('h4', {}, 'Arguments'), value(tool.arguments)],
      tool.result !== undefined && [el('h4', {}, 'Result'), value(tool.result)],
      tool.arguments === undefined &&
        tool.result === undefined &&
        el('p', { class: 'quiet' }, 'Neither arguments nor a result were reported.'),
      el('p', { class: 'quiet' }, [tool.kind, tool.status, tool.id].filter(Boolean).join(' · ')),
    ].filter(Boolean),
  );
}

const permission = (p) =>
  el(
    'p',
    {},
    el(
      'span',
      { class: p.allowed ? 'v-passed' : 'v-failed' },
      mark(p.allowed ? 'p' : 'f'),
      p.allowed ? ' Allowed' : ' Refused',
    ),
    ' ',
    [p.kind, p.title].filter(Boolean).join(' '),
    p.reason && el('span', { class: 'quiet' }, ` – ${p.reason}`),
  );
