const [fs, path, url] = ["fs", "path", "url"].map(name => process.getBuiltinModule ? process.getBuiltinModule(name) : require(name));
const [file, name, config] = process.argv.slice(1);
const fail = reason => { process.stderr.write(reason + "\n"); process.exit(1); };
// What the provider prints goes to the standard error, so that only the answer is on the standard output.
console.log = console.info = console.debug = console.error;
(async () => {
	const prompt = fs.readFileSync(0, "utf8");
	const context = JSON.parse(process.env.WAZA_CONTEXT || "{}");
	const options = {id: "file://" + file, config: JSON.parse(config)};
	const loaded = await import(url.pathToFileURL(path.resolve(process.env.WAZA_SUITE_DIR || "", file)));
	const chosen = name ? loaded[name] ?? loaded.default?.[name] : loaded.default?.default ?? loaded.default ?? loaded;
	let call = chosen;
	if (typeof chosen === "function" && chosen.prototype?.callApi) {
		const provider = new chosen(options);
		call = provider.callApi.bind(provider);
	} else if (typeof chosen?.callApi === "function") {
		call = chosen.callApi.bind(chosen);
	}
	if (typeof call !== "function") fail("the provider must export a class or an object with callApi, or a function");
	const result = await call(prompt, context, options);
	if (result?.error) fail(String(result.error));
	const output = typeof result === "string" ? result : result?.output;
	if (typeof output !== "string") fail("the output of the provider must be a text, got " + typeof output);
	const usage = result.tokenUsage;
	if (usage) {
		fs.writeSync(3, JSON.stringify({type: "usage", input_tokens: usage.prompt || 0, output_tokens: usage.completion || 0,
			total_tokens: usage.total || 0, cost_usd: result.cost || 0}) + "\n");
	}
	process.stdout.write(output + "\n", () => process.exit(0));
})().catch(e => fail(String(e?.stack ?? e)));
