(function (check) {
	const same = (a, b) => a === b || typeof a === "object" && typeof b === "object" && a !== null && b !== null &&
		Array.isArray(a) === Array.isArray(b) && Object.keys(a).length === Object.keys(b).length &&
		Object.keys(a).every(k => Object.prototype.hasOwnProperty.call(b, k) && same(a[k], b[k]));
	const isMap = v => typeof v === "object" && v !== null && !Array.isArray(v);
	const has = (map, key) => isMap(map) && Object.prototype.hasOwnProperty.call(map, key);
	const glob = (name, pattern) => new RegExp("^" + pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".") + "$", "is").test(name);
	const commandOf = c => {
		const command = [c.arguments.command, c.arguments.cmd].find(v => typeof v === "string" && v.trim());
		return c.kind === "execute" || ["bash", "shell", "exec_command", "local_shell"].includes(c.name.toLowerCase()) ? command : undefined;
	};
	// A call is a step of the type tool, and of the type command or search if it is one.
	const stepOf = e => {
		if (e.type === "tool_call") {
			const call = {...e, arguments: isMap(e.arguments) ? e.arguments : {}};
			const command = commandOf(call);
			const types = ["tool"].concat(command || e.kind === "execute" ? "command" : [], e.kind === "search" ? "search" : []);
			return {types, names: [e.name].concat(command ? [command, command.trim().split(/\s+/)[0]] : []), args: e.arguments};
		}
		if (e.type === "thought") return {types: ["reasoning"], names: ["reasoning"]};
		return e.type === "message" && e.role === "assistant" ? {types: ["message"], names: ["message"]} : null;
	};
	const steps = transcript.map(stepOf).filter(s => s);
	const tools = steps.filter(s => s.types.includes("tool"));
	const wanted = m => typeof m === "string" ? m : m.pattern || m.name;
	const matches = (step, m) => {
		const types = m.type ? [].concat(m.type) : [];
		return (types.length === 0 || types.some(t => step.types.includes(t))) &&
			(!wanted(m) || step.names.some(n => glob(n, wanted(m))));
	};
	const clip = (s, most) => s.length > most ? s.slice(0, most) + "…" : s;
	const listed = names => names.length ? clip(names.join(", "), 500) : "none";
	const shown = list => listed(list.map(s => s.names[0]));
	const json = v => clip(JSON.stringify(v) || "none", 200);
	const range = (min, max) => max == null ? "at least " + min : min ? min === max ? "exactly " + min : min + " to " + max : "at most " + max;
	const within = (n, min, max) => n >= min && (max == null || n <= max);
	const result = (found, failed, forbidden) => {
		const pass = found !== check.inverse;
		return {pass, score: pass ? 1 : 0, reason: pass ? "" : check.inverse ? "not- forbids it: " + forbidden : failed};
	};
	const v = check.value;
	const partly = (got, want) => Array.isArray(want) ? Array.isArray(got) && got.length === want.length && want.every((w, i) => partly(got[i], w)) :
		isMap(want) ? isMap(got) && Object.keys(want).every(k => has(got, k) && partly(got[k], want[k])) : same(got, want);
	switch (check.kind) {
	case "tool-used": {
		const called = "the agent called " + shown(tools);
		if (isMap(v)) {
			const n = tools.filter(s => matches(s, v)).length, min = v.min == null ? 1 : v.min;
			return result(within(n, min, v.max), "expected " + range(min, v.max) + " calls of " + wanted(v) + ", got " + n + "; " + called,
				n + " calls of " + wanted(v) + " are " + range(min, v.max) + "; " + called);
		}
		const list = [].concat(v), used = list.filter(m => tools.some(s => matches(s, m)));
		const missing = list.filter(m => !used.includes(m));
		const found = check.inverse ? used.length > 0 : missing.length === 0;
		return result(found, "expected calls of " + listed(list) + ", and " + listed(missing) + " is missing; " + called,
			"the agent called " + shown(tools) + ", which includes " + listed(used));
	}
	case "tool-args-match": {
		const ignored = k => [].concat(v.ignore || []).some(i => i === k || /[*?]/.test(i) && glob(k, i));
		const without = (map, drop) => isMap(map) ? Object.fromEntries(Object.entries(map).filter(([k, x]) => !drop(k, x))) : map;
		const want = without(v.args === undefined ? v.arguments : v.args, ignored);
		const calls = tools.filter(s => matches(s, v));
		const found = calls.some(s => {
			const got = without(s.args, (k, x) => ignored(k) || has(v.defaults, k) && same(x, v.defaults[k]));
			return v.mode === "exact" ? same(got, want) : partly(got, want);
		});
		const got = calls.length ? "; its calls have " + listed(calls.map(s => json(s.args))) : "; the agent called " + shown(tools);
		const expected = wanted(v) + " with " + (v.mode === "exact" ? "exactly " : "") + "the arguments " + json(want);
		return result(found, "expected a call of " + expected + got, "the agent called " + expected + got);
	}
	case "tool-sequence": {
		const list = Array.isArray(v) ? v : v.steps, exact = v.mode === "exact";
		let at = 0;
		if (exact) {
			at = tools.length === list.length && list.every((m, i) => matches(tools[i], m)) ? list.length : 0;
		} else {
			tools.forEach(s => { if (at < list.length && matches(s, list[at])) at++; });
		}
		const order = (exact ? "exactly the calls " : "the calls ") + listed(list.map(wanted)) + " in this order";
		return result(at === list.length, "expected " + order + "; the agent called " + shown(tools),
			"the agent made " + order + "; it called " + shown(tools));
	}
	}
	const n = steps.filter(s => matches(s, v)).length;
	const kinds = [v.type ? "of the type " + [].concat(v.type).join(" or ") : "", wanted(v) ? "named " + wanted(v) : ""].filter(s => s);
	const counted = range(v.min || 0, v.max) + " steps" + (kinds.length ? " " + kinds.join(" and ") : "");
	return result(within(n, v.min || 0, v.max), "expected " + counted + ", got " + n + "; the steps are " + shown(steps),
		n + " are " + counted + "; the steps are " + shown(steps));
})
