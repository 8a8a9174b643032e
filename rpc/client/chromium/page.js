// The operations of the tools in a page. The function is evaluated in an isolated world, so that the page's scripts
// can neither see nor change it. (this function)(operation, arguments) returns {value} or {fault, missing}.
(op, args) => {
  const MAX_MATCHES = 10000;
  const clip = (text, most) => (text.length > most ? text.slice(0, most) : text);
  const flat = (text) => (text || '').replace(/\s+/g, ' ').trim();
  const fail = (text, missing) => { throw { fault: text, missing: !!missing }; };

  const query = (selector, from = document) => {
    try {
      return Array.prototype.slice.call(from.querySelectorAll(selector), 0, MAX_MATCHES);
    } catch {
      return fail(`${JSON.stringify(selector)} is not a valid CSS selector`);
    }
  };
  const first = (selector) => query(selector)[0] || fail(`no element matches ${selector}`, true);
  const visible = (el) => {
    const r = el.getBoundingClientRect();
    return r.width > 0 && r.height > 0 && el.checkVisibility({ visibilityProperty: true });
  };
  const label = (el) => flat(el.innerText || el.value || el.getAttribute('aria-label') || el.alt || el.title || el.getAttribute('placeholder'));
  const describe = (el) => {
    const tag = el.tagName.toLowerCase();
    const id = el.id ? '#' + el.id : '';
    const text = el.type === 'password' ? '' : clip(label(el), 80);
    return clip(`${tag}${id}${text ? ' ' + JSON.stringify(text) : ''}`, 160);
  };
  const read = (el) => (/^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName) ? String(el.value) : el.innerText ?? el.textContent ?? '');

  const CLICKABLE = 'a, button, summary, label, input[type=button], input[type=submit], input[type=reset], input[type=image], ' +
    '[role=button], [role=link], [role=menuitem], [role=tab], [role=option], [role=checkbox], [role=radio], [role=switch], [onclick]';
  const byText = (wanted) => {
    const text = flat(wanted).toLowerCase();
    if (!text) fail('text must not be empty');
    const named = query(CLICKABLE).filter(visible).map((el) => [el, label(el).toLowerCase()]);
    for (const fits of [(name) => name === text, (name) => name.includes(text)]) {
      const found = named.filter(([, name]) => fits(name)).map(([el]) => el);
      if (found.length) return found;
    }
    const exact = query('body *').filter((el) => visible(el) && flat(el.innerText).toLowerCase() === text);
    const inner = exact.filter((el) => !exact.some((other) => other !== el && el.contains(other)));
    return inner.length ? inner : fail(`no link, button or other element has the text ${JSON.stringify(clip(wanted, 200))}`, true);
  };
  const target = () => {
    const found = args.selector ? query(args.selector) : byText(args.text);
    const what = args.selector || JSON.stringify(args.text);
    if (!found.length) fail(`no element matches ${what}`, true);
    let el;
    if (args.index === undefined) {
      el = found.find(visible) || found[0];
    } else {
      el = found[args.index] || fail(`index ${args.index} is too large: ${found.length} ${found.length === 1 ? 'element matches' : 'elements match'} ${what}, the first has index 0`, true);
    }
    if (!visible(el)) fail(`${describe(el)} is not visible`, true);
    if (el.disabled) fail(`${describe(el)} is disabled`, true);
    return el;
  };
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const intoView = (el) => el.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
  const changed = (el) => {
    el.dispatchEvent(new Event('input', { bubbles: true }));
    el.dispatchEvent(new Event('change', { bubbles: true }));
  };
  const put = (el, value) => {
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(el), 'value').set.call(el, value);
    changed(el);
  };

  const KEPT = /^(id|class|name|type|value|href|src|alt|title|role|placeholder|for|action|method|checked|selected|disabled|required|readonly|data-testid|aria-[a-z]+)$/;
  const outline = (root, depth, most) => {
    let out = '';
    let whole = true;
    const write = (text) => {
      if (out.length + text.length > most) whole = false;
      else out += text;
      return whole;
    };
    const walk = (node, level) => {
      const indent = '  '.repeat(level);
      if (node.nodeType === Node.TEXT_NODE) {
        const text = flat(node.data);
        return !text || write(indent + clip(text, 2000) + '\n');
      }
      if (node.nodeType !== Node.ELEMENT_NODE) return true;
      const tag = node.tagName.toLowerCase();
      if (/^(script|style|noscript|template)$/.test(tag)) return true;
      let open = `<${tag}`;
      for (const { name, value } of node.attributes) {
        if (KEPT.test(name) && !(name === 'value' && node.type === 'password')) open += value ? ` ${name}=${JSON.stringify(clip(value, 200))}` : ` ${name}`;
      }
      const inside = [...node.childNodes, ...(node.shadowRoot ? node.shadowRoot.childNodes : [])];
      if (!inside.length || tag === 'svg') return write(`${indent}${open}>\n`);
      if (level >= depth) return write(`${indent}${open}>…</${tag}>\n`);
      return write(`${indent}${open}>\n`) && inside.every((child) => walk(child, level + 1)) && write(`${indent}</${tag}>\n`);
    };
    walk(root, 0);
    return { dom: out, truncated: !whole };
  };

  // taken collects texts up to a total of args.most characters.
  let left = args.most;
  let whole = true;
  const taken = (text) => {
    if (text.length > left) whole = false;
    const part = clip(text, left);
    left -= part.length;
    return part;
  };

  const operations = {
    where: () => ({ url: clip(location.href, 4000), title: clip(document.title, 500), closing: window.closed }),
    ready: () => ({ complete: document.readyState === 'complete' && (location.href !== 'about:blank' || !!document.body?.firstChild) }),
    point: () => {
      const el = target();
      intoView(el);
      globalThis.wazaElement = el;
      const r = (el.getClientRects()[0] || el.getBoundingClientRect());
      const [x, y] = [r.left + r.width / 2, r.top + r.height / 2];
      const hit = document.elementFromPoint(x, y);
      const link = el.closest('a[href]');
      const button = el.closest('button, input[type=submit], input[type=image]');
      return {
        what: describe(el), x, y, hit: !!hit && (el.contains(hit) || hit.contains(el) || hit.closest('label')?.control === el),
        leaves: !!link && /^https?:/.test(link.href) && !link.getAttribute('href').startsWith('#') ||
          !!button && button.type !== 'button' && button.type !== 'reset' && !!button.form,
      };
    },
    click: () => { globalThis.wazaElement.click(); return {}; },
    focus: () => {
      const el = target();
      const what = describe(el);
      if (el.readOnly) fail(`${what} is read-only`);
      intoView(el);
      if (el.tagName === 'SELECT') {
        const text = flat(args.value).toLowerCase();
        const options = [...el.options];
        const option = options.find((o) => o.value === args.value) || options.find((o) => flat(o.label).toLowerCase() === text);
        if (!option) fail(`${what} has no option ${JSON.stringify(clip(args.value, 200))}; its options are ${clip(options.map((o) => JSON.stringify(flat(o.label))).join(', '), 1000)}`);
        el.focus();
        option.selected = true;
        changed(el);
        return { what, done: true };
      }
      if (el.tagName === 'INPUT') {
        if (/^(checkbox|radio|button|submit|reset|image)$/.test(el.type)) fail(`${what} takes no text; use click_element`);
        if (el.type === 'file') fail(`${what} takes files, which cannot be chosen`);
        if (/^(date|time|datetime-local|month|week|color|range)$/.test(el.type)) {
          el.focus();
          put(el, args.value);
          if (el.value !== args.value) fail(`${what} of type ${el.type} does not take ${JSON.stringify(clip(args.value, 200))}`);
          return { what, done: true };
        }
      } else if (el.tagName !== 'TEXTAREA' && !el.isContentEditable) {
        fail(`${what} takes no text`);
      }
      el.focus();
      if (el.isContentEditable) {
        const range = document.createRange();
        range.selectNodeContents(el);
        if (!args.clear) range.collapse(false);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        if (args.clear) document.execCommand('delete');
      } else if (args.clear) {
        if (el.value !== '') put(el, '');
      } else {
        try { el.setSelectionRange(el.value.length, el.value.length); } catch { el.value = el.value; }
      }
      globalThis.wazaElement = el;
      return { what, done: false };
    },
    typed: () => {
      const el = globalThis.wazaElement;
      return { value: !el || el.type === 'password' ? '' : clip(read(el), 500) };
    },
    scroll: async () => {
      const page = document.scrollingElement || document.documentElement;
      const end = () => page.scrollHeight - innerHeight;
      const step = args.amount || Math.round(innerHeight * 0.8);
      const wanted = { up: scrollY - step, down: scrollY + step, top: 0, bottom: end() }[args.direction];
      const top = Math.max(0, Math.min(wanted, end()));
      const from = scrollY;
      const ended = new Promise((done) => addEventListener('scrollend', done, { once: true }));
      scrollTo({ top, behavior: args.smooth ? 'smooth' : 'instant' });
      if (Math.abs(top - from) >= 1) await Promise.race([ended, wait(args.smooth ? 3000 : 500)]);
      // Pages get the scroll event in the next frame, and then load more content. A background tab has no frames.
      for (let n = 0; n < 2; n++) await Promise.race([new Promise(requestAnimationFrame), wait(500)]);
      return { y: Math.round(scrollY), height: page.scrollHeight, viewport_height: innerHeight, at_top: scrollY <= 1, at_bottom: scrollY >= end() - 1 };
    },
    rect: () => {
      const page = document.scrollingElement || document.documentElement;
      if (!args.selector) {
        return args.full ? { x: 0, y: 0, width: page.scrollWidth, height: page.scrollHeight } : { x: scrollX, y: scrollY, width: innerWidth, height: innerHeight };
      }
      const el = target();
      intoView(el);
      const r = el.getBoundingClientRect();
      return { x: r.left + scrollX, y: r.top + scrollY, width: r.width, height: r.height };
    },
    text: () => {
      const found = args.all ? query(args.selector) : [first(args.selector)];
      if (!found.length) fail(`no element matches ${args.selector}`, true);
      const texts = found.slice(0, args.items).map((el) => taken(args.trim ? read(el).trim() : read(el)));
      whole &&= found.length <= args.items;
      return args.all ? { texts, count: found.length, truncated: !whole } : { text: texts[0], truncated: !whole };
    },
    links: () => {
      let pattern;
      try { pattern = new RegExp(args.pattern || '', 'i'); } catch { fail(`filter_pattern ${JSON.stringify(clip(args.pattern, 200))} is not a regular expression`); }
      const from = args.selector ? query(args.selector) : [document];
      if (!from.length) fail(`no element matches ${args.selector}`, true);
      const found = [...new Set(from.flatMap((el) => [...(el.matches?.('a[href]') ? [el] : []), ...query('a[href]', el)]))]
        .map((a) => ({ text: clip(label(a), 300), url: clip(a.href, 2000) })).filter((a) => pattern.test(a.url) || pattern.test(a.text));
      const links = found.slice(0, args.items).filter((a) => taken(a.url + a.text) && whole);
      return { links, count: found.length, truncated: links.length < found.length };
    },
    tables: () => {
      const found = args.selector ? [...new Set(query(args.selector).flatMap((el) => (el.tagName === 'TABLE' ? [el] : query('table', el))))] : query('table');
      if (!found.length) fail(args.selector ? `no table matches ${args.selector} or is inside it` : 'the page has no table', true);
      let rows = args.items;
      const cells = (row) => [...row.cells].map((cell) => taken(flat(cell.innerText)));
      const tables = found.slice(0, 50).map((table) => {
        const all = [...table.rows];
        const head = table.tHead?.rows[0] || (all[0] && [...all[0].cells].every((c) => c.tagName === 'TH') ? all[0] : undefined);
        const body = all.filter((row) => row !== head);
        const kept = body.slice(0, rows);
        rows -= kept.length;
        whole &&= kept.length === body.length;
        return { caption: clip(flat(table.caption?.innerText), 300), headers: head ? cells(head) : [], rows: kept.map(cells) };
      });
      return { tables, count: found.length, truncated: !whole || found.length > 50 };
    },
    dom: () => outline(args.selector ? first(args.selector) : document.documentElement, args.depth, args.most),
    highlight: () => {
      const found = query(args.selector).filter(visible);
      if (!found.length) fail(`no visible element matches ${args.selector}`, true);
      intoView(found[0]);
      for (const el of found) {
        const { outline: before, outlineOffset: offset } = el.style;
        el.style.outline = '3px solid #ff9800';
        el.style.outlineOffset = '2px';
        setTimeout(() => { el.style.outline = before; el.style.outlineOffset = offset; }, args.duration);
      }
      return { highlighted: found.length };
    },
  };
  const failed = (e) => (e && e.fault ? e : { fault: String(e) });
  try {
    const value = operations[op]();
    return value instanceof Promise ? value.then((v) => ({ value: v }), failed) : { value };
  } catch (e) {
    return failed(e);
  }
}
