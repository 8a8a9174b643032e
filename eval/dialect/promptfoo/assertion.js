// The verdict goes to a channel that only this process can use, so that programs that the assertion starts cannot give one. Elsewhere
// than on Linux it is the last line of the standard output.
const say = verdict => {
	const json = JSON.stringify(verdict), fd = Number(process.env.WAZA_RESULT_FD || 0);
	if (fd) fs.writeSync(fd, json);
	else fs.writeSync(1, "\n" + json + "\n");
};
const undecided = reason => ({score: null, error: String(reason).slice(0, 4000)});
let ended = false;
const end = verdict => {
	ended = true;
	say(verdict);
	process.exit(0);
};
// An assertion that ends the program leaves this verdict, which makes the grader an error.
say(undecided("the assertion ended the program"));
process.on("beforeExit", () => { if (!ended) end(undecided("the promise of the assertion never settles")); });
for (const event of ["uncaughtException", "unhandledRejection"]) {
	process.on(event, e => end(undecided("an exception outside of the assertion's call: " + (e?.stack ?? e))));
}
// The assertion prints to the standard error, so that only verdicts are on the standard output.
console.log = console.info = console.debug = console.error;
process.stdout.write = process.stderr.write.bind(process.stderr);
const [file, ...pieces] = process.argv.slice(1);
const call = JSON.parse(pieces.join("")), dir = process.env.WAZA_SUITE_DIR || ".";
// guarded returns an object whose missing parts end the program as an error: waza does not know their values.
const guarded = (whole, name, isMissing) => {
	const missing = key => end(undecided("its code needs " + name + "." + String(key) + ", which waza does not have"));
	const check = (target, key) => { if (typeof key === "string" && !Object.hasOwn(target, key) && isMissing(key)) missing(key); };
	return new Proxy(whole, {
		get: (target, key, receiver) => (check(target, key), Reflect.get(target, key, receiver)),
		has: (target, key) => (check(target, key), Reflect.has(target, key)),
		getOwnPropertyDescriptor: (target, key) => (check(target, key), Reflect.getOwnPropertyDescriptor(target, key)),
		ownKeys: () => end(undecided("its code lists the parts of " + name + ", and waza does not have all of them")),
	});
};
const contextOf = output => {
	const context = call.context;
	context.test.vars ??= structuredClone(context.vars);
	context.test = guarded(context.test, "context.test", key => call.missing.test.includes(key));
	let missing = call.missing.context;
	if (call.response !== undefined) {
		missing = missing.filter(key => key !== "metadata" && key !== "providerResponse");
		const response = call.response ? {output, cached: false} : {}, known = ["metadata", "then", "toJSON"];
		for (const e of JSON.parse(fs.readFileSync(process.env.WAZA_TRANSCRIPT_FILE, "utf8"))) {
			if (e.type === "metadata") response.metadata = context.metadata = JSON.parse(e.text);
		}
		context.providerResponse = guarded(response, "context.providerResponse", key => !known.includes(key) && !(key in Object.prototype));
	}
	return guarded(context, "context", key => missing.includes(key));
};
const shown = value => (JSON.stringify(value, (_, v) => typeof v === "number" && !Number.isFinite(v) ? String(v) : v) ?? String(value)).slice(0, 200);
const scoreOf = result => {
	const least = call.threshold;
	if (typeof result === "boolean") return {score: result ? 1 : 0, passed: result, feedback: "the assertion is " + result};
	if (Number.isFinite(result)) return {score: result, passed: least === undefined ? result > 0 : result >= least, feedback: "the assertion is " + result};
	if (typeof result?.pass !== "boolean" || !Number.isFinite(result.score) || typeof result.reason !== "string") {
		throw new Error("an assertion must return true, false, a number, or an object with pass, score and reason, got " + shown(result));
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
	if (typeof called !== "function") throw new Error(file + " exports no function" + (call.function ? " " + call.function : ""));
	return called;
};
(async () => {
	let output = fs.readFileSync(0, "utf8");
	if (call.wrapped) output = JSON.parse(output).output;
	const context = contextOf(output);
	process.chdir(dir);
	let called;
	try {
		called = await functionOf();
	} catch (e) {
		if (file || !(e instanceof SyntaxError)) return end(undecided(e?.message ?? e));
		return end({score: 0, passed: false, feedback: String(e)});
	}
	let score;
	try {
		score = scoreOf(await called(output, context));
		score.score = Math.min(1, Math.max(0, score.score));
		if (call.inverse) { // only of a result: an assertion that fails to decide never passes
			score.score = 1 - score.score;
			score.passed = !score.passed;
		}
		score.feedback = score.feedback.slice(0, 4000);
	} catch (e) {
		if (e?.code === "MODULE_NOT_FOUND" || e?.code === "ERR_MODULE_NOT_FOUND") return end(undecided(e.message));
		if (e?.name === "DataCloneError") return end(undecided("its code copies a value that waza protects: " + e.message));
		score = {score: 0, passed: false, feedback: String(e?.stack ?? e).slice(0, 2000)};
	}
	end(score);
})().catch(e => end(undecided(e?.message ?? e)));
