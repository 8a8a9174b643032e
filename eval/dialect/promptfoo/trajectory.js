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
	const shown = list => list.length ? list.map(s => s.names[0]).join(", ") : "none";
	const within = (n, min, max) => n >= min && (max == null || n <= max);
	const decide = (pass, reason) => {
		if (pass === check.inverse) throw new Error(reason + "; steps: " + shown(check.kind === "step-count" ? steps : tools));
		return true;
	};
	const v = check.value;
	const partly = (got, want) => Array.isArray(want) ? Array.isArray(got) && got.length === want.length && want.every((w, i) => partly(got[i], w)) :
		isMap(want) ? isMap(got) && Object.keys(want).every(k => has(got, k) && partly(got[k], want[k])) : same(got, want);
	switch (check.kind) {
	case "tool-used": {
		if (isMap(v)) {
			const n = tools.filter(s => matches(s, v)).length;
			return decide(within(n, v.min == null ? 1 : v.min, v.max), n + " calls of " + wanted(v));
		}
		const used = [].concat(v).filter(m => tools.some(s => matches(s, m)));
		return decide(check.inverse ? used.length > 0 : used.length === [].concat(v).length,
			(check.inverse ? "used: " : "not used: ") + [].concat(v).filter(m => used.includes(m) === check.inverse).join(", "));
	}
	case "tool-args-match": {
		const ignored = k => [].concat(v.ignore || []).some(i => i === k || /[*?]/.test(i) && glob(k, i));
		const without = (map, drop) => isMap(map) ? Object.fromEntries(Object.entries(map).filter(([k, x]) => !drop(k, x))) : map;
		const want = without(v.args === undefined ? v.arguments : v.args, ignored);
		const found = tools.some(s => {
			if (!matches(s, v)) return false;
			const got = without(s.args, (k, x) => ignored(k) || has(v.defaults, k) && same(x, v.defaults[k]));
			return v.mode === "exact" ? same(got, want) : partly(got, want);
		});
		return decide(found, (found ? "a call of " : "no call of ") + wanted(v) + " with the arguments " + JSON.stringify(want));
	}
	case "tool-sequence": {
		const list = Array.isArray(v) ? v : v.steps;
		let at = 0;
		if (v.mode === "exact") {
			at = tools.length === list.length && list.every((m, i) => matches(tools[i], m)) ? list.length : 0;
		} else {
			tools.forEach(s => { if (at < list.length && matches(s, list[at])) at++; });
		}
		return decide(at === list.length, (at === list.length ? "the sequence " : "not the sequence ") + list.map(wanted).join(", "));
	}
	}
	const n = steps.filter(s => matches(s, v)).length;
	return decide(within(n, v.min || 0, v.max), n + " such steps");
})
