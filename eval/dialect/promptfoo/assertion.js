// An assertion that ends the program leaves the first line, which is no score, so the grader is in error.
fs.writeSync(1, JSON.stringify({score: "the assertion ended the program"}) + "\n");
// What the assertion prints goes to the standard error, so that only the score is on the standard output.
console.log = console.info = console.debug = console.error;
process.stdout.write = process.stderr.write.bind(process.stderr);
const [data, file] = process.argv.slice(1);
const call = JSON.parse(data), dir = process.env.WAZA_SUITE_DIR || ".";
const end = score => { fs.writeSync(1, "\n" + JSON.stringify(score) + "\n"); process.exit(0); };
const scoreOf = result => {
	const least = call.threshold;
	if (typeof result === "boolean") return {score: result ? 1 : 0, passed: result, feedback: "the assertion is " + result};
	if (Number.isFinite(result)) return {score: result, passed: least === undefined ? result > 0 : result >= least, feedback: "the assertion is " + result};
	if (typeof result?.pass !== "boolean" || !Number.isFinite(result.score) || typeof result.reason !== "string") {
		throw new Error("an assertion must return true, false, a number, or an object with pass, score and reason, got " + (JSON.stringify(result) ?? String(result)).slice(0, 200));
	}
	return {score: result.score, passed: result.pass && (least === undefined || result.score >= least), feedback: result.reason};
};
const functionOf = async () => {
	const from = nodeModule.createRequire(path.resolve(dir, "suite.js"));
	if (!file) {
		delete globalThis.require; // inline code has it as process.mainModule.require only
		const shim = Object.create(process, {mainModule: {value: {require: from}}});
		const code = new Function("output", "context", "process", call.body ?? call.code);
		return (output, context) => code(output, context, shim);
	}
	const loaded = await load(path.resolve(dir, file));
	const whole = loaded.default?.default ?? loaded.default ?? loaded;
	const called = call.function ? loaded[call.function] ?? whole[call.function] : whole;
	if (typeof called !== "function") throw new Error(call.function ? "it exports no function " + call.function : "it exports no function");
	return called;
};
(async () => {
	let output = fs.readFileSync(0, "utf8");
	if (call.wrapped) output = JSON.parse(output).output;
	if (call.response !== undefined) {
		const response = call.context.providerResponse = call.response ? {output, cached: false} : {};
		for (const e of JSON.parse(fs.readFileSync(process.env.WAZA_TRANSCRIPT_FILE, "utf8"))) {
			if (e.type === "metadata") response.metadata = call.context.metadata = JSON.parse(e.text);
		}
	}
	process.chdir(dir);
	let called;
	try {
		called = await functionOf();
	} catch (e) {
		if (file || !(e instanceof SyntaxError)) return end({score: String(e?.message ?? e)}); // no score, so the grader is in error
		return end({score: 0, passed: false, feedback: String(e)});
	}
	let score;
	try {
		score = scoreOf(await called(output, call.context));
		score.score = Math.min(1, Math.max(0, score.score));
		if (call.inverse) { // only of a result: an assertion that fails to decide never passes
			score.score = 1 - score.score;
			score.passed = !score.passed;
		}
	} catch (e) {
		if (e?.code === "MODULE_NOT_FOUND" || e?.code === "ERR_MODULE_NOT_FOUND") return end({score: e.message});
		score = {score: 0, passed: false, feedback: String(e?.stack ?? e).slice(0, 2000)};
	}
	end(score);
})().catch(e => end({score: String(e?.message ?? e)}));
