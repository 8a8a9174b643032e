const [file, name, kind] = process.argv.slice(1);
// What the program prints goes to the standard error, so that only answers are on the standard output.
console.log = console.info = console.debug = console.error;
process.stdout.write = process.stderr.write.bind(process.stderr);
// Programs that it starts can still write there, also texts without an end of line: waza counts only lines with the mark.
const [mark, ...lines] = fs.readFileSync(0, "utf8").split("\n").filter(Boolean);
let answered = 0;
const answer = value => {
	const json = Buffer.from(JSON.stringify(value));
	const data = Buffer.concat([Buffer.from(`\n${mark} ${answered++} ${json.length} `), json, Buffer.from("\n")]);
	for (let at = 0; at < data.length;) {
		try { at += fs.writeSync(1, data, at); } catch (e) { if (e.code !== "EAGAIN") throw e; }
	}
};
// A program that ends this process, or never settles its promise, leaves calls without an answer.
(async () => {
	let loaded;
	try {
		loaded = kind === "inline" ? new Function("vars", "context", "process", file) : await load(path.resolve(file));
	} catch (e) {
		process.stderr.write(String(e?.stack ?? e) + "\n");
		lines.forEach(() => answer({error: String(e?.message ?? e)}));
		process.exit(0);
	}
	const whole = loaded.default?.default ?? loaded.default ?? loaded;
	const called = name ? loaded[name] ?? whole[name] : whole;
	for (const line of lines) {
		const args = JSON.parse(line);
		if (kind === "variable") { // which gets a provider with methods
			const {id, label} = args[3];
			args[3] = {id: () => id, label};
		}
		try {
			if (kind === "value" && typeof called === "function") throw new Error("it exports a function, which needs the output of a case");
			if (typeof called !== "function" && (kind !== "tests" && kind !== "value" || called === undefined)) {
				throw new Error(name ? "it exports no function " + name : "it exports no function");
			}
			const output = typeof called === "function" ? await called(...args) : called;
			answer({output: output === undefined ? null : output});
		} catch (e) {
			answer({error: String(e?.message ?? e)});
		}
	}
	process.exit(0);
})().catch(e => { process.stderr.write(String(e?.stack ?? e) + "\n"); process.exit(1); });
