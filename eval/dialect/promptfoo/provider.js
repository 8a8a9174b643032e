const [file, name, config] = process.argv.slice(1);
const fail = reason => { process.stderr.write(reason + "\n"); process.exit(1); };
// reasonOf returns the first line of an exception, and its place in a file.
const reasonOf = e => [String(e?.message ?? e).split("\n")[0], /\n\s+at (?:[^\n]*\()?((?:file:\/\/)?\/[^\n)]*)/.exec(e?.stack)?.[1]].filter(Boolean).join(" at ");
// A provider that ends the program, or never settles its promise, gave no answer: its exit code must not be 0.
let answered = false;
process.on("exit", code => {
	if (answered || code !== 0) return;
	process.stderr.write("the provider ended without an answer\n");
	process.exitCode = 1;
});
// What the provider prints goes to the standard error, so that only the answer is on the standard output.
console.log = console.info = console.debug = console.error;
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
const isClass = f => typeof f === "function" && (f.prototype?.callApi || /^class\b/.test(Function.prototype.toString.call(f)));
(async () => {
	const prompt = fs.readFileSync(0, "utf8");
	const context = JSON.parse(process.env.WAZA_CONTEXT || "{}");
	const options = {id: "file://" + file, config: JSON.parse(config)};
	const loaded = await load(path.resolve(process.env.WAZA_SUITE_DIR || "", file));
	let call = name ? loaded[name] ?? loaded.default?.[name] : loaded.default?.default ?? loaded.default ?? loaded;
	if (isClass(call)) call = new call(options);
	if (typeof call?.callApi === "function") call = call.callApi.bind(call);
	if (typeof call !== "function") fail("the provider must export a class or an object with callApi, or a function");
	const result = await call(prompt, context, options);
	if (result?.error) fail(String(result.error));
	const output = typeof result === "string" ? result : result?.output;
	if (typeof output !== "string") fail("the output of the provider must be a text, got " + typeof output);
	if (result.metadata !== undefined && result.metadata !== null) {
		if (typeof result.metadata !== "object" || Array.isArray(result.metadata)) fail("the metadata of the provider must be an object");
		const line = Buffer.from(JSON.stringify({type: "metadata", metadata: result.metadata}) + "\n");
		for (let at = 0; at < line.length;) at += fs.writeSync(3, line, at);
	}
	const usage = result.tokenUsage;
	if (usage) {
		fs.writeSync(3, JSON.stringify({type: "usage", input_tokens: usage.prompt || 0, output_tokens: usage.completion || 0,
			total_tokens: usage.total || 0, cost_usd: result.cost || 0}) + "\n");
	}
	write(output + "\n", () => { answered = true; process.exit(0); });
})().catch(e => fail(reasonOf(e)));
